"""Each benchmark runs, in small."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner, Result

from bench import batches, curves, simulate
from bench.__main__ import main
from bench.cluster import QUICK, TOLERATED_S, Size, _deployment
from bench.plans import measure
from bench.results import Report
from bench.suite import suite_names
from bench.workload import workload_names


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_whole_suite_comes_out_right_and_is_written_down(tmp_path: Path) -> None:
    done = call("--quick", "--output", str(tmp_path))
    assert done.exit_code == 0, done.output
    (path,) = (tmp_path / "history").iterdir()
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    assert {result.name for result in report.all_results} == set(workload_names())
    assert all(result.problems == () for result in report.all_results)
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    names = [*suite_names("engine"), *suite_names("scheduler")]
    assert all(f"workloads/{name}.yaml" in page for name in names)


def test_results_as_json() -> None:
    done = call("plain", "spread-hard", "--quick", "--nodes", "12", "--json")
    assert done.exit_code == 0
    results = msgspec.json.decode(done.stdout)
    assert [(result["name"], result["nodes"]) for result in results] == [("plain", 12), ("spread-hard", 12)]


@pytest.mark.parametrize("name", ["plain", "loop-plain"])
def test_a_profile_tells_where_the_time_goes(capfd: pytest.CaptureFixture[str], name: str) -> None:
    done = call(name, "--quick", "--profile")
    assert done.exit_code == 0
    assert "function calls" in done.output + capfd.readouterr().out


def test_a_line_through_the_scheduler() -> None:
    done = call("loop-plain-beside-gated", "--quick")
    assert done.exit_code == 0
    assert "30 waiting" in done.output
    assert "of 1.10 × as long as without those" in done.output


def test_results_of_both_ways_as_json() -> None:
    done = call("plain", "loop-plain", "--quick", "--json")
    assert [result["through"] for result in msgspec.json.decode(done.stdout)] == ["engine", "scheduler"]


def test_the_list() -> None:
    assert [line.split()[0] for line in call("--list").output.splitlines()] == workload_names()


@pytest.mark.parametrize("names", [("plan",), ("plain", "plan")], ids=["alone", "before the others run"])
def test_an_unknown_name_is_an_error(names: tuple[str, ...]) -> None:
    done = call(*names)
    assert done.exit_code == 1
    assert done.output.startswith("Error: there is no workload 'plan'")


def test_a_wrong_outcome_is_an_error() -> None:
    # One node cannot hold forty pods of which no two may share it.
    done = call("pod-anti-affinity-required", "--quick", "--nodes", "1")
    assert done.exit_code == 1
    assert "WRONG" in done.output


# --- The benchmark of plans, in small


def test_every_question_is_measured_and_answered() -> None:
    figures = list(measure(quick=True))
    assert len(figures) == 7
    assert all(figure.at_most is not None and figure.value > 0 for figure in figures)


# --- What the bench of a cluster is made of. Its figures are measured by `python -m bench.cluster`


def test_the_pods_do_not_tolerate_a_lost_node_for_long() -> None:
    template = _deployment("web", 3)["spec"]["template"]  # type: ignore[index]
    assert {toleration["tolerationSeconds"] for toleration in template["spec"]["tolerations"]} == {TOLERATED_S}


def test_quick_is_a_fiftieth() -> None:
    whole = Size()
    assert (QUICK.nodes, QUICK.replicas, QUICK.lost, QUICK.deployments) == (
        whole.nodes // 50,
        whole.replicas // 50,
        whole.lost // 50,
        whole.deployments // 50,
    )


@pytest.mark.parametrize(
    ("points", "slope"),
    [
        pytest.param([(1, 5.0), (10, 5.0), (100, 5.0)], 0.0, id="constant"),
        pytest.param([(1, 2.0), (10, 20.0), (100, 200.0)], 1.0, id="linear"),
        pytest.param([(1, 3.0), (10, 300.0)], 2.0, id="quadratic"),
    ],
)
def test_the_exponent(points: list[tuple[float, float]], slope: float) -> None:
    assert curves.exponent(points) == pytest.approx(slope)


def test_every_axis_of_the_cost_curves_is_measured() -> None:
    done = CliRunner().invoke(curves.main, ["--quick"])
    assert done.exit_code == 0, done.output
    for axis in curves.QUICK_AXES:
        assert f"| {axis} |" in done.output


def test_the_plot_of_cost_curves_names_the_exponents() -> None:
    curve = curves.Curve("nodes", (1, 10), (curves.Measure(2.0, 100.0), curves.Measure(20.0, 100.0)))
    drawn = curves.plot([curve])
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert "nodes: 1.00" in drawn


def test_every_axis_of_simulations_is_measured() -> None:
    done = CliRunner().invoke(simulate.main, ["--quick"])
    assert done.exit_code == 0, done.output
    for line in ("Against pods, CPU time has the exponent", "Against nodes, CPU time has the exponent"):
        assert line in done.output


def test_the_plot_of_simulations_names_the_exponents() -> None:
    curve = simulate.CostCurve(
        "pods", (simulate.SimulationCost(10, 100, 1.0, 50.0), simulate.SimulationCost(10, 1000, 10.0, 60.0))
    )
    drawn = simulate.plot([curve])
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert "pods: 0.00" in drawn


def test_batch_writes_are_measured() -> None:
    done = CliRunner().invoke(batches.main, ["--quick"])
    assert done.exit_code == 0, done.output
    assert [line.split(",")[0] for line in done.output.splitlines()] == ["create_many", "renew_leases"]
