"""A heap with keys: the least item first, and any item by its key.

 1. A key is in the heap at most once. Among equal items the first one that was added comes first.
 2. An updated item keeps its place among equal items.
 3. The order is read when a value is pushed or updated. A value whose order changes in place must be updated.
 4. A deleted or replaced entry stays in the heap until it reaches the top or stale entries outnumber the live ones. So
    every operation takes amortized O(log n), with at most max(live, `STALE_MIN`) stale entries.
 5. Items that arrive in order, which is the common case, are appended to a queue beside the heap: taking the first one
    needs a single comparison.

The standard library's heap compares in C; a heap that tracks positions would have to update them in Python at every
swap.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, Self, TypeAlias, TypeVar

STALE_MIN = 64  # fewer stale entries are not swept

Key = TypeVar("Key")
Value = TypeVar("Value")


class Ordered(Protocol):
    """The result of a key function: numbers, texts, tuples."""

    def __lt__(self, other: Self, /) -> bool: ...


# (rank, sequence, version, key, value). Tuples are compared in C. The version is unique, so keys are never compared.
Entry: TypeAlias = tuple[Ordered, int, int, Key, Value]
SEQUENCE: Final = 1
KEY: Final = 3
VALUE: Final = 4


class KeyedHeap(Generic[Key, Value]):
    def __init__(self, rank: Callable[[Value], Ordered]) -> None:
        """The value with the least `rank` comes first."""
        self._rank = rank
        self._heap: list[Entry[Key, Value]] = []
        self._queue: deque[Entry[Key, Value]] = deque()
        self._entries: dict[Key, Entry[Key, Value]] = {}
        self._sequence = 0
        self._version = 0

    def push(self, key: Key, value: Value) -> None:
        """Add a value under a key that is not in the heap."""
        if key in self._entries:
            raise KeyError(f"{key!r} is already in the heap; update it instead")
        self._sequence += 1
        self._add(key, value, self._sequence)

    def update(self, key: Key, value: Value) -> None:
        """Replace the value of a key in the heap."""
        if key not in self._entries:
            raise KeyError(f"{key!r} is not in the heap; push it first")
        self._add(key, value, self._entries[key][SEQUENCE])
        self._sweep_if_needed()

    def put(self, key: Key, value: Value) -> None:
        """Push, or update if the key is in the heap."""
        if key in self._entries:
            self.update(key, value)
        else:
            self._sequence += 1
            self._add(key, value, self._sequence)

    def delete(self, key: Key) -> Value | None:
        """Remove and return the value of a key; None if it is not in the heap."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._sweep_if_needed()
        return entry[VALUE]

    def get(self, key: Key) -> Value | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[VALUE]

    def peek(self) -> tuple[Key, Value] | None:
        """The least item; None if the heap is empty."""
        queue, heap, entries = self._queue, self._heap, self._entries
        while queue and entries.get(queue[0][KEY]) is not queue[0]:
            queue.popleft()
        while heap and entries.get(heap[0][KEY]) is not heap[0]:
            heapq.heappop(heap)
        if queue and not (heap and heap[0] < queue[0]):
            return queue[0][KEY], queue[0][VALUE]
        return (heap[0][KEY], heap[0][VALUE]) if heap else None

    def pop(self) -> tuple[Key, Value] | None:
        """Remove and return the least item; None if the heap is empty."""
        least = self.peek()
        if least is not None:
            self.delete(least[0])
        return least

    def in_order(self) -> list[tuple[Key, Value]]:
        """All items in the order of `pop`; O(n log n)."""
        return [(entry[KEY], entry[VALUE]) for entry in sorted(self._entries.values())]

    def first(self, count: int) -> list[Value]:
        """The first values in the order of `pop`; O(n)."""
        return [entry[VALUE] for entry in heapq.nsmallest(count, self._entries.values())]

    @property
    def stale(self) -> int:
        """The number of stale entries."""
        return len(self._queue) + len(self._heap) - len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def _add(self, key: Key, value: Value, sequence: int) -> None:
        self._version += 1
        entry = (self._rank(value), sequence, self._version, key, value)
        self._entries[key] = entry
        if not self._queue or self._queue[-1] < entry:
            self._queue.append(entry)
        else:
            heapq.heappush(self._heap, entry)

    def _sweep_if_needed(self) -> None:
        entries, stale = self._entries, self.stale
        if stale <= STALE_MIN or stale <= len(entries):
            return
        self._queue = deque([entry for entry in self._queue if entries.get(entry[KEY]) is entry])
        self._heap = [entry for entry in self._heap if entries.get(entry[KEY]) is entry]
        heapq.heapify(self._heap)
