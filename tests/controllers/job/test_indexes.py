"""Completion indexes, written as intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.controllers.job.indexes import (
    Intervals,
    completion_index,
    count_indexes,
    first_pending,
    has_index,
    indexes_text,
    merged,
    overlap,
    parse_indexes,
    with_indexes,
)
from tests.controllers.batch_builders import INDEX, job_pod


@pytest.mark.parametrize(
    ("text", "completions", "expected"),
    [
        pytest.param("", 5, (), id="none"),
        pytest.param("1,3-5,7", 9, ((1, 1), (3, 5), (7, 7)), id="single ones and intervals"),
        pytest.param("1,2,3", 9, ((1, 3),), id="neighbours are joined"),
        pytest.param("1,3-5,7", 5, ((1, 1), (3, 4)), id="what lies beyond is cut off"),
        pytest.param("x,2,3-y,4", 9, ((2, 2), (4, 4)), id="what cannot be read is left out"),
    ],
)
def test_reading(text: str, completions: int, expected: Intervals) -> None:
    assert parse_indexes(text, completions) == expected


@pytest.mark.parametrize(
    ("intervals", "text"),
    [
        pytest.param((), "", id="none"),
        pytest.param(((3, 3),), "3", id="one"),
        pytest.param(((3, 4),), "3,4", id="two with a comma"),
        pytest.param(((3, 5), (8, 8)), "3-5,8", id="three with a hyphen"),
    ],
)
def test_writing(intervals: Intervals, text: str) -> None:
    assert indexes_text(intervals) == text


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.integers(0, 45), st.integers(0, 10))
def test_intervals_are_sets(one: set[int], other: set[int], index: int, count: int) -> None:
    left, right = with_indexes((), one), with_indexes((), other)
    both = merged(left, right)
    assert both == with_indexes((), one | other)
    assert count_indexes(both) == len(one | other)
    assert has_index(left, index) == (index in one)
    assert overlap(left, right) == len(one & other)
    assert parse_indexes(indexes_text(left), 100) == left
    assert first_pending(left, count, 41) == sorted(set(range(41)) - one)[:count]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [("3", 3), ("0", 0), ("-1", -1), ("three", -1), (None, -1)],
)
def test_the_index_of_a_pod(annotation: str | None, expected: int) -> None:
    assert completion_index(job_pod("p", annotations={INDEX: annotation} if annotation is not None else {})) == expected
