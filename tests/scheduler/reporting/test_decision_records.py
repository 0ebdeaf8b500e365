"""Records of decisions, with the nearest nodes of rejected pods."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from mooring.kit.clock import VirtualClock
from mooring.scheduler.cycle.decision import Decision, NodeScores, PreemptionPlan
from mooring.scheduler.cycle.schedule_pod import Steps
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.status import RejectionCount
from mooring.scheduler.reporting.decision_records import (
    BEST_NODES_MAX,
    MESSAGE_LENGTH_MAX,
    REJECTIONS_MAX,
    VICTIMS_MAX,
    DecisionRecord,
    DecisionRecords,
    record_of,
)
from mooring.scheduler.reporting.nearest_misses import (
    NODES_MAX,
    OBSTACLES_MAX,
    SAVED_S_MAX,
    SHARE_MAX,
    TEXT_LENGTH_MAX,
    NearestMiss,
    NearestMisses,
    RecordedObstacle,
)
from tests.builders import node, pod
from tests.scheduler.harness import engine_of

RECORD_BYTES_MAX = 20 * 1024


def recording(engine: Engine) -> Engine:
    for cycle in engine.cycles.values():
        cycle.best_nodes_max = BEST_NODES_MAX
    return engine


def decided(engine: Engine, name: str, cpu: str) -> Decision:
    view = pod(name, cpu=cpu)
    return engine.decide(engine.record(replace(view, metadata=replace(view.metadata, resource_version="7"))))


def test_a_placed_pod_has_the_scores_of_the_best_nodes_and_what_rejected_the_others() -> None:
    engine = recording(engine_of(node("n1", cpu=4), node("n2", cpu=8), node("n3", cpu=1)))
    records = DecisionRecords(VirtualClock(), seed=2**60, configuration="abc")
    records.add(decided(engine, "web", "2"), 2, 0.000_25, steps=Steps(1.0, 1.0001, 1.00022))
    (record,) = records.recent()
    assert record.document() == {
        "time": "2026-01-01T00:00:00.000000Z",
        "pod": "default/web",
        "uid": "default/web",
        "attempt": 2,
        "result": "Success",
        "node": "n2",
        "feasibleNodes": 2,
        "tookMicroseconds": 250,
        "steps": {"filterMicroseconds": 100, "scoreMicroseconds": 120},
        "revision": "7",
        "seed": str(2**60),
        "configuration": "abc",
        "bestNodes": [
            {"node": "n2", "total": 454, "scores": scores_of("n2", engine)},
            {"node": "n1", "total": 435, "scores": scores_of("n1", engine)},
        ],
        "rejections": [{"plugin": "NodeResourcesFit", "nodes": 1}],
    }


def scores_of(name: str, engine: Engine) -> Mapping[str, int]:
    """As `mooring explain` shows them."""
    full = engine.decide(engine.record(pod("web", cpu="2")), in_full=True).scores[name]
    return {plugin: score for plugin, score in full.items() if plugin in SCORING}


SCORING = ("ImageLocality", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "TaintToleration")


def test_a_rejected_pod_has_the_reasons_by_plugin() -> None:
    engine = recording(engine_of(node("n1", cpu=4), node("n2", cpu=8), node("n3", unschedulable=True)))
    record = record_of(decided(engine, "large", "9"), 1, 0.0, 0.001)
    assert record.result == "Unschedulable"
    assert record.rejected_by == ("NodeResourcesFit", "NodeUnschedulable")
    assert record.rejections == (
        RejectionCount("NodeUnschedulable", "node(s) were unschedulable", 1),
        RejectionCount("NodeResourcesFit", "Insufficient cpu", 2),
    )
    assert record.message.startswith("0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.")


def test_recent_decisions_are_newest_first_and_can_be_filtered_by_pod() -> None:
    engine = recording(engine_of(node("n1")))
    records = DecisionRecords(VirtualClock())
    for number in range(4):
        records.add(decided(engine, f"p{number}", "1"), 1, 0.0)
    assert [record.pod for record in records.recent()] == [f"default/p{number}" for number in (3, 2, 1, 0)]
    assert [record.pod for record in records.recent(limit=1)] == ["default/p3"]
    assert [record.pod for record in records.recent(pod="default/p1")] == ["default/p1"]


def test_the_oldest_are_dropped_when_they_take_too_much() -> None:
    engine = recording(engine_of(node("n1"), node("n2")))
    one = record_of(decided(engine, "p0", "1"), 1, 0.0, 0.0).bytes_estimated
    records = DecisionRecords(VirtualClock(), bytes_max=3 * one)
    for number in range(5):
        records.add(decided(engine, f"p{number}", "1"), 1, 0.0)
    assert [record.pod for record in records.recent()] == ["default/p4", "default/p3", "default/p2"]
    assert records.bytes_estimated == 3 * one


def large_decision() -> Decision:
    """One that exceeds every limit."""
    engine = engine_of()
    victims = tuple(engine.record(pod(f"victim-{number}")) for number in range(2 * VICTIMS_MAX))
    rejections = tuple(RejectionCount("NodeAffinity", f"reason {n}", n) for n in range(2 * REJECTIONS_MAX))
    return Decision(
        engine.record(pod("web")),
        message="x" * 2 * MESSAGE_LENGTH_MAX,
        preemption=PreemptionPlan("n1", victims),
        rejections=rejections,
    )


LARGE_MISSES = tuple(
    NearestMiss(
        f"node-{number}",
        tuple(RecordedObstacle("NodeResourcesFit", f"{number}" * TEXT_LENGTH_MAX) for number in range(OBSTACLES_MAX)),
    )
    for number in range(NODES_MAX)
)
"""As many, and as long, as `NearestMisses` finds."""


def test_every_part_of_a_record_has_a_limit() -> None:
    record = record_of(large_decision(), 1, 0.0, 0.0, nearest=LARGE_MISSES)
    assert (len(record.message), len(record.victims)) == (MESSAGE_LENGTH_MAX, VICTIMS_MAX)
    assert [rejection.nodes for rejection in record.rejections] == list(
        range(2 * REJECTIONS_MAX - 1, REJECTIONS_MAX - 1, -1)
    )
    assert record.bytes_estimated < RECORD_BYTES_MAX


@pytest.mark.parametrize("kind", ["placed", "rejected", "large"])
def test_the_estimated_size_is_not_below_the_real_one(kind: str) -> None:
    engine = recording(engine_of(*(node(f"n{number}") for number in range(5))))
    decision = {
        "placed": lambda: decided(engine, "web", "1"),
        "rejected": lambda: decided(engine, "web", "99"),
        "large": large_decision,
    }[kind]()
    record = record_of(decision, 1, 0.0, 0.0, nearest=LARGE_MISSES if kind == "large" else ())
    assert real_bytes(record) <= record.bytes_estimated <= 3 * real_bytes(record)


def real_bytes(record: DecisionRecord) -> int:
    """Of the record and everything that it refers to, but for what all records share: names of plugins, reasons, the
    seed and the configuration."""
    own = [name for name in record.__struct_fields__ if name not in ("seed", "configuration")]
    return sys.getsizeof(record) + sum(_sizes(getattr(record, name)) for name in own)


def _sizes(value: object) -> int:
    if isinstance(value, RejectionCount):
        return sys.getsizeof(value) + sys.getsizeof(value.nodes)
    if isinstance(value, NodeScores):
        return sys.getsizeof(value) + sys.getsizeof(value.scores) + sum(map(sys.getsizeof, value.scores.values()))
    if isinstance(value, NearestMiss):
        return sys.getsizeof(value) + _sizes(value.node) + _sizes(value.obstacles)
    if isinstance(value, RecordedObstacle):
        return sys.getsizeof(value) + _sizes(value.text)
    found = sys.getsizeof(value)
    return found + sum(_sizes(item) for item in value) if isinstance(value, tuple) else found


# --- Nearest misses: what was missing on the nearest nodes, and at which cost


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
    return {miss.node: [obstacle.text for obstacle in miss.obstacles] for miss in found}


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
