"""The benchmark of plans, in small."""

from __future__ import annotations

from bench.plans import measure


def test_every_question_is_measured_and_answered() -> None:
    figures = list(measure(quick=True))
    assert len(figures) == 7
    assert all(figure.at_most is not None and figure.value > 0 for figure in figures)
