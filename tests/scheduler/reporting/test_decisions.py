"""The last decisions, told."""

from __future__ import annotations

from mooring.kit.clock import VirtualClock
from mooring.scheduler.reporting.decisions import DecisionLog
from tests.builders import node, pod
from tests.scheduler.harness import decide, engine_of


def test_a_placed_pod_and_a_refused_one() -> None:
    engine = engine_of(node("n1", cpu=1))
    log = DecisionLog(VirtualClock())
    log.add(decide(engine, pod("small", cpu="500m")), 0.000_25)
    log.add(decide(engine, pod("large", cpu="2")), 0.001)
    refused, placed = log.told()
    assert placed == {
        "time": "2026-01-01T00:00:00.000000Z",
        "pod": "default/small",
        "uid": "default/small",
        "result": "Success",
        "node": "n1",
        "feasibleNodes": 1,
        "tookMicroseconds": 250,
    }
    assert refused["result"] == "Unschedulable"
    assert refused["refusedBy"] == ["NodeResourcesFit"]
    assert str(refused["message"]).startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_only_the_last_are_kept_and_one_pod_can_be_asked_for() -> None:
    engine = engine_of(node("n1"))
    log = DecisionLog(VirtualClock(), kept_max=3)
    for number in range(5):
        log.add(decide(engine, pod(f"p{number}")), 0.0)
    assert [entry["pod"] for entry in log.told()] == ["default/p4", "default/p3", "default/p2"]
    assert [entry["pod"] for entry in log.told(limit=1)] == ["default/p4"]
    assert [entry["pod"] for entry in log.told(pod="default/p3")] == ["default/p3"]
    assert len(log) == 3
