"""Array types of the columns, their growth, sorted rows, and the log of changed rows.

The last axis of every array is the row. Capacity doubles, so adding a node has a constant amortized cost.

A reader that caches results for 5,000 rows needs the few rows that changed. `ChangeLog` returns them; comparing 5,000
versions would cost more than computing the few again.

1. A position in the log is the number of all changes so far. It only grows, and means the same to every reader.
2. The log holds at most `LOG_LENGTH_MAX` changes. A reader with an older position must read all rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

Int64s: TypeAlias = npt.NDArray[np.int64]
UInt8s: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Float64s: TypeAlias = npt.NDArray[np.float64]

ReasonBits: TypeAlias = "Int64s | UInt8s"
"""Per row: 0 if a filter accepts it, otherwise a bit for each of the filter's reasons."""

Rows: TypeAlias = "Int64s | slice"
"""The rows to evaluate: a slice (no copy), or an array of row numbers."""

Scalar = TypeVar("Scalar", bound=np.generic)

CAPACITY_MIN = 64


def grown(array: npt.NDArray[Scalar], length: int, fill: int = 0) -> npt.NDArray[Scalar]:
    """The same array with its last axis at least `length` long; new elements are `fill`."""
    old = array.shape[-1]
    if length <= old:
        return array
    larger = np.full((*array.shape[:-1], capacity_for(length)), fill, dtype=array.dtype)
    larger[..., :old] = array
    return larger


def capacity_for(length: int) -> int:
    capacity = CAPACITY_MIN
    while capacity < length:
        capacity *= 2
    return capacity


def places_of_max(values: Int64s) -> Int64s:
    """The indexes of the largest value, ascending."""
    is_largest: Bools = values == values.max()
    return is_largest.nonzero()[0]


def length_of(rows: Rows) -> int:
    """Number of rows."""
    return rows.stop - (rows.start or 0) if isinstance(rows, slice) else len(rows)


def row_numbers(rows: Rows) -> list[int] | range:
    """The rows as Python integers."""
    return range(rows.start or 0, rows.stop) if isinstance(rows, slice) else rows.tolist()


BLOCK_BITS = 12


class SortedRows(Sequence[int]):
    """Distinct rows in ascending order, of which one is added or removed at a time; reads like a list.

    A list would move all rows behind a new one: with a million rows this takes longer than a decision. This class has a
    list for each `1 << BLOCK_BITS` row numbers, and moves rows of one of them.
    """

    def __init__(self, rows: list[int]) -> None:
        """`rows` are distinct and ascending."""
        self._blocks: list[list[int]] = []
        self._length = 0
        if len(rows) == 1:
            self.add(rows[0])
        elif rows:
            count = (rows[-1] >> BLOCK_BITS) + 1
            cuts = [*(bisect_left(rows, number << BLOCK_BITS) for number in range(count)), len(rows)]
            self._blocks = [rows[first:last] for first, last in pairwise(cuts)]
            self._length = len(rows)

    def add(self, row: int) -> None:
        number = row >> BLOCK_BITS
        if number >= len(self._blocks):
            self._blocks += [[] for _ in range(len(self._blocks), number + 1)]
        block = self._blocks[number]
        place = bisect_left(block, row)
        if place == len(block) or block[place] != row:
            block.insert(place, row)
            self._length += 1

    def discard(self, row: int) -> None:
        number = row >> BLOCK_BITS
        if number >= len(self._blocks):
            return
        block = self._blocks[number]
        place = bisect_left(block, row)
        if place < len(block) and block[place] == row:
            del block[place]
            self._length -= 1

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._blocks)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> list[int]: ...

    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, slice):
            return list(islice(self, *place.indices(self._length)))
        left = place if place >= 0 else place + self._length
        if left >= 0:
            for block in self._blocks:
                if left < len(block):
                    return block[left]
                left -= len(block)
        raise IndexError(f"place {place} of {self._length} rows")


LOG_LENGTH_MAX = 1 << 16


class ChangeLog:
    """Changed rows in order. Each reader has its own position."""

    __slots__ = ("_forgotten", "_rows", "position")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._forgotten = 0
        self.position = 0

    def append(self, row: int) -> None:
        self._rows.append(row)
        self.position += 1
        if len(self._rows) > LOG_LENGTH_MAX:
            self._forget(LOG_LENGTH_MAX // 2)

    def extend(self, rows: Sequence[int]) -> None:
        self._rows.extend(rows)
        self.position += len(rows)
        if len(self._rows) > LOG_LENGTH_MAX:
            self._forget(len(self._rows) - LOG_LENGTH_MAX // 2)

    def _forget(self, count: int) -> None:
        del self._rows[:count]
        self._forgotten += count

    def since(self, position: int) -> Int64s | None:
        """The distinct rows that changed after `position`; None if the log does not reach back that far."""
        start = position - self._forgotten
        if start < 0:
            return None
        return np.array(sorted(set(self._rows[start:])), dtype=np.int64)

    def few_since(self, position: int, most: int) -> Sequence[int] | None:
        """As `since`, if at most `most` changes were logged after `position`; otherwise None."""
        if self.position - position > most or position < self._forgotten:
            return None
        recent = self._rows[position - self._forgotten :]
        return recent if len(recent) == 1 else sorted(set(recent))
