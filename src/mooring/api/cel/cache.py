"""A cache that is bounded by the total size of its entries."""

from __future__ import annotations

from typing import Generic, TypeVar

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
