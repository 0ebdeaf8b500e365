"""What the scheduler has in mind, as people see it."""

from __future__ import annotations

import json

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.binding.assumptions import Assumptions
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.reporting.inspection import cache_told, queue_told
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


def test_the_queue() -> None:
    clock = VirtualClock()

    async def main() -> None:
        engine = engine_of(node("n1"))
        profiles = {name: cycle.profile for name, cycle in engine.cycles.items()}
        queue = SchedulingQueue(profiles, clock=clock)
        for view in (pod("refused", priority=7), pod("ready"), pod("gated", gates=["wait"])):
            queue.add(engine.record(view))
        entry = queue.pop()
        assert entry is not None
        queue.give_back(entry, frozenset(("NodeResourcesFit",)))
        told = queue_told(queue, clock)
        json.dumps(told)
        assert told["counts"] == {"active": 1, "backoff": 0, "unschedulable": 1, "gated": 1, "inFlight": 0}
        pods = told["pods"]
        assert isinstance(pods, list)
        by_name = {each["pod"]: each for each in pods}
        assert by_name["default/refused"]["room"] == "unschedulable"
        assert by_name["default/refused"]["refusedBy"] == ["NodeResourcesFit"]
        assert by_name["default/refused"]["wokenAtTheLatest"] == "2026-01-01T00:05:00.000000Z"
        assert by_name["default/refused"]["priority"] == 7
        assert by_name["default/gated"]["gatedBy"] == "SchedulingGates"
        assert by_name["default/ready"]["room"] == "active"
        assert queue_told(queue, clock, pod="default/ready")["shown"] == 1

    run(main(), clock)


def test_the_cache() -> None:
    engine = engine_of(node("n1", cpu=4), node("n2", cpu=2), pod("a", cpu="500m", on="n1"), pod("b", on="n1"))
    told = cache_told(engine.columns, Assumptions(None))
    json.dumps(told)
    assert told["counts"] == {"nodes": 2, "pods": 2, "assumedPods": 0}
    nodes = told["nodes"]
    assert isinstance(nodes, list)
    first, second = nodes
    assert (first["node"], first["pods"], first["requested"]) == ("n1", 2, {"cpuMilli": 500, "pods": 2})
    assert second["allocatable"]["cpuMilli"] == 2000
    assert "podNames" not in first
    chosen = cache_told(engine.columns, Assumptions(None), node="n1")["nodes"]
    assert isinstance(chosen, list)
    assert [each["podNames"] for each in chosen] == [["default/a", "default/b"]]
