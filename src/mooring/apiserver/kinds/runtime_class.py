"""RuntimeClass (node.k8s.io/v1).

1. The overhead is validated like the limits of a container, and its errors name `limits`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.node import DEPRECATED_NODE_LABELS
from mooring.apiserver.kinds.pod.options import STRICT
from mooring.apiserver.kinds.pod.resources import resource_requirements_faults
from mooring.apiserver.kinds.pod.scheduling import tolerations_faults
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.cells import age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE, labels_faults
from mooring.apiserver.validation.names import dns_label_faults
from mooring.apiserver.validation.values import internal_value


def runtime_class_faults(obj: Document) -> list[Fault]:
    handler = obj.get("handler", "")
    if handler:
        faults = [invalid("handler", handler, text) for text in dns_label_faults(handler)]
    else:
        faults = [required("handler")]
    if (overhead := obj.get("overhead")) is not None:
        limits = overhead.get("podFixed")
        faults += resource_requirements_faults({"limits": limits} if limits else {}, "overhead")
    if (scheduling := obj.get("scheduling")) is not None:
        faults += labels_faults(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        faults += _runtime_class_tolerations_faults(scheduling.get("tolerations") or (), "scheduling.tolerations")
    return faults


def runtime_class_update_faults(obj: Document, old: Document) -> list[Fault]:
    if obj.get("handler") == old.get("handler"):
        return []
    return [invalid("handler", obj.get("handler", ""), IMMUTABLE)]


def _runtime_class_tolerations_faults(tolerations: Sequence[Document], path: str) -> list[Fault]:
    faults = tolerations_faults(tolerations, path, STRICT)
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            faults.append(duplicate(f"{path}[{index}]", internal_value(toleration, "Toleration")))
        seen.add(key)
    return faults


def _runtime_class_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now_s)]


RUNTIME_CLASS_TABLE = KindTable((NAME, column("Handler", ""), AGE), _runtime_class_cells)


class RuntimeClassStrategy(Strategy):
    table = RUNTIME_CLASS_TABLE
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
        return _runtime_class_warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _runtime_class_warnings(obj)


def _runtime_class_warnings(obj: Document) -> list[str]:
    wanted = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [
        f"scheduling.nodeSelector: {DEPRECATED_NODE_LABELS[key]}" for key in wanted if key in DEPRECATED_NODE_LABELS
    ]


STRATEGY = RuntimeClassStrategy
