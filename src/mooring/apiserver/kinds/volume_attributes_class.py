"""VolumeAttributesClass (storage.k8s.io/v1).

1. A class names a driver and at least one parameter, and is immutable.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.storage_class import validate_parameters, validate_provisioner
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, forbidden, required


def validate_volume_attributes_class(obj: Document) -> list[FieldError]:
    parameters = obj.get("parameters") or {}
    errors = validate_provisioner(obj.get("driverName", ""), "driverName")
    errors += validate_parameters(parameters, "parameters")
    if not parameters:
        errors.append(required("parameters", "must contain at least one key/value pair"))
    return errors


def validate_volume_attributes_class_update(obj: Document, old: Document) -> list[FieldError]:
    errors = []
    if obj.get("driverName", "") != old.get("driverName", ""):
        errors.append(forbidden("driverName", "updates to driverName are forbidden."))
    if (obj.get("parameters") or {}) != (old.get("parameters") or {}):
        errors.append(forbidden("parameters", "updates to parameters are forbidden."))
    return errors


def _volume_attributes_class_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now_s)]


class VolumeAttributesClassStrategy(Strategy):
    table = KindTable(
        (NAME, column("DriverName", "The driver that understands it."), AGE), _volume_attributes_class_cells
    )

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_volume_attributes_class(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a change, then as a new class."""
        errors = self.validate_meta_update(obj, old)
        errors += validate_volume_attributes_class_update(obj, old)
        errors += self.validate_meta(obj)
        return errors + validate_volume_attributes_class(obj)


STRATEGY = VolumeAttributesClassStrategy
