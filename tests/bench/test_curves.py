"""Cost curves: the fitted exponent, and every point in small."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from bench.curves import QUICK_AXES, Curve, Measure, exponent, main, plot


@pytest.mark.parametrize(
    ("points", "slope"),
    [
        pytest.param([(1, 5.0), (10, 5.0), (100, 5.0)], 0.0, id="constant"),
        pytest.param([(1, 2.0), (10, 20.0), (100, 200.0)], 1.0, id="linear"),
        pytest.param([(1, 3.0), (10, 300.0)], 2.0, id="quadratic"),
    ],
)
def test_the_exponent(points: list[tuple[float, float]], slope: float) -> None:
    assert exponent(points) == pytest.approx(slope)


def test_every_axis_is_measured() -> None:
    done = CliRunner().invoke(main, ["--quick"])
    assert done.exit_code == 0, done.output
    for axis in QUICK_AXES:
        assert f"| {axis} |" in done.output


def test_the_plot_names_the_exponents() -> None:
    curve = Curve("nodes", (1, 10), (Measure(2.0, 100.0), Measure(20.0, 100.0)))
    drawn = plot([curve])
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert "nodes: 1.00" in drawn
