"""Correlation: which old value a new one stands for, so that what was there before may stay as it is.

Comes in   a new and an old value, and their schema
Goes out   pairs for the fields and items of both; whether nothing changed

 1. Fields go by their name; items of a list only if it is a map, by its keys. Everything else has no old value.
 2. A pair that did not change may break rules that came later: its errors are let pass ("ratcheting").
"""

from __future__ import annotations

from typing import Any

from mooring.apiserver.custom.schema import Schema


class Pair:
    """A new value and the old one for which it stands."""

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

    def field(self, name: str) -> Pair | None:
        if not isinstance(self.old, dict) or not isinstance(self.new, dict):
            return None
        if name not in self.old or name not in self.new:
            return None
        held = self.schema.properties.get(name) or self.schema.additional
        return Pair(self.new[name], self.old[name], held) if held is not None else None

    def item(self, index: int) -> Pair | None:
        if self.schema.items is None or not isinstance(self.old, list) or self.schema.list_type != "map":
            return None
        if self._old_by_key is None:
            self._old_by_key = items_by_key(self.schema, self.old)
        found = self._old_by_key.get(key_of(self.schema, self.new[index]))
        return Pair(self.new[index], found, self.schema.items) if found is not None else None


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


def same_json(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike in Python, true is not 1, and 1 is not 1.0."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(name in other and same_json(value, other[name]) for name, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and bool(one == other)
