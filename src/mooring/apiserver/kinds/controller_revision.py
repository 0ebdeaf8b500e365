"""ControllerRevision (apps/v1): the immutable history of a StatefulSet or DaemonSet."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.workloads import nonnegative_faults
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.cells import NONE, age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column
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


def _controller_revision_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], _controller_cell(obj), obj.get("revision", 0), age(obj, now_s)]


def _controller_cell(obj: Document) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group, slash, _ = owner["apiVersion"].partition("/")
            kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
            return f"{kind.lower()}/{owner['name']}"
    return NONE


CONTROLLER_REVISION_TABLE = KindTable(
    (NAME, column("Controller", "Whose history it is."), column("Revision", "Its number in that history."), AGE),
    _controller_revision_cells,
)


class ControllerRevisionStrategy(Strategy):
    table = CONTROLLER_REVISION_TABLE

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return controller_revision_faults(obj)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_faults(obj)
        faults += revision_number_faults(obj)
        faults += revision_data_faults(obj, old)
        return faults


STRATEGY = ControllerRevisionStrategy
