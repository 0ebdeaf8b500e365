"""Rule values: a custom object as CEL sees it.

Comes in   JSON, and its schema
Goes out   CEL values: texts of some formats become bytes, durations and points in time, numbers become doubles

 1. Fields are under the names that CEL can write. What rules cannot see is left out.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from mooring.api.cel.conversions import TimeError, parse_duration, parse_timestamp
from mooring.api.cel.values import Duration, Timestamp, Value
from mooring.apiserver.custom.rule_types import escaped, with_object_meta
from mooring.apiserver.custom.schema import Schema


def cel_value(value: Any, schema: Schema, *, is_root: bool = False) -> Value:
    """A value of a schema. What does not fit is handed on as it is: other rules refuse it."""
    if is_root or schema.is_embedded:
        schema = with_object_meta(schema)
    match value:
        case dict():
            return _fields(value, schema)
        case list():
            items = schema.items
            return [cel_value(item, items) for item in value] if items is not None else []
        case str():
            return _text(value, schema.raw.get("format", "")) if schema.type == "string" else value
        case bool() | None:
            return value
        case int() | float():
            if schema.type == "number":
                return float(value)
            return int(value) if schema.type == "integer" else value
        case _:
            raise AssertionError(f"{value!r} is no JSON")


def _fields(fields: dict[str, Any], schema: Schema) -> dict[Value, Value]:
    found: dict[Value, Value] = {}
    for name, value in fields.items():
        if schema.additional is not None:
            found[name] = cel_value(value, schema.additional)
            continue
        held = schema.properties.get(name)
        cel_name = escaped(name) if held is not None else ""
        if held is not None and cel_name:
            found[cel_name] = cel_value(value, held)
    return found


def _text(text: str, form: str) -> Value:
    try:
        match form:
            case "byte":
                return base64.b64decode(text, validate=True)
            case "duration":
                return Duration(parse_duration(text))
            case "date":
                return Timestamp(*parse_timestamp(f"{text}T00:00:00Z"))
            case "date-time":
                return Timestamp(*parse_timestamp(text))
    except (TimeError, binascii.Error, ValueError):
        return text
    return text
