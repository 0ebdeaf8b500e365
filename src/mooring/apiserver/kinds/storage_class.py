"""StorageClass (storage.k8s.io/v1).

1. Provisioner, parameters, reclaim policy and binding mode are immutable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.storage import DEFAULT_CLASS_ANNOTATIONS
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.node import DEPRECATED_NODE_LABELS
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, duplicate, first_positions, invalid, required, too_long
from mooring.apiserver.validation.names import qualified_name_errors
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.selectors import validate_label_name

PARAMETERS_BYTES_MAX = 256 * 1024
PARAMETERS_COUNT_MAX = 512

_RULES = struct_rules("storage", "StorageClass")


# --- validation --------------------------------------------------------------------------------------------------


def validate_storage_class(obj: Document) -> list[FieldError]:
    errors = validate_provisioner(obj.get("provisioner", ""), "provisioner")
    errors += validate_parameters(obj.get("parameters") or {}, "parameters")
    errors += _RULES.validate(obj, "", "reclaimPolicy", "volumeBindingMode")
    return errors + _validate_topologies(obj.get("allowedTopologies") or (), "allowedTopologies")


def validate_storage_class_update(obj: Document, old: Document) -> list[FieldError]:
    return _RULES.validate_update(obj, old, "", "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def validate_provisioner(name: str, path: str) -> list[FieldError]:
    """Field errors of a provisioner. Case is ignored, and errors print lower case."""
    if not name:
        return [required(path)]
    lowered = name.lower()
    return [invalid(path, lowered, text) for text in qualified_name_errors(lowered)]


def validate_parameters(parameters: Mapping[str, str], path: str) -> list[FieldError]:
    if len(parameters) > PARAMETERS_COUNT_MAX:
        return [too_long(path, PARAMETERS_COUNT_MAX)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > PARAMETERS_BYTES_MAX:
        errors.append(too_long(path, PARAMETERS_BYTES_MAX))
    return errors


DUPLICATES_MAX = 10
"""Errors about one term. Kubernetes reports as many as there are equal terms before it."""


def _validate_topologies(terms: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter()
    for index, term in enumerate(terms):
        here = f"{path}[{index}].matchLabelExpressions"
        values_by_key: dict[str, frozenset[str]] = {}
        for position, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = expression.get("key", ""), expression.get("values") or ()
            errors += _validate_storage_class_topology(key, values, f"{here}[{position}]")
            if key in values_by_key:
                errors.append(duplicate(f"{here}[{position}].key", key))
            values_by_key[key] = frozenset(values)
        # An empty term is a duplicate once for each term, in addition to those before it: Kubernetes
        # compares with a list that begins with as many empty ones.
        identity = frozenset(values_by_key.items())
        equals = seen[identity] + (0 if values_by_key else len(terms))
        errors += [duplicate(here, "")] * min(equals, DUPLICATES_MAX)
        seen[identity] += 1
    return errors


def _validate_storage_class_topology(key: str, values: Sequence[str], path: str) -> list[FieldError]:
    errors = [] if values else [required(f"{path}.values")]
    first = first_positions(values)
    errors += [
        duplicate(f"{path}.values[{index}]", value) for index, value in enumerate(values) if first[value] != index
    ]
    return errors + validate_label_name(key, f"{path}.key")


# --- table -------------------------------------------------------------------------------------------------------


def _storage_class_cells(obj: Document, now_s: float) -> list[Cell]:
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    is_default = any(annotations.get(name) == "true" for name in DEFAULT_CLASS_ANNOTATIONS)
    return [
        f"{metadata['name']} (default)" if is_default else metadata["name"],
        obj.get("provisioner", ""),
        obj["reclaimPolicy"] if obj.get("reclaimPolicy") is not None else "Delete",
        obj["volumeBindingMode"] if obj.get("volumeBindingMode") is not None else "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now_s),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class StorageClassStrategy(Strategy):
    table = KindTable(
        (
            NAME,
            column("Provisioner", "Who makes its volumes."),
            column("ReclaimPolicy", "What becomes of them after their claims."),
            column("VolumeBindingMode", "When a claim gets its volume."),
            column("AllowVolumeExpansion", "Whether volumes may grow."),
            AGE,
        ),
        _storage_class_cells,
    )

    def default(self, obj: Document) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_storage_class(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new class, then as a change."""
        errors = self.validate_meta(obj)
        errors += validate_storage_class(obj)
        errors += self.validate_meta_update(obj, old)
        return errors + validate_storage_class_update(obj, old)

    def warnings(self, obj: Document) -> list[str]:
        return [
            f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {DEPRECATED_NODE_LABELS[key]}"
            for index, term in enumerate(obj.get("allowedTopologies") or ())
            for position, expression in enumerate(term.get("matchLabelExpressions") or ())
            if (key := expression.get("key", "")) in DEPRECATED_NODE_LABELS
        ]


STRATEGY = StorageClassStrategy
