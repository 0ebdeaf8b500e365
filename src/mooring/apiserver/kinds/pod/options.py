"""Options of pod validation, and iteration over the containers of a pod.

1. A new object is validated with `STRICT`. `update.py` relaxes rules that the stored object already violates.
2. Rules of v1.36 feature gates are not options: the rules have their default values built in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mooring.api.document import Document

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class PodOptions:
    """Errors that are tolerated because the stored object has them. All are off for a new object."""

    is_pod: bool = False
    """The spec belongs to a pod, not to a template of one."""
    tolerates_deletion_cost: bool = False
    tolerates_affinity_selectors: bool = False
    tolerates_node_affinity_values: bool = False
    tolerates_spread_selectors: bool = False
    tolerates_spread_label_keys: bool = False
    """The old constraints broke today's rule of `matchLabelKeys`: the rule before v1.34 is used."""
    tolerates_indivisible_huge_pages: bool = False
    tolerates_token_paths: bool = False
    tolerates_host_sysctls: bool = False
    tolerates_any_selinux_change_policy: bool = False
    tolerates_init_resize_restart: bool = False
    tolerates_devices_with_user_namespaces: bool = False
    tolerates_host_network_with_user_namespaces: bool = False
    tolerates_comparing_tolerations: bool = False


STRICT = PodOptions()
STRICT_POD = PodOptions(is_pod=True)


def every_container(spec: Document, path: str) -> Iterator[tuple[Document, str]]:
    """All containers with their paths."""
    for kind in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{index}]"
