"""What is wrong with a controller revision: a remembered state, which is written once."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import nonnegative_faults
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE


def controller_revision_faults(obj: Document) -> list[Fault]:
    faults = revision_number_faults(obj)
    data = obj.get("data")
    if data is None:
        faults.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        faults.append(required("data", "data must be a valid JSON object"))
    return faults


def revision_number_faults(obj: Document) -> list[Fault]:
    return nonnegative_faults(obj.get("revision"), "revision")


def revision_data_faults(obj: Document, old: Document) -> list[Fault]:
    if obj.get("data") == old.get("data"):
        return []
    return [invalid("data", obj.get("data"), IMMUTABLE)]
