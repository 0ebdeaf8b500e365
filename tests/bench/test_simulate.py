"""The cost of simulations: every point in small."""

from __future__ import annotations

from xml.etree import ElementTree

from click.testing import CliRunner

from bench.simulate import CostCurve, SimulationCost, main, plot


def test_every_axis_is_measured() -> None:
    done = CliRunner().invoke(main, ["--quick"])
    assert done.exit_code == 0, done.output
    for line in ("Against pods, CPU time has the exponent", "Against nodes, CPU time has the exponent"):
        assert line in done.output


def test_the_plot_names_the_exponents() -> None:
    curve = CostCurve("pods", (SimulationCost(10, 100, 1.0, 50.0), SimulationCost(10, 1000, 10.0, 60.0)))
    drawn = plot([curve])
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert "pods: 0.00" in drawn
