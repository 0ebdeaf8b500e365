"""The scheduler is paused, and events are deferred meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from mooring.api.views.pod import Pod
from mooring.client.interface import Change
from mooring.scheduler.event_buffer import BufferedPagedSink, EventBuffer
from mooring.scheduler.pause import PAUSE_S_MAX
from tests.builders import node, pod
from tests.scheduler.stories.actors import running
from tests.scheduler.world import World, check, play, played


async def placed(world: World) -> dict[str, str]:
    return {name: view.spec.node_name for name, view in (await world.pods()).items()}


@played()
async def test_a_step_is_a_cycle_and_then_its_binding(world: World) -> None:
    pause = world.scheduler.pause
    await world.create(node("n1", cpu=4))
    await world.settle()
    pause.pause()
    await world.create(pod("a", cpu=1), pod("b", cpu=1))
    await world.settle(10)
    assert await placed(world) == {"a": "", "b": ""}
    assert [next_entry.pod.name for next_entry in world.scheduler.queue.next_entries(5)] == ["a", "b"]
    pause.step()
    await world.settle()
    assert [binding.is_held for binding in world.scheduler.bindings.running.values()] == [True]
    assert len(world.scheduler.assumed_pods) == 1
    assert await placed(world) == {"a": "", "b": ""}
    pause.step()
    await world.settle()
    assert await placed(world) == {"a": "n1", "b": ""}
    pause.resume("the test says so")
    await world.settle()
    assert await placed(world) == {"a": "n1", "b": "n1"}
    check(world.scheduler)


@played()
async def test_a_lost_race_is_rolled_back(world: World) -> None:
    pause, columns = world.scheduler.pause, world.scheduler.engine.columns
    await world.create(node("n1", cpu=4))
    await world.settle()
    pause.pause()
    await world.create(pod("web", cpu=1), node("n2", cpu=4, labels={"x": "y"}))
    pause.step()
    await world.settle()
    (binding,) = world.scheduler.bindings.running.values()
    ours, other = binding.node_name, "n2" if binding.node_name == "n1" else "n1"
    assert len(columns.pods_on[columns.row_of[ours]]) == 1
    await world.client.bind("default", "web", binding.pod.uid, other)  # as another scheduler
    pause.step()
    await world.settle(20)
    assert await placed(world) == {"web": other}
    assert [len(columns.pods_on[columns.row_of[name]]) for name in (ours, other)] == [0, 1]
    (record,) = world.scheduler.reports.decisions.recent(pod="default/web")
    assert (record.node, "already assigned" in record.binding) == (ours, True)
    check(world.scheduler)


@pytest.mark.parametrize("has_stepped", [False, True])
def test_a_pause_ends_by_itself_after_the_last_step(has_stepped: bool) -> None:
    async def story(world: World) -> None:
        pause = world.scheduler.pause
        await world.create(node("n1", cpu=4))
        pause.pause()
        await world.create(pod("a", cpu=1))
        await world.settle(PAUSE_S_MAX / 2)
        if has_stepped:
            pause.step()
        await world.settle(PAUSE_S_MAX / 2 + 1)
        assert pause.is_on is has_stepped
        await world.settle(PAUSE_S_MAX)
        assert (pause.is_on, pause.document()) == (False, None)
        assert await placed(world) == {"a": "n1"}

    play(story)


@played(schedulers=0)
async def test_a_scheduler_that_stops_while_it_is_paused_finishes_its_binding(world: World) -> None:
    async with running(world) as scheduler:
        await world.create(node("n1", cpu=4), pod("a", cpu=1))
        scheduler.pause.pause()
        await world.settle()
        scheduler.pause.step()
        await world.settle()
        assert [binding.is_held for binding in scheduler.bindings.running.values()] == [True]
    assert await placed(world) == {"a": "n1"}


@played()
async def test_without_a_pause_a_step_does_nothing(world: World) -> None:
    world.scheduler.pause.step()
    assert world.scheduler.pause.document() is None
    await world.create(node("n1"), pod("a"))
    await world.settle()
    assert await placed(world) == {"a": "n1"}


# --- The event buffer: every function runs, in order


def test_functions_run_immediately_unless_the_buffer_is_held() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()
    event_buffer.run(lambda: done.append("a"))
    with event_buffer.held():
        event_buffer.run(lambda: done.append("b"))
        event_buffer.run(lambda: done.append("c"))
        assert (done, len(event_buffer), event_buffer.is_held) == (["a"], 2, True)
    assert (done, len(event_buffer), event_buffer.is_held) == (["a", "b", "c"], 0, False)


def test_a_function_added_by_a_deferred_function_runs_last() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()

    def adding(name: str, another: str) -> Callable[[], None]:
        def function() -> None:
            event_buffer.run(lambda: done.append(another))
            done.append(name)

        return function

    with event_buffer.held():
        event_buffer.run(adding("a", "d"))
        event_buffer.run(lambda: done.append("b"))
        event_buffer.run(lambda: done.append("c"))
    assert done == ["a", "b", "c", "d"]


def test_a_function_that_raises_does_not_stop_the_others() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), event_buffer.held():
        event_buffer.run(fail)
        event_buffer.run(lambda: done.append("b"))
    assert done == ["b"]
    assert not event_buffer.is_held


def test_deferred_functions_run_if_the_decision_raises() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()
    with pytest.raises(LookupError), event_buffer.held():
        event_buffer.run(lambda: done.append("a"))
        raise LookupError("the decision")
    assert done == ["a"]


def test_only_one_decision_holds_the_buffer() -> None:
    event_buffer = EventBuffer()
    with event_buffer.held(), pytest.raises(AssertionError, match="held by another decision"), event_buffer.held():
        raise NotImplementedError("not reached")


class RecordingSink:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def replace(self, views: Sequence[Pod], revision: str) -> None:
        self.lines.append(f"all@{revision}")

    def apply(self, change: Change, view: Pod) -> None:
        self.lines.append(f"{change.value} {view.metadata.name}")

    def begin_list(self) -> None:
        self.lines.append("a list")

    def take_page(self, views: Sequence[Pod]) -> None:
        self.lines.append(f"some {len(views)}")

    def end_list(self, revision: str) -> None:
        self.lines.append(f"end@{revision}")


def test_a_buffered_sink_keeps_the_order_of_events() -> None:
    recording, event_buffer = RecordingSink(), EventBuffer()
    sink: BufferedPagedSink[Pod] = BufferedPagedSink(recording, recording, event_buffer)
    with event_buffer.held():
        sink.begin_list()
        sink.take_page([pod("a"), pod("b")])
        sink.end_list("3")
        sink.apply(Change.ADDED, pod("c"))
        sink.replace([], "4")
        assert recording.lines == []
    expected = ["a list", "some 2", "end@3", "ADDED c", "all@4"]
    assert recording.lines == expected
    sink.apply(Change.DELETED, pod("c"))
    assert recording.lines == [*expected, "DELETED c"]
