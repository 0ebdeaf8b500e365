"""Nearest misses: what was missing on the nearest nodes, and at which cost."""

from __future__ import annotations

import pytest

from mooring.kit.clock import VirtualClock
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.reporting.nearest_misses import SAVED_S_MAX, SHARE_MAX, NearestMisses
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


class SlowClock(VirtualClock):
    """Each reading takes so long, and with it each explanation."""

    def __init__(self, reading_s: float = 1.0) -> None:
        super().__init__()
        self.reading_s = reading_s
        self.readings = 0

    def now_s(self) -> float:
        self.readings += 1
        return self.reading_s * self.readings


def rejected(engine: Engine, name: str, **wanted: object) -> Decision:
    decision = engine.decide(engine.record(pod(name, **wanted)))  # type: ignore[arg-type]
    assert decision.node_name is None
    return decision


def texts(misses: NearestMisses, engine: Engine, decision: Decision) -> dict[str, list[str]]:
    found = misses.of(engine.cycle_for(decision.pod).profile, decision)
    return {miss.node: [each.text for each in miss.obstacles] for miss in found}


def test_the_nearest_nodes_and_what_is_missing_there() -> None:
    nodes = [node("n1", cpu=4), node("n2", cpu=8, unschedulable=True), node("n3", cpu=8), node("n4", cpu=1), node("n5")]
    engine = engine_of(*nodes)
    found = texts(NearestMisses(engine.columns, VirtualClock()), engine, rejected(engine, "p", cpu=9))
    assert list(found) == ["n3", "n1", "n5"]
    assert found["n3"] == ["1 cpu more (the whole node has 8)"]


def test_pods_of_one_diagnosis_share_them_until_a_row_changes() -> None:
    engine = engine_of(node("n1", cpu=4))
    misses = NearestMisses(engine.columns, SlowClock())
    first = rejected(engine, "p1", cpu=9)
    assert texts(misses, engine, first) == {"n1": ["5 cpu more (the whole node has 4)"]}
    second = rejected(engine, "p2", cpu=9)
    assert misses.of(engine.cycle_for(second.pod).profile, second) is misses.of(
        engine.cycle_for(first.pod).profile, first
    )
    engine.put(node("n1", cpu=6))
    assert texts(misses, engine, rejected(engine, "p3", cpu=9)) == {}  # too soon for another explanation
    misses = NearestMisses(engine.columns, VirtualClock())
    assert texts(misses, engine, rejected(engine, "p4", cpu=9)) == {"n1": ["3 cpu more (the whole node has 6)"]}


def test_explanations_take_a_share_of_the_time() -> None:
    engine, clock = engine_of(node("n1", cpu=4)), SlowClock()
    misses = NearestMisses(engine.columns, clock)
    started = clock.readings
    explained = [bool(texts(misses, engine, rejected(engine, f"p{number}", cpu=9 + number))) for number in range(100)]
    took_s = explained.count(True)  # a second for each
    assert explained[0]
    assert 0.5 * SHARE_MAX < took_s / (clock.readings - started) <= 1.5 * SHARE_MAX


def test_a_burst_of_rejections_is_explained() -> None:
    engine, reading_s = engine_of(node("n1", cpu=4)), SAVED_S_MAX / 90
    misses = NearestMisses(engine.columns, SlowClock(reading_s))
    assert all(texts(misses, engine, rejected(engine, f"p{number}", cpu=9 + number)) for number in range(80))


def test_a_failure_is_logged_and_the_attempt_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr("mooring.scheduler.reporting.nearest_misses.explain", fail)
    engine = engine_of(node("n1", cpu=4))
    assert texts(NearestMisses(engine.columns, VirtualClock()), engine, rejected(engine, "p", cpu=9)) == {}
    assert "explaining the rejection of pod default/p failed" in caplog.text
