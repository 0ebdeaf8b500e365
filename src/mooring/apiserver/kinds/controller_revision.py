"""ControllerRevision (apps/v1): the immutable history of a StatefulSet or DaemonSet."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, NONE, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.schema_rules import struct_rules

_RULES = struct_rules("apps", "ControllerRevision")


def validate_controller_revision(obj: Document) -> list[FieldError]:
    errors = _RULES.validate(obj, "")
    data = obj.get("data")
    if data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(required("data", "data must be a valid JSON object"))
    return errors


def validate_revision_data(obj: Document, old: Document) -> list[FieldError]:
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


class ControllerRevisionStrategy(Strategy):
    table = KindTable(
        (NAME, column("Controller", "Whose history it is."), column("Revision", "Its number in that history."), AGE),
        _controller_revision_cells,
    )

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_controller_revision(obj)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta(obj)
        errors += _RULES.validate(obj, "")
        errors += validate_revision_data(obj, old)
        return errors


STRATEGY = ControllerRevisionStrategy
