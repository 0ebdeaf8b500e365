"""Each benchmark runs, in small."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

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
def test_an_unknown_name_is_told_in_words(names: tuple[str, ...]) -> None:
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
    assert {each["tolerationSeconds"] for each in template["spec"]["tolerations"]} == {TOLERATED_S}


def test_quick_is_a_fiftieth() -> None:
    whole = Size()
    assert (QUICK.nodes, QUICK.replicas, QUICK.lost, QUICK.deployments) == (
        whole.nodes // 50,
        whole.replicas // 50,
        whole.lost // 50,
        whole.deployments // 50,
    )
