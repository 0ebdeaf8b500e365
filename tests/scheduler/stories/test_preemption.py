"""Preemption in the running scheduler: victims are reported and deleted, and the preempting pod gets their place."""

from __future__ import annotations

from mooring.client.errors import NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.scheduler.world import World, play, played

DISRUPTED = (
    "True",
    "PreemptionByScheduler",
    "default-scheduler: preempting to accommodate a higher priority pod",
)


@played()
async def test_a_victim_that_ends_gracefully_is_marked_and_waited_for(world: World) -> None:
    await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1, grace_s=30))
    await world.settle()
    await world.create(pod("high", cpu=2, priority=100))
    await world.settle()
    low, high = await world.pod("low"), await world.pod("high")
    assert low.metadata.deletion_timestamp is not None
    assert await world.condition("low", "DisruptionTarget") == DISRUPTED
    assert (high.spec.node_name, high.status.nominated_node_name) == ("", "n1")
    assert await world.events("Preempted") == [("low", "Preempted", f"Preempted by pod {high.metadata.uid} on node n1")]
    await world.delete("low")  # its kubelet has stopped it
    await world.settle()
    assert await world.node_of("high") == "n1"


@played()
async def test_the_resources_of_the_victims_is_kept_for_the_nominated_pod(world: World) -> None:
    await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1, grace_s=30))
    await world.settle()
    await world.create(pod("high", cpu=2, priority=100))
    await world.settle()
    await world.create(pod("thief", cpu=1, priority=50))
    await world.delete("low")
    await world.settle(20)
    assert await world.node_of("high") == "n1"
    assert await world.node_of("thief") == ""


@played()
async def test_a_nomination_gives_way_to_a_more_important_pod(world: World) -> None:
    await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1, grace_s=30))
    await world.settle()
    await world.create(pod("middle", cpu=2, priority=10))
    await world.settle()
    assert (await world.pod("middle")).status.nominated_node_name == "n1"
    await world.create(pod("high", cpu=2, priority=100))
    await world.settle()
    assert (await world.pod("high")).status.nominated_node_name == "n1"
    assert (await world.pod("middle")).status.nominated_node_name == ""
    await world.delete("low")
    await world.settle(20)
    assert await world.node_of("high") == "n1"


@played()
async def test_several_victims_go_together(world: World) -> None:
    small = [pod(f"low-{n}", cpu=1, priority=1) for n in range(4)]
    await world.create(node("n1", cpu=4), *small)
    await world.settle()
    await world.create(pod("high", cpu=4, priority=100))
    await world.settle(5)
    assert await world.node_of("high") == "n1"
    assert sorted(await world.pods()) == ["high"]
    assert len(await world.events("Preempted")) == 4


@played()
async def test_a_pod_without_the_right_to_preempt_waits(world: World) -> None:
    await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1))
    await world.settle()
    await world.create(pod("polite", cpu=2, priority=100, preemption_policy="Never"))
    await world.settle(100)
    assert await world.node_of("low") == "n1"
    assert await world.node_of("polite") == ""


def test_when_an_eviction_fails_the_pod_tries_again() -> None:
    def broken_at_first(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(Fault("delete", Outcome.BROKEN)))

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1))
        await world.settle()
        await world.create(pod("high", cpu=2, priority=100))
        await world.settle(30)
        assert await world.node_of("high") == "n1"
        try:
            await world.pod("low")
        except NotFoundError:
            return
        raise AssertionError("the victim is still there")

    play(story, through=broken_at_first)
