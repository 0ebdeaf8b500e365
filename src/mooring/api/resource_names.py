"""Classify the names of resources: which of them the scheduler counts, and in which unit.

1. cpu is counted in thousandths, everything else in whole units.
2. Besides cpu, memory and ephemeral storage, the scheduler counts *scalar* resources: extended resources
   (`vendor.example/gpu`), huge pages, attachable volumes, and names with a prefix of Kubernetes. Any other name is not
   counted.
"""

from __future__ import annotations

from functools import lru_cache

from mooring.api.label_syntax import label_key_errors

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

HUGE_PAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
NATIVE_PREFIX = "kubernetes.io/"
QUOTA_PREFIX = "requests."
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

NAMES_REMEMBERED_MAX = 4096


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def is_scalar_resource(name: str) -> bool:
    """Is it counted, beyond cpu, memory and ephemeral storage?"""
    return (
        is_extended_resource(name)
        or is_huge_page_resource(name)
        or NATIVE_PREFIX in name
        or name.startswith(ATTACHABLE_VOLUMES_PREFIX)
    )


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def is_counted_resource(name: str) -> bool:
    """Does the scheduler count it at all?"""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def is_extended_resource(name: str) -> bool:
    """Does it belong to a vendor? The name must also do as the name of a quota."""
    is_native = "/" not in name or NATIVE_PREFIX in name
    if is_native or name.startswith(QUOTA_PREFIX):
        return False
    return not label_key_errors(QUOTA_PREFIX + name)


def is_device_backed_resource(name: str) -> bool:
    """May devices stand behind it: a vendor's name, or that of a device class?"""
    return name.startswith(DEVICE_CLASS_PREFIX) or is_extended_resource(name)


def is_huge_page_resource(name: str) -> bool:
    return name.startswith(HUGE_PAGES_PREFIX)


def is_pod_level_resource(name: str) -> bool:
    """Whether pod-level resources may contain it."""
    return name in (CPU, MEMORY) or is_huge_page_resource(name)
