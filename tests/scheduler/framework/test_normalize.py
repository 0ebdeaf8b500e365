"""Scores brought to the scale from 0 to 100."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler.framework.normalize import by_table, scaled_to_best


@pytest.mark.parametrize(
    ("scores", "reverse", "normalised"),
    [
        pytest.param([0, 5, 10], False, [0, 50, 100], id="the best gets 100"),
        pytest.param([0, 5, 10], True, [100, 50, 0], id="reversed it gets 0"),
        pytest.param([1, 2, 3], False, [33, 66, 100], id="shares are cut off, not rounded"),
        pytest.param([1, 2, 3], True, [67, 34, 0], id="and so what is left of them is not"),
        pytest.param([0, 0], False, [0, 0], id="nobody has anything: 0"),
        pytest.param([0, 0], True, [100, 100], id="nobody has anything, reversed: 100"),
        pytest.param([7], False, [100], id="a single node is the best"),
        pytest.param([], True, [], id="no nodes"),
    ],
)
def test_scaled_to_the_best(scores: list[int], reverse: bool, normalised: list[int]) -> None:
    assert scaled_to_best(np.array(scores, dtype=np.int64), reverse=reverse).tolist() == normalised


@given(st.lists(st.integers(0, 10**6), min_size=1), st.booleans())
def test_every_score_is_scaled_by_the_rule_for_one_node(scores: list[int], reverse: bool) -> None:
    best = max(scores)

    def rule(score: int) -> int:
        share = score * 100 // best if best else 0
        return 100 - share if reverse else share

    assert scaled_to_best(np.array(scores), reverse=reverse).tolist() == [rule(score) for score in scores]


@given(st.lists(st.integers(-20, 20), min_size=1))
def test_a_table_gives_what_the_formula_gives(scores: list[int]) -> None:
    values = np.array(scores)
    looked_up = by_table(values, lambda each: each * each - 3, min(scores), max(scores))
    assert looked_up.tolist() == [score * score - 3 for score in scores]
