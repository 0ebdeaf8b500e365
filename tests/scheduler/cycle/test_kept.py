"""What is kept of one shape: the best rows stay right when one row's rank changes."""

from __future__ import annotations

import pytest

from mooring.scheduler.cycle.keeper import Keeper
from mooring.scheduler.cycle.kept import REFUSED
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


@pytest.mark.parametrize(
    ("best", "row", "rank", "becomes", "highest"),
    [
        pytest.param([1, 4], 4, 90, [1, 4], 90, id="a row that is as good as before stays"),
        pytest.param([1, 4], 4, 80, [1], 90, id="a row that got worse leaves"),
        pytest.param([1, 4], 3, 90, [1, 3, 4], 90, id="a row that got as good comes in, in order"),
        pytest.param([1, 4], 3, 95, [3], 95, id="a row that got better is the only one"),
        pytest.param([1, 4], 3, 80, [1, 4], 90, id="a row below them changes nothing"),
        pytest.param([4], 4, REFUSED, None, 90, id="when the last one leaves, all are looked at again"),
        pytest.param(None, 4, 95, None, 90, id="what is not known stays unknown"),
    ],
)
def test_the_best_rows_follow_a_row(
    best: list[int] | None, row: int, rank: int, becomes: list[int] | None, highest: int
) -> None:
    engine = engine_of(node("n"))
    kept = Keeper(engine.cycles["default-scheduler"].profile, engine.columns).kept(engine.record(pod("p")))
    kept.best, kept.best_rank = best, 90
    kept.move_among_best(row, rank)
    assert (kept.best, kept.best_rank) == (becomes, highest)
