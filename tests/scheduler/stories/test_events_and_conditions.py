"""Conditions, events and nominations of a pod: each is written once, complete and in time."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import Permit, PreFilter, Wait
from mooring.scheduler.framework.status import Status
from mooring.scheduler.scheduler import Limits, Scheduler
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Request, Script
from tests.scheduler.world import Through, World, play, played


def faulty(*faults: Fault) -> Through:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(*faults))

    return through


def attempts_of(scheduler: Scheduler, name: str) -> int:
    return next(entry.attempts for entry in scheduler.queue.entries() if entry.pod.name == name)


def test_an_equal_condition_is_not_written_again() -> None:
    patches: list[Request] = []

    def count(request: Request) -> bool:
        patches.append(request)
        return False

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("big", cpu=2))
        await world.settle(40)
        assert attempts_of(world.scheduler, "big") >= 4
        assert len(patches) == 1

    noted = Fault("patch", kind=POD, where=count)
    play(story, through=faulty(noted), limits=Limits(unschedulable_s_max=10))


@played()
async def test_the_time_of_the_transition_stays_while_only_the_message_changes(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("big", cpu=2))
    await world.settle(5)

    async def since() -> str | None:
        (condition,) = (await world.pod("big")).status.conditions
        return condition.last_transition_time

    before = await since()
    await world.create(node("n2", cpu=1, taints=["gone:NoSchedule"]))
    await world.settle(400)
    reported = await world.condition("big")
    assert reported is not None
    assert reported[2].startswith("0/2 nodes are available")
    assert await since() == before


def test_a_long_message_is_whole_in_the_condition_and_shortened_in_the_event() -> None:
    text = "x" * 3000

    class Talkative(PreFilter[None]):
        name = "Talkative"

        def pre_filter(self, pod: PodInfo) -> Status:
            return Status.unresolvable(text)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle()
        reported = await world.condition("web")
        assert reported is not None
        assert text in reported[2]
        ((_, _, note),) = (await world.events("FailedScheduling"))[:1]
        assert len(note.encode()) == 1024
        assert note.endswith(" ...")

    play(story, plugins=(Talkative,))


def test_an_error_of_the_cycle_is_a_scheduler_error() -> None:
    class Broken(PreFilter[None]):
        name = "Broken"

        def pre_filter(self, pod: PodInfo) -> Status:
            return Status.error("out of order")

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        message = 'running PreFilter plugin "Broken": out of order'
        assert await world.condition("web") == ("False", "SchedulerError", message)
        assert ("web", "FailedScheduling", message) in await world.events()

    play(story, plugins=(Broken,))


@pytest.mark.parametrize(
    "outcome", [Outcome.BROKEN, Outcome.REQUEST_LOST, Outcome.ANSWER_LOST], ids=lambda outcome: outcome.name
)
def test_a_status_that_is_written_late_does_not_contradict_what_happened_since(outcome: Outcome) -> None:
    """The patch about the rejection goes wrong a few times; meanwhile the pod is bound."""

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("filler", cpu=1))
        await world.settle()
        await world.create(pod("web", cpu=1))
        await world.settle(0.2)
        await world.delete("filler")
        await world.settle(2)
        assert await world.node_of("web") == "n1"
        await world.settle(120)
        assert await world.condition("web") == ("True", "", "")

    trouble = Fault("patch", outcome, kind=POD, where=lambda request: request.name == "web", times=4)
    play(story, through=faulty(trouble))


def test_where_a_pod_is_going_is_not_reported_after_it_has_arrived() -> None:
    """Writing the expected node takes longer than Permit and the binding."""

    class Brief(Permit):
        name = "Brief"

        def permit(self, pod: PodInfo, node_name: str) -> Wait:
            return Wait(10)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(1)
        for held in world.scheduler.waiting_pods:
            held.allow("Brief")
        await world.settle(60)
        found = await world.pod("web")
        assert found.spec.node_name == "n1"
        assert found.status.nominated_node_name == ""

    slow = Fault("patch", kind=POD, delay_s=5)
    play(story, plugins=(Brief,), through=faulty(slow))
