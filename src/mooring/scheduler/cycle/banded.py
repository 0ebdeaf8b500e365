"""Deciding by bands: one row of each band is asked, on behalf of all of them.

Comes in   an attempt whose PreFilters were asked, and the bands of its shape
Goes out   the rows with the highest total, and how many rows fit: the same as if every row had been asked

 1. Where anybody has a say who must see every row, there is no answer here.
 2. Nobody is refused here: why a row does not fit is not found out, only that others do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import NamedTuple, overload

from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.bands import Bands
from mooring.scheduler.framework.plugin import EVEN, SKIP, Banded
from mooring.scheduler.framework.status import Rejection

NEAR = 24
"""A row is looked for within so many others to both sides of where it should be."""


class BestInBands(NamedTuple):
    """What a decision needs to know."""

    rows: Sequence[int]
    feasible_count: int


def best_in_bands(attempt: Attempt, bands: Bands) -> BestInBands | None:
    """The feasible rows with the highest total, ascending. None: there are none, or every row has to be asked.

    Raises `InvalidScoreError`.
    """
    if attempt.rejection is not None or not attempt.is_ordinary:
        return None
    left = [(band, bands.best(band)) for band in bands.standing()]
    for use in attempt.asked:
        plugin, state = use.plugin, attempt.states[use.plugin.name]
        if not isinstance(plugin, Banded):
            return None
        left = [(band, rows) for band, rows in left if not plugin.filter_row(state, rows[0])]
    feasible_count = sum([bands.counts[band] for band, _ in left])
    totals = _totals(attempt, bands, left, feasible_count) if feasible_count else None
    if totals is None:
        return None
    highest = max(totals)
    best = [rows for (_, rows), total in zip(left, totals, strict=True) if total == highest]
    return BestInBands(best[0] if len(best) == 1 else _Merged(best), feasible_count)


def _totals(attempt: Attempt, bands: Bands, left: list[tuple[int, list[int]]], feasible_count: int) -> list[int] | None:
    """The highest total in each band that is left; None if a score has to see every row."""
    totals = [bands.rank(band) for band, _ in left]
    if feasible_count == 1:
        return totals  # as everywhere: where there is no choice nobody is asked for scores
    if attempt.kept.score_failure is not None:
        return None
    pod, height = attempt.pod, attempt.columns.height
    for use in attempt.profile.scores:
        if use.is_row_local or not use.plugin.may_score(pod):
            continue
        if use.pre_score is None:
            state = use.plugin.prepare_score(pod)
        elif feasible_count == height:
            state = use.pre_score.pre_score(pod, slice(0, height))
        else:
            return None  # it wants to know which rows
        if state is SKIP or state is EVEN:
            continue
        if isinstance(state, Rejection) or not isinstance(use.plugin, Banded):
            return None
        scores = [use.plugin.score_row(state, rows[0]) for _, rows in left]
        scores = use.plugin.normalise_few(scores)
        totals = [total + use.weight * score for total, score in zip(totals, scores, strict=True)]
    return totals


class _Merged(Sequence[int]):
    """The rows of several bands, ascending. Seldom is more than one of them wanted, so nothing is put together."""

    def __init__(self, bands: Sequence[Sequence[int]]) -> None:
        self._bands = bands
        self._length = sum(map(len, bands))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return merge(*self._bands)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if isinstance(place, slice):
            return list(self)[place]
        if not 0 <= place < self._length:
            raise IndexError(f"place {place} of {self._length} rows")
        lowest, highest = min([band[0] for band in self._bands]), max([band[-1] for band in self._bands])
        # Rows of bands lie scattered, as nodes of zones do: the one at a place is looked for where it should be.
        guess, margin = (highest - lowest) * place // self._length, NEAR * (highest - lowest) // self._length
        starts = [bisect_left(band, lowest + guess - margin) for band in self._bands]
        ends = [bisect_right(band, lowest + guess + margin) for band in self._bands]
        if sum(starts) <= place < sum(ends):
            near = [row for band, start, end in zip(self._bands, starts, ends, strict=True) for row in band[start:end]]
            near.sort()
            return near[place - sum(starts)]
        return self._searched(place, lowest, highest)

    def _searched(self, place: int, lowest: int, highest: int) -> int:
        """The same for rows that lie otherwise."""
        while lowest < highest:
            middle = (lowest + highest) // 2
            if sum([bisect_right(band, middle) for band in self._bands]) > place:
                highest = middle
            else:
                lowest = middle + 1
        return lowest
