"""List types: lists that are sets, and lists that are maps, hold nothing twice.

Comes in   an object and its schema
Goes out   an error for each item that comes a second time; the third one is not told
"""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.apiserver.custom.schema import Schema
from mooring.apiserver.validation.fields import FieldError, duplicate, invalid

_encode = msgspec.json.Encoder(order="sorted").encode


def validate_list_type(value: Any, schema: Schema | None, path: str = "") -> list[FieldError]:
    if schema is None or not (schema.has_list_types_below or schema.list_type in ("set", "map")):
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        for name, inner in value.items():
            held = schema.properties.get(name)
            if schema.additional is not None:
                errors += validate_list_type(inner, schema.additional, f"{path}[{name}]")
            if held is not None:
                errors += validate_list_type(inner, held, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        match schema.list_type:
            case "set":
                errors += [duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value)]
            case "map":
                errors += _validate_map(value, schema, path)
        for index, item in enumerate(value):
            errors += validate_list_type(item, schema.items, f"{path}[{index}]")
    return errors


def _validate_map(items: list[Any], schema: Schema, path: str) -> list[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    keys: list[Document] = [
        {name: item[name] for name in schema.map_keys if item is not None and name in item} for item in items
    ]
    return [duplicate(f"{path}[{index}]", dict(sorted(keys[index].items()))) for index in _repeated(keys)]


def _repeated(items: list[Any]) -> list[int]:
    """Where something comes for the second time."""
    seen: dict[bytes, int] = {}
    found = []
    for index, item in enumerate(items):
        key = _encode(item)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found
