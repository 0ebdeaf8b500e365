"""Structural schemas of custom kinds, the correlation of old and new values, and paths to fields.

Input: `openAPIV3Schema` of a version. Output: `Schema` nodes; pairs of new and old values.

1. A node knows whether anything below it has a default, a list type, a rule or an embedded resource, so that a walk
   skips everything else.
2. `raw` is the schema as written. Only `value_rules` reads it.
3. Values are correlated by field name, items of a list only if its type is map, by their keys. Everything else has no
   old value.
4. Ratcheting: errors of a pair that did not change are ignored.

Selectable fields and rules name fields by paths: `.spec.color`, `.spec['a.b']`. Fields and entries of maps can be
named, items of lists cannot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.api.document import Document, same_json

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(slots=True, eq=False)
class Schema:
    """One node of a structural schema."""

    raw: Document
    type: str = ""
    is_nullable: bool = False
    default: Any = None
    """None: no default. A schema cannot have null as its default."""
    default_bytes: int = 0
    """The size of the default as JSON."""
    defaulted: tuple[str, ...] = ()
    """The names of the properties with a default."""
    properties: Mapping[str, Schema] = field(default_factory=dict)
    has_additional: bool = False
    """Whether fields without a schema of their own have a place at all."""
    additional: Schema | None = None
    items: Schema | None = None
    preserves_unknown: bool = False
    is_embedded: bool = False
    is_int_or_string: bool = False
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[Document, ...] = ()
    has_defaults_below: bool = False
    has_embedded_below: bool = False
    has_list_types_below: bool = False
    has_rules_below: bool = False

    @property
    def parts(self) -> Iterator[Schema]:
        """The nodes directly below."""
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items


def read_schema(raw: Document) -> Schema:
    """The nodes of a validated schema. Parts that are not structural are ignored."""
    additional, items = raw.get("additionalProperties"), raw.get("items")
    node = Schema(
        raw,
        type=raw.get("type", ""),
        is_nullable=raw.get("nullable", False),
        default=raw.get("default"),
        properties={name: read_schema(child) for name, child in (raw.get("properties") or {}).items()},
        has_additional=additional is not None,
        additional=read_schema(additional) if isinstance(additional, dict) else None,
        items=read_schema(items) if isinstance(items, dict) else None,
        preserves_unknown=raw.get("x-kubernetes-preserve-unknown-fields") is True,
        is_embedded=raw.get("x-kubernetes-embedded-resource", False),
        is_int_or_string=raw.get("x-kubernetes-int-or-string", False),
        list_type=raw.get("x-kubernetes-list-type") or "",
        map_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        map_type=raw.get("x-kubernetes-map-type") or "",
        rules=tuple(raw.get("x-kubernetes-validations") or ()),
    )
    return noted(node)


def noted(node: Schema) -> Schema:
    """The node, with the facts about the nodes below it."""
    parts = list(node.parts)
    node.default_bytes = len(msgspec.json.encode(node.default))
    node.defaulted = tuple(name for name, child in node.properties.items() if child.default is not None)
    node.has_defaults_below = any(part.default is not None or part.has_defaults_below for part in parts)
    node.has_embedded_below = any(part.is_embedded or part.has_embedded_below for part in parts)
    node.has_list_types_below = any(part.list_type in ("set", "map") or part.has_list_types_below for part in parts)
    node.has_rules_below = any(part.rules or part.has_rules_below for part in parts)
    return node


def schemas_in(raw: Document) -> Iterator[Document]:
    """A raw schema and all schemas inside of it."""
    yield raw
    for inner in _inner(raw):
        yield from schemas_in(inner)


def any_schema(raw: Document, holds: Callable[[Document], bool]) -> bool:
    return any(holds(raw_schema) for raw_schema in schemas_in(raw))


def _inner(raw: Document) -> Iterator[Document]:
    for name in ("items", "additionalProperties", "additionalItems", "not"):
        nested = raw.get(name)
        if isinstance(nested, dict):
            yield nested
        elif isinstance(nested, list):
            yield from nested
    for name in ("allOf", "anyOf", "oneOf"):
        yield from raw.get(name) or ()
    for name in ("properties", "patternProperties", "definitions", "dependencies"):
        for nested in (raw.get(name) or {}).values():
            if isinstance(nested, dict):
                yield nested


class CorrelatedValue:
    """A new value and the old value that it corresponds to."""

    __slots__ = ("_is_same", "_old_by_key", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Schema) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._is_same: bool | None = None
        self._old_by_key: dict[object, Any] | None = None

    @property
    def is_same(self) -> bool:
        if self._is_same is None:
            self._is_same = same_json(self.new, self.old)
        return self._is_same

    def field(self, name: str) -> CorrelatedValue | None:
        if not isinstance(self.old, dict) or not isinstance(self.new, dict):
            return None
        if name not in self.old or name not in self.new:
            return None
        nested = self.schema.properties.get(name) or self.schema.additional
        return CorrelatedValue(self.new[name], self.old[name], nested) if nested is not None else None

    def item(self, index: int) -> CorrelatedValue | None:
        if self.schema.items is None or not isinstance(self.old, list) or self.schema.list_type != "map":
            return None
        if self._old_by_key is None:
            self._old_by_key = items_by_key(self.schema, self.old)
        found = self._old_by_key.get(key_of(self.schema, self.new[index]))
        return CorrelatedValue(self.new[index], found, self.schema.items) if found is not None else None


def items_by_key(schema: Schema, items: Any) -> dict[object, Any]:
    """The items of a list that is a map; empty if it is none."""
    found: dict[object, Any] = {}
    if schema.type != "array" or schema.list_type != "map" or not schema.map_keys or not isinstance(items, list):
        return found
    for item in items:
        key = key_of(schema, item)
        if key is not None:
            found.setdefault(key, item)
    return found


def key_of(schema: Schema, item: Any) -> object:
    """What an item is known by; None if it lacks a key, or has one that is no plain value."""
    if not isinstance(item, dict):
        return None
    key = []
    for name in schema.map_keys:
        value = item.get(name)
        if not isinstance(value, str | int | float):
            return None
        key.append((type(value), value))
    return tuple(key)


def json_identity(value: Any) -> Hashable:
    """Equal for two values exactly if `same_json` holds for them, so that a set finds duplicates in linear time."""
    if isinstance(value, dict):
        return dict, frozenset((name, json_identity(item)) for name, item in value.items())
    if isinstance(value, list):
        return list, tuple(map(json_identity, value))
    return type(value), value


# --- paths to fields ------------------------------------------------------------------------------------------


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
    """There is no field at a path."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    path: str
    root: str
    schema: Schema | None


def read_field_path(text: str, schema: Schema | None, *, may_index: bool = True) -> FieldPath:
    """The schema at a path. Raises `FieldPathError`."""
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
