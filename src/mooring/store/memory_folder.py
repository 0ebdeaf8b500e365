"""A folder of the memory store: records by key, sorted when somebody lists them.

Comes in   records that are put and removed
Goes out   records by key, and the keys in order

 1. `_sorted` is the order as it was at the last list. What came since is in `_added`, what went is in `_removed`.
 2. A few additions are inserted one by one, many are sorted in at once: a folder that fills up with a hundred thousand
    records is sorted once, and one record more costs a shift of the list, not a sort.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mooring.store.interface import Record

if TYPE_CHECKING:
    from mooring.store.memory_watch import MemoryWatch

_FEW = 32


class Folder:
    """The records directly inside of one path."""

    __slots__ = ("_added", "_removed", "_sorted", "path", "records", "watches")

    def __init__(self, path: str) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        self.watches: list[MemoryWatch] = []
        self._sorted: list[str] = []
        self._added: dict[str, None] = {}
        self._removed: dict[str, None] = {}

    def put(self, record: Record, *, is_new: bool) -> None:
        self.records[record.key] = record
        if is_new:
            if record.key in self._removed:
                del self._removed[record.key]
            else:
                self._added[record.key] = None

    def remove(self, key: str) -> None:
        del self.records[key]
        if key in self._added:
            del self._added[key]
        else:
            self._removed[key] = None

    def in_order(self) -> list[Record]:
        records = self.records
        return [records[key] for key in self._keys_in_order()]

    def keys_from(self, start: str) -> Iterator[str]:
        """The keys from `start` on. The folder must not change while somebody goes through them."""
        keys = self._keys_in_order()
        if not start or not keys or start <= keys[0]:
            return iter(keys)
        first = bisect_left(keys, start)
        return (keys[index] for index in range(first, len(keys)))

    def count_from(self, start: str) -> int:
        keys = self._keys_in_order()
        return len(keys) - bisect_left(keys, start)

    def _keys_in_order(self) -> list[str]:
        if self._removed:
            self._take_out_removed()
        if self._added:
            self._sort_in_added()
        return self._sorted

    def _take_out_removed(self) -> None:
        if len(self._removed) <= _FEW:
            for key in self._removed:
                del self._sorted[bisect_left(self._sorted, key)]
        else:
            self._sorted = [key for key in self._sorted if key not in self._removed]
        self._removed.clear()

    def _sort_in_added(self) -> None:
        if len(self._added) <= _FEW:
            for key in self._added:
                insort(self._sorted, key)
        else:
            # Two sorted runs one after the other are what Python's sort is quickest at.
            self._sorted.extend(sorted(self._added))
            self._sorted.sort()
        self._added.clear()
