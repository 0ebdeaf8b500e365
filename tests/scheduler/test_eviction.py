"""The evictor: victims leave their node whatever the API server does meanwhile, and nobody waits in vain for it."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.scheduler.world import Through, World, play, played


def faulty(*faults: Fault) -> Through:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(*faults))

    return through


async def with_victims(world: World, *names: str) -> None:
    """A node that is full of these pods, and then an important one comes."""
    await world.create(node("n1", cpu=len(names)), *(pod(name, cpu=1, priority=1) for name in names))
    await world.settle()
    await world.create(pod("high", cpu=len(names), priority=100))


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault("delete", Outcome.BROKEN, times=2), id="the server is in trouble"),
        pytest.param(Fault("delete", Outcome.REQUEST_LOST, times=2), id="a request is lost"),
        pytest.param(Fault("delete", Outcome.ANSWER_LOST, times=2), id="an answer is lost"),
        pytest.param(Fault("delete", answer_delay_s=30, times=2), id="answers are slow"),
        pytest.param(Fault("delete", delay_s=30, times=2), id="requests are slow"),
        pytest.param(
            Fault("patch", Outcome.BROKEN, kind=POD, where=lambda request: request.name != "high", times=2),
            id="the condition is not written",
        ),
        pytest.param(
            Fault("patch", Outcome.ANSWER_LOST, kind=POD, where=lambda request: request.name != "high", times=2),
            id="the answer about the condition is lost",
        ),
    ],
)
def test_an_eviction_that_meets_trouble(fault: Fault) -> None:
    async def story(world: World) -> None:
        await with_victims(world, "a", "b", "c")
        await world.settle(90)
        assert await world.node_of("high") == "n1"
        assert sorted(await world.pods()) == ["high"]
        assert len(world.scheduler.evictions) == 0

    play(story, through=faulty(fault))


@played(through=faulty(Fault("delete", delay_s=10, times=None)))
async def test_the_preempting_pod_is_held_back_while_its_victims_are_evicted(world: World) -> None:
    await with_victims(world, "a", "b")
    await world.settle(5)
    assert len(world.scheduler.evictions) == 1
    await world.create(node("n2", cpu=1))  # whatever queues it: it would preempt again
    await world.settle(4)
    assert [entry.attempts for entry in world.scheduler.queue.entries()] == [1]
    await world.settle(60)
    assert await world.node_of("high") == "n1"


@pytest.mark.parametrize("gone", ["a", "b", "c"])
def test_a_victim_that_leaves_by_itself_while_the_others_are_being_evicted(gone: str) -> None:
    slow = Fault("delete", delay_s=10, answer_delay_s=1, times=None)

    async def story(world: World) -> None:
        await with_victims(world, "a", "b", "c")
        await world.settle(2)
        await world.delete(gone)
        await world.settle(60)
        assert await world.node_of("high") == "n1"

    play(story, through=faulty(slow))


@played(through=faulty(Fault("delete", delay_s=10, times=None)))
async def test_a_preempting_pod_that_is_deleted_meanwhile_leaves_no_trace(world: World) -> None:
    await with_victims(world, "a", "b")
    await world.settle(2)
    await world.delete("high")
    await world.settle(60)
    scheduler = world.scheduler
    assert len(scheduler.evictions) == len(scheduler.queue) == 0
    assert list(scheduler.engine.columns.nominations.nodes()) == []


@played(through=faulty(Fault("patch", kind=POD, where=lambda request: request.name == "a", delay_s=5)))
async def test_a_victim_of_the_same_name_that_came_later_is_left_alone(world: World) -> None:
    await with_victims(world, "a")
    await world.settle(1)
    await world.delete("a")
    await world.create(pod("a", cpu=1, priority=200))
    uid = (await world.pod("a")).metadata.uid
    await world.settle(30)
    assert (await world.pod("a")).metadata.uid == uid
    assert await world.condition("a", "DisruptionTarget") is None
