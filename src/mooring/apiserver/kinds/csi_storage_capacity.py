"""CSIStorageCapacity (storage.k8s.io/v1).

1. Storage class and topology are immutable; the sizes may change.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.quantity import quantity_nano
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.node import DEPRECATED_NODE_LABELS, node_selector_term_warnings
from mooring.apiserver.kinds.pod.resources import NOT_NEGATIVE
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.selectors import validate_label_selector

_RULES = struct_rules("storage", "CSIStorageCapacity")


def validate_storage_capacity(obj: Document, tolerates_values: bool = False) -> list[FieldError]:
    errors = validate_label_selector(obj.get("nodeTopology"), "nodeTopology", tolerates_values)
    size = obj.get("capacity")
    errors += _RULES.validate(obj, "")
    if size is not None and quantity_nano(size) < 0:
        errors.append(invalid("capacity", size, NOT_NEGATIVE))
    return errors


def validate_storage_capacity_update(obj: Document, old: Document) -> list[FieldError]:
    """Errors of changed immutable fields."""
    errors = []
    if obj.get("nodeTopology") != old.get("nodeTopology"):
        errors.append(invalid("nodeTopology", _with_sorted_labels(obj.get("nodeTopology")), IMMUTABLE))
    return errors + _RULES.validate_update(obj, old, "")


def has_bad_selector(obj: Document) -> bool:
    """Whether the stored capacity has a selector that is invalid today: then its values stay valid."""
    return bool(validate_label_selector(obj.get("nodeTopology"), "nodeTopology"))


def _with_sorted_labels(selector: Document | None) -> Document | None:
    if not selector or "matchLabels" not in selector:
        return selector
    return {**selector, "matchLabels": dict(sorted(selector["matchLabels"].items()))}


class CSIStorageCapacityStrategy(Strategy):
    allows_unconditional_update = False

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_storage_capacity(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new object, then as a change."""
        errors = self.validate_meta(obj)
        errors += validate_storage_capacity(obj, tolerates_values=has_bad_selector(old))
        errors += self.validate_meta_update(obj, old)
        return errors + validate_storage_capacity_update(obj, old)

    def warnings(self, obj: Document) -> list[str]:
        selector = obj.get("nodeTopology") or {}
        return node_selector_term_warnings(selector, "nodeTopology") + [
            f"nodeTopology.matchLabels.{key}: {DEPRECATED_NODE_LABELS[key]}"
            for key in selector.get("matchLabels") or ()
            if key in DEPRECATED_NODE_LABELS
        ]


STRATEGY = CSIStorageCapacityStrategy
