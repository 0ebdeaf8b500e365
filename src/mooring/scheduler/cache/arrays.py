"""Names for the arrays of the columns, and the one way in which they grow.

Every column is an array whose last axis is the row. Capacity doubles, so that adding a node costs the same on the
average whatever the size of the cluster.
"""

from __future__ import annotations

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
