"""Indexes of jobs, written down."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation.job_indexes import IndexesError, count_indexes, first_overlap


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("", 0, id="none"),
        pytest.param("3", 1, id="one"),
        pytest.param("0,2-4,6", 5, id="some, and a range"),
    ],
)
def test_counting(text: str, count: int) -> None:
    assert count_indexes(text, 10) == count


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("10", 'too large index: "10"', id="beyond the end"),
        pytest.param("a", 'cannot convert string to integer for index: "a"', id="no number"),
        pytest.param("1,,2", 'cannot convert string to integer for index: ""', id="a gap"),
        pytest.param("3-1", "non-increasing order, previous: 3, current: 1", id="a range backwards"),
        pytest.param("2,2", "non-increasing order, previous: 2, current: 2", id="twice the same"),
        pytest.param(
            "1-2-3",
            'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts '
            "separated by '-'",
            id="two ranges in one",
        ),
    ],
)
def test_what_cannot_be_read(text: str, fault: str) -> None:
    with pytest.raises(IndexesError) as caught:
        count_indexes(text, 10)
    assert str(caught.value) == fault


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        pytest.param("0,2", "1,3", None, id="in turns"),
        pytest.param("1-4", "3", 3, id="inside of a range"),
        pytest.param("0,x,5", "5", 5, id="behind a part that cannot be read"),
        pytest.param("", "1", None, id="nothing"),
    ],
)
def test_overlaps(one: str, other: str, index: int | None) -> None:
    assert first_overlap(one, other, 10) == index
