"""Defaulting: what nobody said, as the schema of a kind says it.

Comes in   an object, or a part of one, and its schema
Goes out   the same object with more fields

 1. A default is filled in where its parent is: a default of `spec.a` makes no `spec`.
 2. A null that may be none is replaced by the default. `pruning` has dropped it if there is none.
 3. What is filled in is a copy.
"""

from __future__ import annotations

from typing import Any

from mooring.apiserver.custom.schema import Schema


def fill_defaults(value: Any, schema: Schema | None) -> None:
    if schema is None or not schema.has_defaults_below:
        return
    if isinstance(value, dict):
        for name, held in schema.properties.items():
            if held.default is not None and (name not in value or (value[name] is None and not held.is_nullable)):
                value[name] = copied(held.default)
        for name, inner in value.items():
            property_schema = schema.properties.get(name)
            if property_schema is not None:
                fill_defaults(inner, property_schema)
            elif schema.additional is not None:
                if inner is None and not schema.additional.is_nullable:
                    inner = value[name] = copied(schema.additional.default)
                fill_defaults(inner, schema.additional)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if item is None and not schema.items.is_nullable:
                item = value[index] = copied(schema.items.default)
            fill_defaults(item, schema.items)


def copied(value: Any) -> Any:
    """A copy of JSON that shares nothing with it."""
    if isinstance(value, dict):
        return {name: copied(inner) for name, inner in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value
