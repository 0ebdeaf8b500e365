"""Array types of the columns, their growth, and the log of changed rows.

The last axis of every array is the row. Capacity doubles, so adding a node has a constant amortized cost.

A reader that caches results for 5,000 rows needs the few rows that changed. `ChangeLog` returns them; comparing 5,000
versions would cost more than computing the few again.

1. A position in the log is the number of all changes so far. It only grows, and means the same to every reader.
2. The log holds at most `LOG_LENGTH_MAX` changes. A reader with an older position must read all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

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
