"""The keyed heap: the least item first, and any item by its key.

Comes in   values, each under a key
Goes out   the least value; among equals, the one that came first

 1. A key is in the heap at most once.
 2. An updated value keeps its place among equals: being changed does not cost a turn.
 3. The order is read when a value is pushed or updated. A value whose order changes in place must be updated.
 4. An entry lives while its key still points to it. Dead ones stay where they are until they come to the top or
    outnumber the living; so every operation takes O(log n) on average, and at most max(living, `DEAD_MIN`) dead ones
    are kept.
 5. What comes in order, as nearly everything does that waits for its turn, stands in a line beside the heap: from there
    the first is taken without any comparison but one with the top of the heap.

Why not a heap that knows positions and takes an entry out at once: the standard library's heap compares in C, and a
table of positions would have to be kept in Python at every swap.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Protocol, Self, TypeAlias, TypeVar

DEAD_MIN = 64  # fewer dead entries are not worth sweeping out

Key = TypeVar("Key")
Value = TypeVar("Value")


class Ordered(Protocol):
    """What a key function may answer: numbers, texts, tuples of them."""

    def __lt__(self, other: Self, /) -> bool: ...


# (rank, sequence, version, key, value). A tuple, because tuples are compared in C; the version ends every comparison
# before the key, which need not have an order: an updated entry may equal its dead self in rank and sequence.
Entry: TypeAlias = tuple[Ordered, int, int, Key, Value]
SEQUENCE: Final = 1
KEY: Final = 3
VALUE: Final = 4


@dataclass(frozen=True, slots=True)
class HeapStatistics:
    size: int
    size_max: int
    dead: int
    sweeps: int


class KeyedHeap(Generic[Key, Value]):
    """Made by `ordered_by(key function)` or `ordered_by_less(less than)`."""

    def __init__(self, rank: Callable[[Value], Ordered]) -> None:
        self._rank = rank
        self._heap: list[Entry[Key, Value]] = []
        self._line: deque[Entry[Key, Value]] = deque()
        self._living: dict[Key, Entry[Key, Value]] = {}
        self._sequence = 0
        self._version = 0
        self._size_max = 0
        self._sweeps = 0

    @classmethod
    def ordered_by(cls, order: Callable[[Value], Ordered]) -> Self:
        """The least `order(value)` first."""
        return cls(order)

    @classmethod
    def ordered_by_less(cls, less: Callable[[Value, Value], bool]) -> Self:
        """First the value that is `less` than the others."""

        def rank(value: Value) -> Ordered:
            return _Rank(value, less)

        return cls(rank)

    def push(self, key: Key, value: Value) -> None:
        """Add a value under a key that is not in the heap."""
        if key in self._living:
            raise KeyError(f"{key!r} is already in the heap; update it instead")
        self._sequence += 1
        self._add(key, value, self._sequence)

    def update(self, key: Key, value: Value) -> None:
        """Give a key that is in the heap another value."""
        if key not in self._living:
            raise KeyError(f"{key!r} is not in the heap; push it first")
        self._add(key, value, self._living[key][SEQUENCE])
        dead = len(self._line) + len(self._heap) - len(self._living)
        if dead > DEAD_MIN and dead > len(self._living):
            self._sweep()

    def put(self, key: Key, value: Value) -> None:
        """Push, or update if the key is in the heap."""
        if key in self._living:
            self.update(key, value)
        else:
            self._sequence += 1
            self._add(key, value, self._sequence)

    def delete(self, key: Key) -> Value | None:
        """Take out the value under that key; None if there is none."""
        living = self._living
        entry = living.pop(key, None)
        if entry is None:
            return None
        dead = len(self._line) + len(self._heap) - len(living)
        if dead > DEAD_MIN and dead > len(living):
            self._sweep()
        return entry[VALUE]

    def get(self, key: Key) -> Value | None:
        entry = self._living.get(key)
        return None if entry is None else entry[VALUE]

    def peek(self) -> tuple[Key, Value] | None:
        """The least item, left where it is; None if the heap is empty."""
        line, heap, living = self._line, self._heap, self._living
        while line and living.get(line[0][KEY]) is not line[0]:
            line.popleft()
        while heap and living.get(heap[0][KEY]) is not heap[0]:
            heapq.heappop(heap)
        if line and not (heap and heap[0] < line[0]):
            return line[0][KEY], line[0][VALUE]
        return (heap[0][KEY], heap[0][VALUE]) if heap else None

    def pop(self) -> tuple[Key, Value] | None:
        """Take out the least item; None if the heap is empty."""
        least = self.peek()
        if least is not None:
            self.delete(least[0])
        return least

    def in_order(self) -> list[tuple[Key, Value]]:
        """All items as `pop` would hand them out, left where they are; O(n log n)."""
        return [(entry[KEY], entry[VALUE]) for entry in sorted(self._living.values())]

    def statistics(self) -> HeapStatistics:
        return HeapStatistics(
            size=len(self._living),
            size_max=self._size_max,
            dead=len(self._line) + len(self._heap) - len(self._living),
            sweeps=self._sweeps,
        )

    def __len__(self) -> int:
        return len(self._living)

    def __contains__(self, key: object) -> bool:
        return key in self._living

    def __iter__(self) -> Iterator[Key]:
        return iter(self._living)

    def _add(self, key: Key, value: Value, sequence: int) -> None:
        self._version += 1
        entry = (self._rank(value), sequence, self._version, key, value)
        self._living[key] = entry
        if not self._line or self._line[-1] < entry:
            self._line.append(entry)
        else:
            heapq.heappush(self._heap, entry)
        if len(self._living) > self._size_max:
            self._size_max = len(self._living)

    def _sweep(self) -> None:
        living = self._living
        self._line = deque([entry for entry in self._line if living.get(entry[KEY]) is entry])
        self._heap = [entry for entry in self._heap if living.get(entry[KEY]) is entry]
        heapq.heapify(self._heap)
        self._sweeps += 1


class _Rank(Generic[Value]):
    """A value that is compared by a given less-than; equal where neither is less, so that the sequence decides."""

    __slots__ = ("_less", "_value")

    def __init__(self, value: Value, less: Callable[[Value, Value], bool]) -> None:
        self._value = value
        self._less = less

    def __lt__(self, other: "_Rank[Value]") -> bool:
        return self._less(self._value, other._value)

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, _Rank)
        return not self._less(self._value, other._value) and not self._less(other._value, self._value)

    __hash__ = None  # type: ignore[assignment]  # equal ranks are not the same value
