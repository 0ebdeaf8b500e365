"""Fields of JSONSchemaProps that are a schema or something else: Go has decoders of its own for them.

Input: values of `items`, `additionalProperties`, `additionalItems` and `dependencies`. Output: the same with canonical
schemas.

1. Unknown fields in such a schema are dropped without an error, because Go's inner decoder is not strict.
2. `items` and `dependencies` ignore values of other types; `additional…` reject them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mooring.apiserver.wire.scalars import Irregular, ScalarError

NOT_A_SCHEMA = "boolean or JSON schema expected"

_Schema = Callable[[Any, list[str]], Any]


def _items(schema: _Schema) -> _Schema:
    def change(raw: Any, dropped: list[str]) -> Any:
        if isinstance(raw, dict):
            return schema(raw, [])
        if isinstance(raw, list) and raw:
            return [schema({} if item is None else item, []) for item in raw]
        return None

    return change


def _schema_or_bool(schema: _Schema) -> _Schema:
    def change(raw: Any, dropped: list[str]) -> Any:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, dict):
            return schema(raw, [])
        raise ScalarError(NOT_A_SCHEMA)

    return change


def _dependencies(schema: _Schema) -> _Schema:
    def change(raw: Any, dropped: list[str]) -> Any:
        if not isinstance(raw, dict):
            raise Irregular
        return {key: schema(value, []) if isinstance(value, dict) else _names(value) for key, value in raw.items()}

    return change


def _names(raw: Any) -> Any:
    if not isinstance(raw, list) or not raw:
        return None
    if not all(isinstance(name, str) for name in raw):
        raise Irregular
    return raw


SCHEMA_VALUES: Mapping[str, Callable[[_Schema], _Schema]] = {
    "items": _items,
    "additionalProperties": _schema_or_bool,
    "additionalItems": _schema_or_bool,
    "dependencies": _dependencies,
}
"""By field of JSONSchemaProps."""
