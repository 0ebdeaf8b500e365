"""A cache with a limit on its number of entries.

1. A full cache is emptied. That is cheaper than tracking the order of use, and happens only to callers whose keys do
   not repeat.
2. Values are shared between callers: no caller changes one.
"""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memory(dict[Key, Value]):
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
