"""Interned taint sets: nodes with the same taints share a number, and tolerations are weighed once for each number.

Comes in   taints of nodes
Goes out   `set_of_row` (a number for each row) and the distinct sets; a plugin judges the sets and gathers to rows

 1. Set 0 is the empty one. Sets are never renumbered: a cluster has a handful, whatever its size.
 2. `timeAdded` plays no part: two nodes tainted at different times are the same to a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mooring.api.views.node import Taint
from mooring.scheduler.cache.arrays import Int64s, grown

Scalar = TypeVar("Scalar", bound=np.generic)


class TaintColumns:
    """Which set of taints each row carries."""

    __slots__ = ("_number_of", "set_of_row", "sets")

    def __init__(self, capacity: int) -> None:
        self.sets: list[tuple[Taint, ...]] = [()]
        self.set_of_row: Int64s = np.zeros(capacity, dtype=np.int64)
        self._number_of: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}

    def set(self, row: int, taints: Sequence[Taint]) -> None:
        identity = tuple((taint.key, taint.value, taint.effect) for taint in taints)
        number = self._number_of.get(identity)
        if number is None:
            number = self._number_of[identity] = len(self.sets)
            self.sets.append(tuple(taints))
        self.set_of_row[row] = number

    def clear(self, row: int) -> None:
        self.set_of_row[row] = 0

    def judge(self, verdict: Callable[[tuple[Taint, ...]], int], dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """The verdict on each distinct set, as an array to gather with `set_of_row`."""
        return np.array([verdict(taints) for taints in self.sets], dtype=dtype)

    def grow(self, capacity: int) -> None:
        self.set_of_row = grown(self.set_of_row, capacity)
