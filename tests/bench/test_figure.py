"""A figure beside its target."""

from __future__ import annotations

import pytest

from bench.figure import Figure


@pytest.mark.parametrize(
    ("figure", "is_reached", "words"),
    [
        pytest.param(Figure("healed", 0.7, "s", at_most=15.0), True, "0.70 s    (at most 15.00)", id="quick enough"),
        pytest.param(Figure("healed", 15.1, "s", at_most=15.0), False, "(at most 15.00)   MISSED", id="too slow"),
        pytest.param(Figure("gets", 3_000, "/s", at_least=3_000), True, "(at least 3,000.00)", id="just enough"),
        pytest.param(Figure("gets", 2_999, "/s", at_least=3_000), False, "(at least 3,000.00)   MISSED", id="too few"),
        pytest.param(Figure("CPU a pod", 1.9, "ms"), True, "1.90 ms", id="for comparison only"),
    ],
)
def test_a_figure_stands_beside_its_target(figure: Figure, is_reached: bool, words: str) -> None:
    assert figure.is_reached is is_reached
    assert str(figure).startswith(figure.name)
    assert str(figure).endswith(words)
