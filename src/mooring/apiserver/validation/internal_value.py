"""Values as kube-apiserver prints its own structs in messages: every field, under Go's name.

Comes in   a part of a document and the name of its type
Goes out   a value that prints like the Go struct; a diff of two of them

 1. Go's names are guessed by a capital letter: nobody reads them as an interface, but people read the messages.
"""

from __future__ import annotations

import difflib
import json

from mooring.api.document import Document
from mooring.api.schema.model import Basic, ListOf, MapOf, Scalar, Struct, Type
from mooring.api.schema.tables import struct_named

_ZEROS = {Basic.STRING: "", Basic.BOOL: False, Basic.INT32: 0, Basic.INT64: 0, Basic.INT: 0, Basic.QUANTITY: "0"}
_CONTEXT_LINES = 3


def internal_value(value: Document, struct_name: str, package: str = "core") -> Document:
    """A struct of one of the groups with all its fields."""
    return _struct(value, struct_named(package, struct_name))


def internal_values(values: object, struct_name: str) -> list[Document] | None:
    """A list of structs; None prints as Go's empty list."""
    assert values is None or isinstance(values, list)
    return [internal_value(value, struct_name) for value in values] if values is not None else None


def internal_diff(old: Document, new: Document, struct_name: str) -> str:
    """What differs, as lines of JSON with a few lines around."""
    before, after = (
        json.dumps(internal_value(value, struct_name), indent=1, ensure_ascii=False).splitlines()
        for value in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, lineterm="", n=_CONTEXT_LINES))[2:]
    return "".join(f"{line}\n" for line in lines)


def _struct(value: Document, struct: Struct) -> Document:
    return {
        name[:1].upper() + name[1:]: _value(value.get(name), field.type, field.is_pointer)
        for name, field in struct.fields.items()
    }


def _value(value: object, kind: Type, is_pointer: bool) -> object:
    match kind:
        case Struct():
            if isinstance(value, dict):
                return _struct(value, kind)
            return None if is_pointer else _struct({}, kind)
        case ListOf(item):
            return [_value(each, item, True) for each in value] if isinstance(value, list) else None
        case MapOf(item):
            return {key: _value(each, item, True) for key, each in value.items()} if isinstance(value, dict) else None
        case Scalar():
            return value if value is not None or is_pointer else _ZEROS.get(kind.basic)
