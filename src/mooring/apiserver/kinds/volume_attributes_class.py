"""VolumeAttributesClass (storage.k8s.io/v1).

1. A class names a driver and at least one parameter, and is immutable.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.storage_class import parameters_faults, provisioner_faults
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.cells import age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column
from mooring.apiserver.validation.fields import Fault, forbidden, required


def volume_attributes_class_faults(obj: Document) -> list[Fault]:
    parameters = obj.get("parameters") or {}
    faults = provisioner_faults(obj.get("driverName", ""), "driverName")
    faults += parameters_faults(parameters, "parameters")
    if not parameters:
        faults.append(required("parameters", "must contain at least one key/value pair"))
    return faults


def volume_attributes_class_update_faults(obj: Document, old: Document) -> list[Fault]:
    faults = []
    if obj.get("driverName", "") != old.get("driverName", ""):
        faults.append(forbidden("driverName", "updates to driverName are forbidden."))
    if (obj.get("parameters") or {}) != (old.get("parameters") or {}):
        faults.append(forbidden("parameters", "updates to parameters are forbidden."))
    return faults


def _volume_attributes_class_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now_s)]


VOLUME_ATTRIBUTES_CLASS_TABLE = KindTable(
    (NAME, column("DriverName", "The driver that understands it."), AGE), _volume_attributes_class_cells
)


class VolumeAttributesClassStrategy(Strategy):
    table = VOLUME_ATTRIBUTES_CLASS_TABLE

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return volume_attributes_class_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a change, then as a new class."""
        faults = self.meta_update_faults(obj, old)
        faults += volume_attributes_class_update_faults(obj, old)
        faults += self.meta_faults(obj)
        return faults + volume_attributes_class_faults(obj)


STRATEGY = VolumeAttributesClassStrategy
