"""Growing arrays, sorted rows, and the log of changed rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler.cache import arrays
from mooring.scheduler.cache.arrays import (
    BLOCK_BITS,
    CAPACITY_MIN,
    ChangeLog,
    Rows,
    SortedRows,
    capacity_for,
    grown,
    length_of,
    places_of_max,
)


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
def test_length_of_rows(rows: Rows, length: int) -> None:
    assert length_of(rows) == length


@pytest.mark.parametrize(("values", "best"), [([3, 1, 3], [0, 2]), ([1], [0]), ([-5, -3], [1]), ([0, 0, 0], [0, 1, 2])])
def test_where_the_largest_is(values: list[int], best: list[int]) -> None:
    assert places_of_max(np.array(values)).tolist() == best


def log_of(*rows: int) -> ChangeLog:
    log = ChangeLog()
    for row in rows:
        log.append(row)
    return log


@pytest.mark.parametrize(
    ("rows", "position", "since"),
    [
        pytest.param([5, 3, 5], 0, [3, 5], id="each row once, ascending"),
        pytest.param([5, 3, 5], 1, [3, 5], id="from the reader's position on"),
        pytest.param([5, 3, 5], 2, [5], id="the last change"),
        pytest.param([5, 3, 5], 3, [], id="nothing new"),
        pytest.param([], 0, [], id="nothing ever"),
    ],
)
def test_rows_that_changed_since(rows: list[int], position: int, since: list[int]) -> None:
    changed = log_of(*rows).since(position)
    assert changed is not None
    assert changed.tolist() == since


@pytest.mark.parametrize(
    ("rows", "position", "since"),
    [
        pytest.param([5, 3, 5], 0, None, id="three changes are more than two"),
        pytest.param([5, 3, 5], 1, [3, 5], id="two are few"),
        pytest.param([5, 5], 0, [5], id="each row once"),
        pytest.param([5, 3, 5], 2, [5], id="the last change"),
        pytest.param([5, 3, 5], 3, [], id="nothing new"),
        pytest.param([], -1, None, id="a new reader reads all rows"),
    ],
)
def test_few_rows_that_changed_since(rows: list[int], position: int, since: list[int] | None) -> None:
    assert log_of(*rows).few_since(position, 2) == since


def test_a_new_reader_reads_all_rows() -> None:
    assert log_of(1, 2).since(-1) is None


def test_the_change_log_drops_old_changes_and_returns_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LOG_LENGTH_MAX", 4)
    log = log_of(*range(10))
    assert log.position == 10
    assert log.since(0) is None
    assert log.since(5) is None
    assert log.few_since(5, 10) is None
    recent = log.since(8)
    assert recent is not None
    assert recent.tolist() == [8, 9]


def test_many_at_once_are_logged_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LOG_LENGTH_MAX", 4)
    log = log_of(1)
    log.extend([2, 3, 2, 5, 6])
    assert log.position == 6
    assert log.since(3) is None, "it keeps the last two"
    recent = log.since(4)
    assert recent is not None
    assert recent.tolist() == [5, 6]


ROWS = st.one_of(st.integers(0, 40), st.integers(0, 5 << BLOCK_BITS))


@given(st.sets(ROWS), st.lists(st.tuples(st.booleans(), ROWS)))
def test_it_reads_like_a_sorted_list(rows: set[int], changes: list[tuple[bool, int]]) -> None:
    found, wanted = SortedRows(sorted(rows)), set(rows)
    for is_added, row in changes:
        if is_added:
            found.add(row)
            wanted.add(row)
        else:
            found.discard(row)
            wanted.discard(row)
    expected = sorted(wanted)
    assert list(found) == expected
    assert (len(found), bool(found)) == (len(expected), bool(expected))
    assert [found[place] for place in range(len(expected))] == expected
    assert [found[-place] for place in range(1, len(expected) + 1)] == expected[::-1]
    assert (found[:3], found[1::2]) == (expected[:3], expected[1::2])
    assert all((row in found) == (row in wanted) for row in (*rows, *(row for _, row in changes), -1))
    for place in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            found[place]


def test_a_change_moves_rows_of_one_block() -> None:
    rows = SortedRows(list(range(0, 1_000_000, 2)))
    rows.add(1)
    assert len(rows) == 500_001
    assert max(len(block) for block in rows._blocks) <= 1 << BLOCK_BITS
