"""CSINode (storage.k8s.io/v1).

1. Drivers may be added and removed. Of a driver that stays only the number of volumes may change.
2. Errors of a topology key name the whole driver.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.volume_sources import validate_driver_name
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, integer
from mooring.apiserver.validation.fields import FieldError, duplicate, first_positions, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import qualified_name_errors
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.values import internal_value

NODE_ID_BYTES_MAX = 256


def validate_csi_node(spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, driver in enumerate(spec.get("drivers") or ()):
        errors += _validate_driver(driver, seen, f"{path}.drivers[{index}]")
    return errors


def validate_csi_node_update(spec: Document, old: Document, path: str) -> list[FieldError]:
    """Immutable fields of drivers that stay."""
    return [
        invalid(f"{path}.drivers", internal_value(_without_count(driver), "CSINodeDriver", "storage"), IMMUTABLE)
        for before in old.get("drivers") or ()
        for driver in spec.get("drivers") or ()
        if driver.get("name") == before.get("name") and _fixed_part(driver) != _fixed_part(before)
    ]


def _validate_driver(driver: Document, seen: set[str], path: str) -> list[FieldError]:
    name = driver.get("name", "")
    errors = validate_driver_name(name, f"{path}.name")
    errors += _validate_node_id(driver.get("nodeID", ""), f"{path}.nodeID")
    allocatable = driver.get("allocatable") or {}
    errors += struct_rules("storage", "VolumeNodeResources").validate(allocatable, f"{path}.allocatable")
    if name in seen:
        errors.append(duplicate(f"{path}.name", name))
    seen.add(name)
    keys = driver.get("topologyKeys") or ()
    first = first_positions(keys)
    for index, key in enumerate(keys):
        if not key:
            errors.append(required(path))
        if first[key] != index:
            errors.append(duplicate(path, key))
        errors += [invalid(path, key, text) for text in qualified_name_errors(key)]
    return errors


def _validate_node_id(node_id: str, path: str) -> list[FieldError]:
    if not node_id:
        return [required(path)]
    if len(node_id.encode()) > NODE_ID_BYTES_MAX:
        return [invalid(path, node_id, f"must be {NODE_ID_BYTES_MAX} characters or less")]
    return []


def _without_count(driver: Document) -> Document:
    return {field: value for field, value in driver.items() if field != "allocatable"}


def _fixed_part(driver: Document) -> tuple[object, object]:
    return driver.get("nodeID", ""), driver.get("topologyKeys") or []


def _csi_node_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], len((obj.get("spec") or {}).get("drivers") or ()), age(obj, now_s)]


class CSINodeStrategy(Strategy):
    table = KindTable((NAME, integer("Drivers", "How many drivers the node has."), AGE), _csi_node_cells)
    allows_unconditional_update = False

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_csi_node(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new object, then as a change."""
        errors = self.validate_meta(obj)
        errors += validate_csi_node(obj["spec"], "spec")
        return errors + validate_csi_node_update(obj["spec"], old["spec"], "spec")


STRATEGY = CSINodeStrategy
