"""In which order groups and versions are told: the first one is what a client takes that has no wish of its own.

1. Built-in groups have the order of kube-apiserver, where the older and more often used ones come first; custom groups
   follow by their names.
2. Versions that are written as Kubernetes writes them are ordered by maturity and then by number (v10, v2, v1,
   v2beta1, v1alpha1); all others follow, by the alphabet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

GROUPS = (
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
)

_RANKS = {group: rank for rank, group in enumerate(GROUPS)}
_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_MATURITY = {None: 2, "beta": 1, "alpha": 0}


def groups_in_order(groups: Iterable[str]) -> list[str]:
    return sorted(groups, key=lambda group: (_RANKS.get(group, len(GROUPS)), group))


def versions_in_order(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=_version_key)


def _version_key(version: str) -> tuple[int, int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return 1, 0, 0, 0, version
    major, maturity, minor = match.groups()
    return 0, -_MATURITY[maturity], -int(major), -int(minor or 0), version
