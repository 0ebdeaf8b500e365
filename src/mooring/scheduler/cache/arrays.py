"""Names for the arrays of the columns, and the one way in which they grow.

Every column is an array whose last axis is the row. Capacity doubles, so that adding a node costs the same on the
average whatever the size of the cluster.
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
"""Per row: 0 if a filter lets it through, else a bit for each of the filter's reasons."""

Rows: TypeAlias = "Int64s | slice"
"""Which rows are asked about: all of them as a slice (no copy), or a list of row numbers."""

Scalar = TypeVar("Scalar", bound=np.generic)

CAPACITY_MIN = 64


def grown(array: npt.NDArray[Scalar], length: int, fill: int = 0) -> npt.NDArray[Scalar]:
    """The same array with its last axis at least `length` long; new places hold `fill`."""
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
    """Where the largest value is, ascending."""
    is_largest: Bools = values == values.max()
    return is_largest.nonzero()[0]


def length_of(rows: Rows) -> int:
    """How many rows are asked about."""
    return rows.stop - (rows.start or 0) if isinstance(rows, slice) else len(rows)


LOG_LENGTH_MAX = 1 << 16


class ChangeLog:
    """Rows that changed, in order, with a position that readers keep."""

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
        """The distinct rows that changed after `position`, or None when the log no longer knows."""
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
