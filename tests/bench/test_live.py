"""The live runner: it measures from the first pod created to the last one bound, and a broken scheduler is told."""

from __future__ import annotations

import msgspec
import pytest

from bench.live import run_live
from bench.workload import Size, read_workload
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import SchedulingCycle

SMALL = Size(nodes=30, placed=60, pods=40, warm_up=5)


def test_a_run() -> None:
    result = run_live(read_workload("loop-plain"), SMALL)
    assert result.problems == ()
    assert (result.nodes, result.placed, result.waiting, result.pods) == (30, 60, 0, 40)
    assert result.mean_us * result.pods_per_second == pytest.approx(1e6)
    assert 0 < result.p50_ms <= result.p99_ms <= result.seconds * 1_000
    assert result.resident_before_bytes <= result.resident_peak_bytes
    assert result.slowdown is None


@pytest.mark.parametrize(
    "name", ["loop-plain-beside-gated", "loop-plain-beside-unschedulable", "loop-plain-beside-lonely"]
)
def test_beside_waiting_pods_it_is_measured_without_them_too(name: str) -> None:
    size = msgspec.structs.replace(SMALL, waiting=20)
    result = run_live(read_workload(name), size, rounds=1)
    assert result.problems == ()
    assert result.waiting == 20
    assert result.slowdown is not None
    assert result.cpu_slowdown is not None
    assert min(result.slowdown, result.cpu_slowdown) > 0


@pytest.mark.parametrize(
    ("allowed_bytes", "count"),
    [pytest.param(150_000_000, 0, id="within"), pytest.param(-(1 << 30), 1, id="above")],
)
def test_pods_that_take_too_much_memory_are_told(allowed_bytes: int, count: int) -> None:
    workload = msgspec.structs.replace(read_workload("loop-plain"), growth_bytes_max=allowed_bytes)
    found = run_live(workload, SMALL).problems
    assert len(found) == count
    assert all("allowed are" in problem for problem in found)


def everything_to_one_node(cycle: SchedulingCycle, pod: PodInfo, *, in_full: bool = False) -> Decision:
    return Decision(pod, node_name="node-0", feasible_count=30)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("loop-plain", "1 nodes hold more than they have according to the store", id="room"),
        pytest.param("loop-spread-hard", "is skewed over topology", id="spreading"),
        pytest.param("loop-anti-affinity", "hold more than 1", id="anti-affinity"),
    ],
)
def test_a_scheduler_that_forgets_a_rule_is_told(monkeypatch: pytest.MonkeyPatch, name: str, problem: str) -> None:
    monkeypatch.setattr(SchedulingCycle, "decide_admitted", everything_to_one_node)
    found = run_live(read_workload(name), SMALL).problems
    assert any(problem in text for text in found), found


def test_a_scheduler_that_is_stuck_is_told() -> None:
    workload = read_workload("loop-plain-beside-unschedulable")
    hopeless = msgspec.structs.replace(workload.waiting[0], outcome="placed")
    stuck = msgspec.structs.replace(workload, measured=(hopeless,), waiting=())
    found = run_live(stuck, msgspec.structs.replace(SMALL, pods=3, warm_up=1), seconds_max=0.2).problems
    assert "3 pods were not decided after 0 s" in found
    assert any("4 pods have no node, such as /registry/pods/" in text for text in found), found
