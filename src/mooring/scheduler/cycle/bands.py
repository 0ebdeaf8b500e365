"""Bands: rows that the filters and scores of the cluster cannot tell apart, and the best rows of each band.

Comes in   the ranks that are kept of a shape; the axes by which those plugins tell rows apart (see `Banded`)
Goes out   the bands with rows that fit, and the best rows of each

Spreading judges by domain: all nodes of a zone get the same answer, and with a preference for emptier nodes all those
of the zone that have as many pods of the kind. Of each band only the rows with the highest rank can be best, whatever
is said of the band. When a pod comes or goes, one row moves.

 1. `counts[band]` is how many rows of the band fit. The best rows of a band are those with its highest rank,
    ascending, or None when nobody knows them.
 2. An axis says something else of a row only when the row has been logged as changed; until then bands stand.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, places_of_max
from mooring.scheduler.cache.labels import LabelColumn
from mooring.scheduler.cycle.kept import REFUSED
from mooring.scheduler.framework.plugin import Axis

BANDS_MAX = 64
"""With more, asking each is no gain."""


class Bands:
    """The rows of one shape by band."""

    __slots__ = ("_best", "_best_rank", "_counters", "_number_of", "_of_row", "_ranked", "axes", "counts")

    def __init__(self, axes: tuple[Axis, ...], ranked: Int64s) -> None:
        """`ranked` is read again whenever the best rows of a band are to be found."""
        self.axes = axes
        self._counters = [axis for axis in axes if not isinstance(axis, LabelColumn)]
        self._ranked = ranked
        _, firsts, self._of_row = np.unique(_together(axes, len(ranked)), return_index=True, return_inverse=True)
        self._number_of = {self._key(row): number for number, row in enumerate(firsts.tolist())}
        fitting = self._of_row[ranked != REFUSED]
        self.counts: list[int] = np.bincount(fitting, minlength=len(firsts)).tolist()
        self._best: list[list[int] | None] = [None] * len(firsts)
        self._best_rank = [REFUSED] * len(firsts)

    @property
    def are_too_many(self) -> bool:
        return len(self.counts) > BANDS_MAX

    def move(self, row: int, old_rank: int, rank: int) -> bool:
        """A row has another rank, and may be in another band. False: bands do not pay any more."""
        for counter in self._counters:
            if not counter.registered:
                return False  # nobody counts for us any more
        old, band = self._of_row.item(row), self._number(row)
        if old_rank != REFUSED:
            self._take(old, row, old_rank)
        self._of_row[row] = band
        if rank != REFUSED:
            self._put(band, row, rank)
        return len(self.counts) <= BANDS_MAX

    def standing(self) -> list[int]:
        """The bands that have rows that fit."""
        return [band for band, count in enumerate(self.counts) if count]

    def rank(self, band: int) -> int:
        """The highest rank in a band that has rows that fit."""
        if self._best[band] is None:
            self.best(band)
        return self._best_rank[band]

    def best(self, band: int) -> list[int]:
        """The best rows of a band that has rows that fit."""
        best = self._best[band]
        if best is None:
            ranks = np.where(self._of_row == band, self._ranked, REFUSED)
            self._best_rank[band] = int(ranks.max())
            best = self._best[band] = places_of_max(ranks).tolist()
        return best

    def _take(self, band: int, row: int, rank: int) -> None:
        self.counts[band] -= 1
        best = self._best[band]
        if best is not None and rank == self._best_rank[band]:
            del best[bisect_left(best, row)]
            if not best:
                self._best[band] = None

    def _put(self, band: int, row: int, rank: int) -> None:
        self.counts[band] += 1
        best = self._best[band]
        if best is not None and rank == self._best_rank[band]:
            insort(best, row)
        elif self.counts[band] == 1 or (best is not None and rank > self._best_rank[band]):
            self._best[band], self._best_rank[band] = [row], rank

    def _number(self, row: int) -> int:
        key = self._key(row)
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = len(self.counts)
            self.counts.append(0)
            self._best.append(None)
            self._best_rank.append(REFUSED)
        return number

    def _key(self, row: int) -> tuple[int, ...]:
        return tuple([_values(axis).item(row) for axis in self.axes])


def _together(axes: tuple[Axis, ...], height: int) -> Int64s:
    """Per row: one number for what all axes say of it."""
    together = np.zeros(height, dtype=np.int64)
    for axis in axes:
        values = _values(axis)[:height]
        together = together * (int(values.max(initial=0)) + 1) + values
    return together


def _values(axis: Axis) -> Int64s:
    return axis.codes if isinstance(axis, LabelColumn) else axis.rows
