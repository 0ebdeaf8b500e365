"""Runtime classes."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategies.node_label_warnings import DEPRECATED_NODE_LABELS
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.runtime_class import runtime_class_faults, runtime_class_update_faults


class RuntimeClassStrategy(Strategy):
    allows_create_on_update = True
    allows_unconditional_update = False
    refuses_odd_finalizers = False

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return runtime_class_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new class, then as a change."""
        faults = self.meta_faults(obj)
        faults += runtime_class_faults(obj)
        faults += self.meta_update_faults(obj, old)
        faults += runtime_class_update_faults(obj, old)
        return faults

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _warnings(obj)


def _warnings(obj: Document) -> list[str]:
    wanted = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [
        f"scheduling.nodeSelector: {DEPRECATED_NODE_LABELS[key]}" for key in wanted if key in DEPRECATED_NODE_LABELS
    ]
