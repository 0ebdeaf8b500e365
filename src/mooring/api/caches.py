"""Caches with a limit: on the number of their entries, or on their total size.

1. A full cache is emptied. That is cheaper than tracking the order of use, and happens only to callers whose keys do
   not repeat.
2. Values are shared between callers: no caller changes one.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(dict[Key, Value]):
    """Values by key. If `get` returns None, compute the value and `put` it."""

    __slots__ = ("size_max",)

    def __init__(self, size_max: int) -> None:
        super().__init__()
        self.size_max = size_max

    def put(self, key: Key, value: Value) -> Value:
        if len(self) >= self.size_max:
            self.clear()
        self[key] = value
        return value


Entry = TypeVar("Entry")


class SizedCache(Generic[Entry]):
    """Entries by text. A full cache starts empty again, which is cheaper than to keep the order of use."""

    __slots__ = ("entries", "size", "size_max")

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self.size = 0
        self.entries: dict[str, Entry] = {}

    def get(self, text: str) -> Entry | None:
        return self.entries.get(text)

    def add(self, text: str, entry: Entry, size: int) -> Entry:
        if self.size + size > self.size_max:
            self.entries.clear()
            self.size = 0
        self.entries[text] = entry
        self.size += size
        return entry
