"""The past of a scheduler: samples within their limits, the queue as it was, and what ended the waiting of a pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.console import history
from mooring.scheduler.console.history import History, waiting_at
from mooring.scheduler.console.nodes import NodeTable
from mooring.scheduler.reporting.decision_log import DecisionLog, oldest_in_log
from mooring.scheduler.reporting.decision_records import BOUND, DecisionRecord
from mooring.scheduler.scheduler import Scheduler
from tests.builders import node, pod
from tests.scheduler.world import World, play


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
def test_who_waited_since_when_and_what_ended_it(
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


def shares(table: NodeTable | None) -> dict[str, int]:
    assert table is not None, "there is a sample"
    names: Any = table.head["names"]
    return dict(zip(names, table.columns["cpu"], strict=True))


def test_the_map_is_that_of_the_last_sample_before_a_time() -> None:
    async def story(world: World) -> None:
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

        assert shares(history.nodes_at(empty_s)) == {"n1": 0}
        full: Any = await history.at(full_s)
        assert (shares(history.nodes_at(full_s)), full["bound"], full["waiting"]) == ({"n1": 50}, 1, [])
        waited: Any = await history.at(waiting_s)
        assert (waited["waiting"][0]["pod"], waited["counts"]["unschedulable"]) == ("default/large", 1)
        assert waited["waiting"][0]["next"]["requeuedBy"] == "AssignedPodDelete"
        now: Any = await history.at(world.clock.wall_s())
        assert (shares(history.nodes_at(world.clock.wall_s())), now["waiting"]) == ({"n1": 75}, [])
        before: Any = await history.at(1.0)
        assert (history.nodes_at(1.0), before["attempts"]) == (None, [])

        times: Any = history.times()["samples"]
        assert len(times) <= 8, "nothing is sampled while nothing changes"
        assert [each[3] for each in times][-1] == 2

    play(story)


def test_the_charts_have_samples_of_the_time_before_a_page_is_open() -> None:
    async def story(world: World) -> None:
        past = History(world.scheduler, world.clock)
        world.group.start_background(past.run(), name="history")
        await world.create(node("n1", cpu=4))
        await world.create(pod("large", cpu=9))
        await world.settle(60)
        samples: Any = past.data.history()["samples"]
        assert len(samples) >= 10
        assert [each["reasons"] for each in samples[-3:]] == [{"Insufficient cpu": 1}] * 3

    play(story)


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
