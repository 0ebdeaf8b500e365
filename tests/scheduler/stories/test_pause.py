"""A paused scheduler: nothing is decided, a step is one cycle or one binding, and a pause ends by itself."""

from __future__ import annotations

import pytest

from mooring.scheduler.pause import PAUSE_S_MAX
from tests.builders import node, pod
from tests.scheduler.stories.actors import running
from tests.scheduler.world import World, check, play


async def placed(world: World) -> dict[str, str]:
    return {name: each.spec.node_name for name, each in (await world.pods()).items()}


def test_a_step_is_a_cycle_and_then_its_binding() -> None:
    async def story(world: World) -> None:
        pause = world.scheduler.pause
        await world.create(node("n1", cpu=4))
        await world.settle()
        pause.pause()
        await world.create(pod("a", cpu=1), pod("b", cpu=1))
        await world.settle(10)
        assert await placed(world) == {"a": "", "b": ""}
        assert [each.pod.name for each in world.scheduler.queue.next_entries(5)] == ["a", "b"]
        pause.step()
        await world.settle()
        assert [each.is_held for each in world.scheduler.bindings.running.values()] == [True]
        assert len(world.scheduler.assumed_pods) == 1
        assert await placed(world) == {"a": "", "b": ""}
        pause.step()
        await world.settle()
        assert await placed(world) == {"a": "n1", "b": ""}
        pause.resume("the test says so")
        await world.settle()
        assert await placed(world) == {"a": "n1", "b": "n1"}
        check(world.scheduler)

    play(story)


def test_a_lost_race_is_rolled_back() -> None:
    async def story(world: World) -> None:
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

    play(story)


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


def test_a_scheduler_that_stops_while_it_is_paused_finishes_its_binding() -> None:
    async def story(world: World) -> None:
        async with running(world) as scheduler:
            await world.create(node("n1", cpu=4), pod("a", cpu=1))
            scheduler.pause.pause()
            await world.settle()
            scheduler.pause.step()
            await world.settle()
            assert [each.is_held for each in scheduler.bindings.running.values()] == [True]
        assert await placed(world) == {"a": "n1"}

    play(story, schedulers=0)


def test_without_a_pause_a_step_does_nothing() -> None:
    async def story(world: World) -> None:
        world.scheduler.pause.step()
        assert world.scheduler.pause.document() is None
        await world.create(node("n1"), pod("a"))
        await world.settle()
        assert await placed(world) == {"a": "n1"}

    play(story)
