"""Tables that are filled on demand, whose entries refer to each other in circles, and that several threads use.

    found = _table.get(key)                     # complete entries only
    if found is None:
        with _table.filling() as entries:       # also those that are being filled, by this thread
            ...

1. An entry may be added to `entries` before what it refers to is there.
2. Other threads see an entry when everything that it refers to is complete: when the outermost `filling` ends.
3. One thread fills at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Entry = TypeVar("Entry")


class CircularTable(Generic[Key, Entry]):
    """A table of lazily made entries."""

    def __init__(self) -> None:
        self._complete: dict[Key, Entry] = {}
        self._entries: dict[Key, Entry] = {}
        self._lock = RLock()
        self._depth = 0
        self.get = self._complete.get
        """The complete entry of a key; None if there is none."""

    @contextmanager
    def filling(self) -> Iterator[dict[Key, Entry]]:
        """All entries, complete or not, which only this thread changes during the block."""
        with self._lock:
            self._depth += 1
            try:
                yield self._entries
            except BaseException:
                self._entries = dict(self._complete)  # what it was about to refer to is missing
                raise
            finally:
                self._depth -= 1
            if not self._depth:
                self._complete.update(self._entries)
