"""Paths to fields, as selectable fields and rules write them: `.spec.color`, `.spec['a.b']`.

Input: a path and the schema where it starts. Output: the path as errors print it, and the schema at its end; or a
`FieldPathError`.

1. Fields and entries of maps can be named, items of lists cannot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mooring.apiserver.custom.schema import Schema

_TOKENS = re.compile(r"'(?:[^'\\]|\\.|\\)*'|[.\[\]]|'[^.\[\]]*|[^.\[\]]+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


class FieldPathError(Exception):
    """A path that leads nowhere."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    path: str
    root: str
    schema: Schema | None


def read_field_path(text: str, schema: Schema | None, *, may_index: bool = True) -> FieldPath:
    """Where a path leads. Raises `FieldPathError`."""
    tokens = _TOKENS.findall(text)
    path, root, position = "", "", 0

    def take() -> str:
        nonlocal position
        if position >= len(tokens):
            raise FieldPathError("unexpected end of JSON path")
        position += 1
        return str(tokens[position - 1])

    while position < len(tokens):
        token = take()
        if token == "[":
            if not may_index:
                raise FieldPathError("array notation is not allowed")
            quoted = take()
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise FieldPathError(f"expected single quoted string but got {quoted}")
            name = _unescaped(quoted[1:-1])
        elif token == ".":
            name = take()
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
        path, schema = _step(path, schema, name)
        root = root or name
        if token == "[":
            end = take()
            if end != "]":
                raise FieldPathError(f"expected ] but got {end}")
    return FieldPath(path, root, schema)


def _step(path: str, schema: Schema | None, name: str) -> tuple[str, Schema | None]:
    if schema is not None and schema.properties:
        if name not in schema.properties:
            raise FieldPathError("does not refer to a valid field")
        return (f"{path}.{name}" if path else name), schema.properties[name]
    if schema is not None and schema.has_additional:
        return f"{path}[{name}]", schema.additional
    raise FieldPathError("does not refer to a valid field")


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[1]]

    return _ESCAPE.sub(replaced, text)
