"""The data of the web console: the overview, and its history with the decision log."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mooring.client.interface import UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.histogram import HistogramValue
from mooring.scheduler.config import load_configuration
from mooring.scheduler.console import history
from mooring.scheduler.console.data import (
    OTHER,
    SAMPLE_S,
    SAMPLES_MAX,
    WINDOW_S,
    ConsoleData,
    OverviewHistory,
    histogram_quantile,
)
from mooring.scheduler.console.history import History, waiting_at
from mooring.scheduler.console.nodes import NodeColumns, NodeTable, shares
from mooring.scheduler.reporting.decision_log import DecisionLog, oldest_in_log
from mooring.scheduler.reporting.decision_records import BOUND, DecisionRecord
from mooring.scheduler.scheduler import Scheduler
from tests.builders import node, pod
from tests.scheduler.world import World, play, played


@pytest.mark.parametrize(
    ("used", "allocatable", "percent"),
    [
        (0, 100, 0),
        (50, 100, 50),
        (999, 1000, 99),
        (100, 100, 100),
        (150, 100, 150),
        (1000, 100, 255),
        (0, 0, 0),
        (1, 0, 255),
        (1 << 50, 1 << 51, 50),
    ],
)
def test_a_share_is_a_percentage_that_fits_into_a_byte(used: int, allocatable: int, percent: int) -> None:
    assert shares(np.array([used]), np.array([allocatable])).tolist() == [percent]


def test_an_update_of_many_nodes_has_a_few_bytes_for_each() -> None:
    count = 5_000
    scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1))
    for number in range(count):
        scheduler.engine.put(node(f"node-{number}", cpu=4))
    data = ConsoleData(scheduler, VirtualClock())
    table = data.nodes()
    assert table.encoded("").count(b'"node-') == count
    update = table.encoded(table.facts)
    assert b"node-1" not in update
    assert len(update) <= 4 * count + 500, "a byte for each share, and for the flags"


def test_the_version_of_a_table_changes_with_its_shares() -> None:
    clock = VirtualClock()
    scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=clock, entropy=Entropy(1))
    scheduler.engine.put(node("n1", cpu=4))
    columns = NodeColumns(scheduler, clock)
    before, same = columns.table(""), columns.table("")
    scheduler.engine.put(pod("web", cpu=1, on="n1"))
    after = columns.table("")
    assert before.version == same.version != after.version
    assert (before.facts, after.columns["cpu"]) == (after.facts, bytes([25]))


@pytest.mark.parametrize(
    ("share", "counts", "quantile"),
    [
        (0.5, [0, 0, 0], None),
        (0.5, [4, 0, 0], 0.5),
        (0.5, [0, 4, 0], 1.5),
        (0.99, [0, 100, 0], 1.99),
        (0.5, [2, 2, 0], 1.0),
        (0.99, [1, 0, 9], 2.0),
    ],
)
def test_a_quantile_is_interpolated_within_its_bucket(share: float, counts: list[int], quantile: float | None) -> None:
    found = histogram_quantile(share, (1.0, 2.0), counts)
    assert found is None if quantile is None else found == pytest.approx(quantile)


def test_samples_have_rates_and_the_waits_of_the_last_minute() -> None:
    history, waits = OverviewHistory(), HistogramValue((1.0, 2.0))
    first = history.measure(0.0, 100.0, 0, [], Counter(), [])
    assert (first["boundPerSecond"], first["boundWaits"], first["pendingWaits"]) == (None, [None, None], [None, None])
    for _ in range(10):
        waits.observe(0.5)
    reasons = Counter({f"reason {number}": number for number in range(1, 10)})
    second = history.measure(2.0, 102.0, 10, [waits], reasons, [1.0, 3.0])
    assert (second["boundPerSecond"], second["boundWaits"]) == (5.0, [0.5, 0.99])
    assert second["pendingWaits"] == [2.0, pytest.approx(2.98)]
    assert second["reasons"] == {f"reason {number}": number for number in range(9, 2, -1)} | {OTHER: 3}
    later = history.measure(3.0 + WINDOW_S, 200.0, 10, [waits], Counter(), [])
    assert later["boundWaits"] == [None, None], "pods bound before the window do not count"


def test_samples_are_kept_at_intervals_and_for_an_hour() -> None:
    history = OverviewHistory()
    for now_s in range(4_000):
        history.measure(float(now_s), float(now_s), 3 * now_s, [], Counter(), [])
    times = [sample["time"] for sample in history.samples()]
    assert (len(times), times[-1]) == (SAMPLES_MAX, 3_995.0)
    assert {after - before for before, after in pairwise(times)} == {SAMPLE_S}  # type: ignore[operator]
    assert history.latest["boundPerSecond"] == 3.0, "since the sample before, not since the measurement before"


def record(wall_s: float, name: str, attempt: int, on: str | None = None, **fields: Any) -> DecisionRecord:
    message = "" if on else "0/1 nodes are available"
    facts = {
        "wall_s": wall_s,
        "took_s": 0.0,
        "filter_s": 0.0,
        "select_s": 0.0,
        "pod": f"default/{name}",
        "uid": name,
        "revision": "",
        "scheduler": "default-scheduler",
        "attempt": attempt,
        "requeued_by": "",
        "seed": 0,
        "configuration": "",
        "node": on,
        "feasible_nodes": 1,
        "best_nodes": (),
        "rejections": (),
        "message": message,
    }
    return DecisionRecord(**(facts | fields))  # type: ignore[arg-type]


RECORDS = [
    record(1, "a", 1),
    record(2, "b", 1, "n1", binding=BOUND),
    record(3, "a", 2, requeued_by="NodeAdd"),
    record(4, "race", 1, "n1", binding="the pod is already assigned"),
    record(5, "a", 3, "n2", requeued_by="AssignedPodDelete", binding=BOUND),
    record(6, "c", 1),
]


@pytest.mark.parametrize(
    ("wall_s", "waiting"),
    [
        pytest.param(0.5, {}, id="before everything"),
        pytest.param(1.5, {"a": (1, 3, "NodeAdd")}, id="rejected once"),
        pytest.param(3.5, {"a": (1, 5, "AssignedPodDelete")}, id="rejected twice: since the first time"),
        pytest.param(4.5, {"a": (1, 5, "AssignedPodDelete"), "race": (4, None, "")}, id="a binding that failed"),
        pytest.param(5.5, {"race": (4, None, "")}, id="placed"),
        pytest.param(9, {"race": (4, None, ""), "c": (6, None, "")}, id="nothing came after it"),
    ],
)
def test_waiting_pods_with_since_when_and_what_ended_the_wait(
    wall_s: float, waiting: dict[str, tuple[float, float | None, str]]
) -> None:
    rows: list[Any] = waiting_at(reversed(RECORDS), wall_s)
    found = {
        row["uid"]: (row["since"], row.get("next", {}).get("time"), row.get("next", {}).get("requeuedBy", ""))
        for row in rows
    }

    def time(seconds: float | None) -> str | None:
        return f"1970-01-01T00:00:0{seconds}.000000Z" if seconds is not None else None

    assert found == {uid: (time(since), time(tried), by) for uid, (since, tried, by) in waiting.items()}
    assert {row["uid"]: row["reason"] for row in rows}.get("race", "already assigned").endswith("already assigned")


def shares_of(table: NodeTable | None) -> dict[str, int]:
    assert table is not None, "there is a sample"
    names: Any = table.head["names"]
    return dict(zip(names, table.columns["cpu"], strict=True))


@played()
async def test_the_map_is_that_of_the_last_sample_before_a_time(world: World) -> None:
    history = History(world.scheduler, world.clock)
    world.group.start_background(history.run(), name="history")
    await world.create(node("n1", cpu=4))
    await world.settle(5)
    empty_s = world.clock.wall_s() - 0.5
    await world.create(pod("web", cpu=2))
    await world.settle(5)
    full_s = world.clock.wall_s() - 0.5
    await world.create(pod("large", cpu=3))
    await world.settle(5)
    waiting_s = world.clock.wall_s() - 0.5
    await world.delete("web")
    await world.settle(15)

    assert shares_of(history.nodes_at(empty_s)) == {"n1": 0}
    full: Any = await history.at(full_s)
    assert (shares_of(history.nodes_at(full_s)), full["bound"], full["waiting"]) == ({"n1": 50}, 1, [])
    waited: Any = await history.at(waiting_s)
    assert (waited["waiting"][0]["pod"], waited["counts"]["unschedulable"]) == ("default/large", 1)
    assert waited["waiting"][0]["next"]["requeuedBy"] == "AssignedPodDelete"
    now: Any = await history.at(world.clock.wall_s())
    assert (shares_of(history.nodes_at(world.clock.wall_s())), now["waiting"]) == ({"n1": 75}, [])
    before: Any = await history.at(1.0)
    assert (history.nodes_at(1.0), before["attempts"]) == (None, [])

    times: Any = history.times()["samples"]
    assert len(times) <= 8, "nothing is sampled while nothing changes"
    assert [shown[3] for shown in times][-1] == 2


@played()
async def test_the_charts_have_samples_of_the_time_before_a_page_is_open(world: World) -> None:
    past = History(world.scheduler, world.clock)
    world.group.start_background(past.run(), name="history")
    await world.create(node("n1", cpu=4))
    await world.create(pod("large", cpu=9))
    await world.settle(60)
    samples: Any = past.data.history()["samples"]
    assert len(samples) >= 10
    assert [sample["reasons"] for sample in samples[-3:]] == [{"Insufficient cpu": 1}] * 3


def test_at_the_limit_the_past_is_less_detailed_and_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SAMPLES_MAX", 10)

    async def story(world: World) -> None:
        history = History(world.scheduler, world.clock)
        await world.create(node("n1", cpu=400))
        for number in range(40):
            await world.create(pod(f"p{number}", cpu=1))
            await world.settle(2)
            history.sample()
        samples: Any = history.times()["samples"]
        assert 5 <= len(samples) <= 10
        assert (samples[0][3], samples[-1][3]) == (1, 40)

    play(story)


def test_attempts_before_the_memory_come_from_the_log(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        log = DecisionLog(tmp_path / "decisions.db", world.clock)
        log.attach(world.scheduler.reports.decisions)
        await world.create(node("n1", cpu=1), pod("large", cpu=2))
        await world.settle()
        then_s = world.clock.wall_s() - 0.5
        await world.create(node("n2", cpu=4))
        await world.settle(15)
        log.flush()

        restarted = Scheduler(world.client, load_configuration(None), clock=world.clock, entropy=Entropy(2))
        history = History(restarted, world.clock, log)
        found: Any = await history.at(then_s)
        assert [row["pod"] for row in found["waiting"]] == ["default/large"]
        assert found["waiting"][0]["next"]["requeuedBy"] == "NodeAdd"
        oldest_s = oldest_in_log(log.path)
        assert oldest_s is not None
        assert oldest_s <= then_s

    play(story)
