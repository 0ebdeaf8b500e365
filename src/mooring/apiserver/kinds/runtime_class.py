"""RuntimeClass (node.k8s.io/v1).

1. The overhead is validated like the limits of a container, and its errors name `limits`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.node import DEPRECATED_NODE_LABELS
from mooring.apiserver.kinds.pod.options import STRICT
from mooring.apiserver.kinds.pod.resources import validate_resource_requirements
from mooring.apiserver.kinds.pod.scheduling import validate_tolerations
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, duplicate
from mooring.apiserver.validation.metadata import validate_labels
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.values import internal_value

_RULES = struct_rules("node", "RuntimeClass")


def validate_runtime_class(obj: Document) -> list[FieldError]:
    errors = _RULES.validate(obj, "")
    if (overhead := obj.get("overhead")) is not None:
        limits = overhead.get("podFixed")
        errors += validate_resource_requirements({"limits": limits} if limits else {}, "overhead")
    if (scheduling := obj.get("scheduling")) is not None:
        errors += validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        errors += _validate_runtime_class_tolerations(scheduling.get("tolerations") or (), "scheduling.tolerations")
    return errors


def validate_runtime_class_update(obj: Document, old: Document) -> list[FieldError]:
    return _RULES.validate_update(obj, old, "")


def _validate_runtime_class_tolerations(tolerations: Sequence[Document], path: str) -> list[FieldError]:
    errors = validate_tolerations(tolerations, path, STRICT)
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(f"{path}[{index}]", internal_value(toleration, "Toleration")))
        seen.add(key)
    return errors


def _runtime_class_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now_s)]


class RuntimeClassStrategy(Strategy):
    table = KindTable((NAME, column("Handler", ""), AGE), _runtime_class_cells)
    allows_create_on_update = True
    allows_unconditional_update = False
    validates_finalizer_names = False

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_runtime_class(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new class, then as a change."""
        errors = self.validate_meta(obj)
        errors += validate_runtime_class(obj)
        errors += self.validate_meta_update(obj, old)
        errors += validate_runtime_class_update(obj, old)
        return errors

    def warnings(self, obj: Document) -> list[str]:
        selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
        return [
            f"scheduling.nodeSelector: {DEPRECATED_NODE_LABELS[key]}"
            for key in selector
            if key in DEPRECATED_NODE_LABELS
        ]


STRATEGY = RuntimeClassStrategy
