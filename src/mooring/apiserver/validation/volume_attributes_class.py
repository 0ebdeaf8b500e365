"""What is wrong with a class of volume attributes: it names a driver and at least one parameter, and never changes."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, required
from mooring.apiserver.validation.storage_class import parameters_faults, provisioner_faults


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
