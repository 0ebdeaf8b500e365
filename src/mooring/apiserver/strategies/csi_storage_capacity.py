"""CSIStorageCapacities."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategies.node_label_warnings import DEPRECATED_NODE_LABELS, node_selector_term_warnings
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.csi_storage_capacity import (
    has_bad_selector,
    storage_capacity_faults,
    storage_capacity_update_faults,
)
from mooring.apiserver.validation.fields import Fault


class CSIStorageCapacityStrategy(Strategy):
    allows_unconditional_update = False

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return storage_capacity_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new object, then as a change."""
        faults = self.meta_faults(obj)
        faults += storage_capacity_faults(obj, tolerates_values=has_bad_selector(old))
        faults += self.meta_update_faults(obj, old)
        return faults + storage_capacity_update_faults(obj, old)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _warnings(obj)


def _warnings(obj: Document) -> list[str]:
    selector = obj.get("nodeTopology") or {}
    return node_selector_term_warnings(selector, "nodeTopology") + [
        f"nodeTopology.matchLabels.{key}: {DEPRECATED_NODE_LABELS[key]}"
        for key in selector.get("matchLabels") or ()
        if key in DEPRECATED_NODE_LABELS
    ]
