"""The runner: it measures what it says, and a broken engine does not look fast."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.runner import run
from bench.workload import Size, Workload, read_workload
from mooring.api.yaml import load_document
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine

SMALL = Size(nodes=30, placed=60, pods=20, warm_up=5)


def test_all_pods_are_measured_and_the_warm_up_is_not() -> None:
    level = run(read_workload("plain"), SMALL).last
    assert (level.placed, level.loaded, level.pods) == (60, 60, 20)
    assert 0 < level.p50_us <= level.p99_us <= level.longest_us
    assert level.pods_per_second_without_record > level.pods_per_second
    assert level.mean_us * level.pods_per_second == pytest.approx(1e6)


def test_each_level_starts_with_its_number_of_placed_pods() -> None:
    size = Size(nodes=30, placed=60, pods=20, warm_up=5, levels=(0, 0.5, 1))
    result = run(read_workload("plain"), size)
    assert [(level.placed, level.loaded) for level in result.levels] == [(0, 0), (30, 30), (60, 30)]
    assert result.problems == ()


def test_the_example_of_the_documentation_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    result = run(msgspec.convert(load_document(example).data, Workload), SMALL)
    assert (result.name, result.problems) == ("two-kinds", ())


def test_time_is_limited() -> None:
    assert run(read_workload("plain"), SMALL, seconds_max=0.0).last.pods == 1


@pytest.mark.parametrize(
    ("allowed_bytes", "problems"),
    [pytest.param(4_000_000_000, 0, id="within its memory"), pytest.param(1 << 20, 1, id="above its memory")],
)
def test_a_workload_that_takes_too_much_memory_is_told(allowed_bytes: int, problems: int) -> None:
    workload = msgspec.structs.replace(read_workload("plain"), memory_bytes_max=allowed_bytes)
    found = run(workload, SMALL).problems
    assert len(found) == problems
    assert all("MiB, allowed are 1" in problem for problem in found)


def test_preemption_goes_through_to_the_end() -> None:
    result = run(read_workload("preemption"), Size(nodes=30, placed_per_node=4, pods=10, warm_up=5))
    assert result.problems == ()
    assert result.last.placed == 120


def everything_to_one_node(engine: Engine, pod: PodInfo, *, in_full: bool = False) -> Decision:
    return Decision(pod, node_name="node-0", feasible_count=30)


def nothing_fits(engine: Engine, pod: PodInfo, *, in_full: bool = False) -> Decision:
    return Decision(pod, message="no")


@pytest.mark.parametrize(
    ("workload", "decide", "problem"),
    [
        pytest.param("plain", everything_to_one_node, "1 nodes gave more than they have", id="everything to one node"),
        pytest.param("plain", nothing_fits, "was refused, expected placed, and 24 more like it", id="nothing fits"),
        pytest.param("unschedulable", everything_to_one_node, "was placed, expected refused", id="too much fits"),
        pytest.param("unschedulable", nothing_fits, "expected '0/30 nodes are available", id="no reasons are given"),
        pytest.param("preemption", nothing_fits, "was refused, expected preempts", id="nobody is evicted"),
        pytest.param("spread-hard", everything_to_one_node, "is skewed over topology", id="nothing is spread"),
        pytest.param("pod-anti-affinity-required", everything_to_one_node, "hold more than 1", id="nothing is apart"),
        pytest.param("node-affinity", everything_to_one_node, "gave more than they have", id="affinity is ignored"),
    ],
)
def test_a_broken_engine_is_told(monkeypatch: pytest.MonkeyPatch, workload: str, decide: object, problem: str) -> None:
    monkeypatch.setattr(Engine, "decide", decide)
    size = Size(nodes=30, placed=60, pods=40 if decide is everything_to_one_node else 20, warm_up=5)
    found = run(read_workload(workload), size).problems
    assert any(problem in text for text in found), found
