"""The status writer: what is sent of a pod's status, in what order, and what is not sent any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.api.kinds import POD
from mooring.api.views.meta import Condition
from mooring.api.views.pod import Pod
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import WorkerPool
from mooring.scheduler.reporting.reports import TRIES_MAX, StatusWriter
from tests.builders import pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Request, Script
from tests.scheduler.world import World, open_world

NO_ROOM = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
STILL_NONE = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="still no room")

Reported = Callable[[StatusWriter, Pod, World], Awaitable[None]]


def playing(reported: Reported, *faults: Fault) -> list[Request]:
    """A writer and a pod; the patches that were asked for."""
    clock = VirtualClock()
    clients: list[FaultyClient] = []

    async def main() -> None:
        async with open_world(clock, Entropy(1)) as world:
            client = FaultyClient(world.client, clock, Script(*faults))
            clients.append(client)
            pool = WorkerPool("status", 2)
            pool.open(world.group)
            await world.create(pod("web"))
            await reported(StatusWriter(client, clock, pool), await world.pod("web"), world)

    run(main(), clock)
    return [request for request in clients[0].requests if request.verb == "patch"]


async def fallen_silent(writer: StatusWriter, pod: Pod) -> None:
    """As before a binding."""
    if (answered := writer.discard_writes(pod.metadata.uid)) is not None:
        await answered.wait()


def test_what_is_wanted_while_a_patch_is_under_way_is_sent_together() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)
        writer.write(web, NO_ROOM, nominated_node="n1")
        writer.write(web, STILL_NONE)
        writer.write(web, nominated_node="n2")
        await world.settle(10)
        assert await world.condition("web") == ("False", "Unschedulable", "still no room")
        assert (await world.pod("web")).status.nominated_node_name == "n2"
        assert len(writer) == 0

    assert len(playing(reported, Fault("patch", delay_s=5))) == 2


def test_what_the_status_says_already_is_not_sent() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, nominated_node="")
        writer.write(web, NO_ROOM)
        await world.settle(1)
        writer.write(await world.pod("web"), NO_ROOM, nominated_node="")
        await world.settle(1)

    assert len(playing(reported)) == 1


@pytest.mark.parametrize(
    ("outcome", "tries"),
    [
        pytest.param(Outcome.BROKEN, TRIES_MAX, id="the server's trouble may pass"),
        pytest.param(Outcome.REQUEST_LOST, TRIES_MAX, id="no answer: again"),
        pytest.param(Outcome.CONFLICT, 1, id="it is another pod by now"),
    ],
)
def test_how_often_a_patch_is_tried(outcome: Outcome, tries: int) -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(200)
        assert (len(writer), writer.failures) == (0, 1)

    assert len(playing(reported, Fault("patch", outcome, times=None))) == tries


def test_a_pod_that_is_gone_needs_no_status() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        await world.delete("web")
        await world.create(pod("web"))  # of the same name, and not the one that is meant
        writer.write(web, NO_ROOM)
        await world.settle(10)
        assert await world.condition("web") is None
        assert len(writer) == 0

    playing(reported)


def test_before_a_binding_what_is_not_sent_yet_is_dropped() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await fallen_silent(writer, web)
        await world.settle(10)
        assert await world.condition("web") is None

    assert playing(reported) == []


def test_before_a_binding_what_is_under_way_is_waited_for() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)
        writer.write(web, STILL_NONE)
        began_s = world.clock.now_s()
        await fallen_silent(writer, web)
        assert world.clock.now_s() - began_s == pytest.approx(4)
        await world.settle(10)
        assert await world.condition("web") == ("False", "Unschedulable", "no room")

    assert len(playing(reported, Fault("patch", delay_s=5))) == 1


def test_before_a_binding_a_patch_that_would_be_tried_again_is_not() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)
        began_s = world.clock.now_s()
        await fallen_silent(writer, web)
        assert world.clock.now_s() == began_s
        await world.settle(100)
        assert await world.condition("web") is None
        assert len(writer) == 0

    playing(reported, Fault("patch", Outcome.BROKEN, times=5))


def test_after_that_the_pod_may_be_reportedmething_new() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(0.1)
        await fallen_silent(writer, web)
        writer.write(web, STILL_NONE)  # the binding has failed
        await world.settle(100)
        assert await world.condition("web") == ("False", "Unschedulable", "still no room")

    playing(reported, Fault("patch", Outcome.BROKEN, times=3))


def test_the_pod_is_named_by_its_uid() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)

    (request,) = playing(reported)
    subject = request.subject
    assert isinstance(subject, dict)
    assert (request.kind, request.subresource) == (POD, "status")
    assert set(subject["metadata"]) == {"uid"}
