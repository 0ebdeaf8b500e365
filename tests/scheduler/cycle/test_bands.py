"""Bands: which rows fit in each, and which of them are best, whatever moves."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.labels import LabelColumn
from mooring.scheduler.cache.selectors import Counter
from mooring.scheduler.cycle.bands import BANDS_MAX, Bands
from mooring.scheduler.cycle.kept import REFUSED


def zones(*values: str) -> LabelColumn:
    column = LabelColumn("zone", len(values))
    for row, value in enumerate(values):
        column.set(row, value)
    return column


def counted(*counts: int) -> Counter:
    counter = Counter((), wants_terminating=False)
    counter.rows = np.array(counts, dtype=np.int64)
    counter.registered = True
    return counter


def told(bands: Bands) -> list[tuple[int, int, list[int]]]:
    """Of each band with rows that fit: how many, the highest rank, and who has it."""
    return sorted((bands.counts[band], bands.rank(band), bands.best(band)) for band in bands.standing())


def test_rows_are_told_apart_by_all_axes_together() -> None:
    ranked = np.array([5, 7, 7, REFUSED, 9, 7])
    assert told(Bands((zones(*"aabbab"),), ranked)) == [(2, 7, [2, 5]), (3, 9, [4])]
    both = Bands((zones(*"aabbab"), counted(0, 0, 1, 1, 1, 1)), ranked)
    assert told(both) == [(1, 9, [4]), (2, 7, [1]), (2, 7, [2, 5])]


@pytest.mark.parametrize("seed", range(8))
def test_moved_rows_are_where_they_would_be_anew(seed: int) -> None:
    die, zone, pods = Entropy(seed), zones(*("abc" * 7)), counted(*([0] * 21))
    ranked = np.array([die.choose((3, 4, REFUSED)) for _ in range(21)])
    bands = Bands((zone, pods), ranked)
    for _ in range(200):
        row, rank = die.integer_below(21), die.choose((2, 3, 4, 5, REFUSED))
        pods.rows[row] = die.integer_below(3)
        old_rank = int(ranked[row])
        ranked[row] = rank
        assert bands.move(row, old_rank, rank)
        if die.integer_below(2):
            assert told(bands) == told(Bands((zone, pods), ranked))


def test_too_many_bands_are_given_up() -> None:
    ranked, pods = np.zeros(BANDS_MAX + 1, dtype=np.int64), counted(*([0] * (BANDS_MAX + 1)))
    bands = Bands((pods,), ranked)
    kept: list[bool] = []
    for row in range(BANDS_MAX):
        pods.rows[row] = row + 1
        kept.append(bands.move(row, 0, 0))
    assert kept == [True] * (BANDS_MAX - 1) + [False]
    assert Bands((counted(*range(BANDS_MAX + 1)),), ranked).are_too_many


def test_bands_by_a_counter_that_was_retired_are_given_up() -> None:
    pods = counted(0, 0)
    bands = Bands((pods,), np.zeros(2, dtype=np.int64))
    pods.registered = False
    pods.forget()
    assert not bands.move(0, 0, 1)
