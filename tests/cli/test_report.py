from __future__ import annotations

import pytest

from mooring.cli.explanation import Outcome, PodExplanation
from mooring.cli.report import Report


def report(*outcomes: Outcome) -> Report:
    pods = tuple(PodExplanation("a/b", outcome) for outcome in outcomes)
    return Report(pods, node_count=1, placed_count=0, pending_count=len(pods), seed=1)


@pytest.mark.parametrize(
    ("outcomes", "nowhere"),
    [
        pytest.param([], False, id="no pods"),
        pytest.param(
            [Outcome.PLACED, Outcome.GATED, Outcome.LEFT_ALONE, Outcome.RUNNING], False, id="all accounted for"
        ),
        pytest.param([Outcome.PLACED, Outcome.UNSCHEDULABLE], True, id="one goes nowhere"),
        pytest.param([Outcome.ERROR], True, id="one could not be decided"),
    ],
)
def test_whether_anything_goes_nowhere(outcomes: list[Outcome], nowhere: bool) -> None:
    assert report(*outcomes).is_anything_nowhere is nowhere


def test_outcomes_are_counted() -> None:
    assert report(Outcome.PLACED, Outcome.PLACED, Outcome.GATED).outcomes() == {Outcome.PLACED: 2, Outcome.GATED: 1}
