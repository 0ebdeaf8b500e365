"""What is wrong with a CSIStorageCapacity: how much room a class has in a part of the cluster.

Comes in   a capacity, and what it was
Goes out   faults

 1. What was asked for (class and topology) never changes; what was answered (the sizes) does.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.quantity import quantity_nano
from mooring.apiserver.validation.fields import Fault, invalid
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import dns_subdomain_faults
from mooring.apiserver.validation.resources import NOT_NEGATIVE
from mooring.apiserver.validation.selectors import label_selector_faults


def storage_capacity_faults(obj: Document, tolerates_values: bool = False) -> list[Fault]:
    faults = label_selector_faults(obj.get("nodeTopology"), "nodeTopology", tolerates_values)
    name, size = obj.get("storageClassName", ""), obj.get("capacity")
    faults += [invalid("storageClassName", name, text) for text in dns_subdomain_faults(name)]
    if size is not None and quantity_nano(size) < 0:
        faults.append(invalid("capacity", size, NOT_NEGATIVE))
    return faults


def storage_capacity_update_faults(obj: Document, old: Document) -> list[Fault]:
    """What a change may not touch."""
    faults = []
    if obj.get("nodeTopology") != old.get("nodeTopology"):
        faults.append(invalid("nodeTopology", _with_sorted_labels(obj.get("nodeTopology")), IMMUTABLE))
    if obj.get("storageClassName", "") != old.get("storageClassName", ""):
        faults.append(invalid("storageClassName", obj.get("storageClassName", ""), IMMUTABLE))
    return faults


def has_bad_selector(obj: Document) -> bool:
    """Whether an old capacity has a selector that is refused today: then values may stay as bad as they were."""
    return bool(label_selector_faults(obj.get("nodeTopology"), "nodeTopology"))


def _with_sorted_labels(selector: Document | None) -> Document | None:
    if not selector or "matchLabels" not in selector:
        return selector
    return {**selector, "matchLabels": dict(sorted(selector["matchLabels"].items()))}
