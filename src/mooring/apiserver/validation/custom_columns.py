"""What is wrong with the columns, the selectable fields and the subresources of a custom kind."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.custom.field_paths import FieldPathError, read_field_path
from mooring.apiserver.custom.schema import Schema
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, required, too_many

SELECTABLE_FIELDS_MAX = 8
_TYPES = ("boolean", "date", "integer", "number", "string")
_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def column_faults(column: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not column.get("name"):
        faults.append(required(f"{path}.name"))
    one_of = f"must be one of {','.join(_TYPES)}"
    if not column.get("type"):
        faults.append(required(f"{path}.type", one_of))
    elif column["type"] not in _TYPES:
        faults.append(invalid(f"{path}.type", column["type"], one_of))
    if column.get("format") and column["format"] not in _FORMATS:
        faults.append(invalid(f"{path}.format", column["format"], f"must be one of {','.join(_FORMATS)}"))
    if not column.get("jsonPath"):
        faults.append(required(f"{path}.JSONPath"))
    else:
        faults += _json_path_faults(column["jsonPath"], f"{path}.JSONPath")
    return faults


def selectable_faults(
    fields: Sequence[Document], schema: Schema, path: str, *, may_be_too_many: bool = False
) -> list[Fault]:
    faults: list[Fault] = []
    known: dict[str, None] = {}
    for index, field in enumerate(fields):
        place, text = f"{path}[{index}].jsonPath", field.get("jsonPath", "")
        if not text:
            faults.append(required(place))
            continue
        try:
            found = read_field_path(text, schema, may_index=False)
        except FieldPathError as error:
            faults.append(invalid(place, text, f"is an invalid path: {error}"))
            continue
        if found.root == "metadata":
            faults.append(invalid(place, text, "must not point to fields in metadata"))
        if found.schema is None or found.schema.type not in _SELECTABLE_TYPES:
            faults.append(invalid(place, text, _NOT_SELECTABLE))
        if found.path in known:
            faults.append(duplicate(place, text))
        known[found.path] = None
    if len(known) > SELECTABLE_FIELDS_MAX and not may_be_too_many:
        faults.append(too_many(path, len(known), SELECTABLE_FIELDS_MAX))
    return faults


def subresources_faults(subresources: Document | None, path: str) -> list[Fault]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    faults: list[Fault] = []
    for field, below in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text, place = scale.get(field, ""), f"{path}.scale.{field}"
        if not text:
            faults.append(required(place))
            continue
        wrong = _json_path_faults(text, place)
        if not wrong and not text.startswith(below):
            wrong = [invalid(place, text, f"should be a json path under {below[:-1]}")]
        faults += wrong
    text, place = scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"
    if text:
        wrong = _json_path_faults(text, place)
        if not wrong and not text.startswith((".spec.", ".status.")):
            wrong = [invalid(place, text, "should be a json path under either .spec or .status")]
        faults += wrong
    return faults


def _json_path_faults(text: str, path: str) -> list[Fault]:
    return [] if text.startswith(".") else [invalid(path, text, "must be a simple json path starting with .")]
