"""How columns grow, how many rows a question is about, and which have the most."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.scheduler.cache.arrays import CAPACITY_MIN, Rows, capacity_for, grown, length_of, places_of_max


@pytest.mark.parametrize(("length", "capacity"), [(0, 64), (1, 64), (64, 64), (65, 128), (128, 128), (5000, 8192)])
def test_capacity_doubles(length: int, capacity: int) -> None:
    assert capacity_for(length) == capacity


def test_a_grown_array_keeps_what_it_held_and_fills_the_rest() -> None:
    table = np.arange(6, dtype=np.int64).reshape(2, 3)
    larger = grown(table, 5, fill=-1)
    assert larger.shape == (2, CAPACITY_MIN)
    assert larger.dtype == np.int64
    assert larger[:, :3].tolist() == table.tolist()
    assert (larger[:, 3:] == -1).all()


def test_an_array_that_is_long_enough_stays_the_same() -> None:
    column = np.zeros(8, dtype=np.int32)
    assert grown(column, 8) is column


@pytest.mark.parametrize(("rows", "length"), [(slice(0, 7), 7), (slice(2, 7), 5), (np.array([4, 1]), 2)])
def test_how_many_rows_are_asked_about(rows: Rows, length: int) -> None:
    assert length_of(rows) == length


@pytest.mark.parametrize(("values", "best"), [([3, 1, 3], [0, 2]), ([1], [0]), ([-5, -3], [1]), ([0, 0, 0], [0, 1, 2])])
def test_where_the_largest_is(values: list[int], best: list[int]) -> None:
    assert places_of_max(np.array(values)).tolist() == best
