"""Storage classes."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.storage import default_storage_class
from mooring.apiserver.strategies.node_label_warnings import DEPRECATED_NODE_LABELS
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.storage_class import storage_class_faults, storage_class_update_faults


class StorageClassStrategy(Strategy):
    def default(self, obj: Document) -> None:
        default_storage_class(obj)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return storage_class_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new class, then as a change."""
        faults = self.meta_faults(obj)
        faults += storage_class_faults(obj)
        faults += self.meta_update_faults(obj, old)
        return faults + storage_class_update_faults(obj, old)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _warnings(obj)


def _warnings(obj: Document) -> list[str]:
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {DEPRECATED_NODE_LABELS[key]}"
        for index, term in enumerate(obj.get("allowedTopologies") or ())
        for position, expression in enumerate(term.get("matchLabelExpressions") or ())
        if (key := expression.get("key", "")) in DEPRECATED_NODE_LABELS
    ]
