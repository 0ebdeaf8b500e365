"""Defaults of nodes: everything can be allocated, and the two names of the pods' address range agree.

1. `podCIDR` wins over a `podCIDRs` that disagrees: old clients know only the first.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.pod_containers import round_amounts


def default_node(node: Document) -> None:
    spec, status = node["spec"], node["status"]
    capacity = status.get("capacity")
    if capacity and not status.get("allocatable"):
        status["allocatable"] = dict(capacity)
    for field in ("capacity", "allocatable"):
        if field in status:
            round_amounts(status[field])
    single, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if single and (not several or several[0] != single):
        spec["podCIDRs"] = [single]
    elif several:
        spec["podCIDR"] = several[0]
