"""`SortedRows` reads like the sorted list of its rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler.cycle.sorted_rows import BLOCK_BITS, SortedRows

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
