"""The queue in a running scheduler, on virtual time: backoffs, timeouts, events; no entry remains."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mooring.api.kinds import kind_of_view
from mooring.api.views.devices import ResourceSlice
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import PreEnqueue, Reserve
from mooring.scheduler.framework.status import Status
from mooring.scheduler.scheduler import Limits, Scheduler
from tests.api_servers import store_object
from tests.builders import HOSTNAME, node, pod, pods_like
from tests.client.faulty import Fault, FaultyClient, Outcome, Request, Script
from tests.scheduler.config.builders import configuration
from tests.scheduler.stories.actors import running
from tests.scheduler.stories.test_permit import Hold
from tests.scheduler.world import Through, World, check, play, played, with_plugins


def faulty(*faults: Fault) -> Through:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(*faults))

    return through


def attempts_of(scheduler: Scheduler, name: str) -> int:
    return next(entry.attempts for entry in scheduler.queue.entries() if entry.pod.name == name)


# --- backoffs and timeouts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "gaps_s"),
    [
        pytest.param({}, [1, 2, 4, 8, 10, 10], id="from 1 s to 10 s"),
        pytest.param(
            {"podInitialBackoffSeconds": 3, "podMaxBackoffSeconds": 7}, [3, 6, 7, 7], id="as it is configured"
        ),
    ],
)
def test_the_backoff_doubles_with_each_error(fields: dict[str, object], gaps_s: list[int]) -> None:
    tried_s: list[float] = []

    def note(request: Request) -> bool:
        tried_s.append(clock_of[0].now_s())
        return True

    clock_of: list[VirtualClock] = []

    def through(client: Client, clock: VirtualClock) -> Client:
        clock_of.append(clock)
        return FaultyClient(client, clock, Script(Fault("bind", Outcome.BROKEN, where=note, times=None)))

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(sum(gaps_s) + len(gaps_s) + 1)
        gaps = [after - before for before, after in pairwise(tried_s)]
        # Windows of one second: a backoff may take up to one second longer, as in kube-scheduler.
        assert len(gaps) >= len(gaps_s)
        for gap, wanted in zip(gaps, gaps_s):
            assert wanted - 0.01 <= gap <= wanted + 1.01

    play(story, config=configuration(**fields), through=through)


@played(through=faulty(Fault("bind", Outcome.BROKEN, where=lambda request: request.name == "web")))
async def test_errors_and_rejections_are_counted_separately(world: World) -> None:
    """The backoff after an error counts consecutive errors, after a rejection the number of rejections."""
    await world.create(node("n1", cpu=1), pod("filler", cpu=1))
    await world.settle()
    await world.create(pod("web", cpu=1))
    await world.settle()
    entry = next(iter(world.scheduler.queue.entries()))
    assert (entry.unschedulable_count, entry.consecutive_errors) == (1, 0)
    await world.delete("filler")
    await world.settle(0.5)
    assert (entry.unschedulable_count, entry.consecutive_errors) == (1, 1)
    await world.settle(5)
    assert await world.node_of("web") == "n1"


@played()
async def test_a_rejected_pod_without_events_is_retried_after_five_minutes(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("big", cpu=2))
    await world.settle(298)
    assert attempts_of(world.scheduler, "big") == 1
    await world.settle(4)
    assert attempts_of(world.scheduler, "big") == 2


@played(limits=Limits(unschedulable_s_max=10))
async def test_the_unschedulable_timeout_can_be_configured(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("big", cpu=2))
    await world.settle(25)
    assert attempts_of(world.scheduler, "big") == 3


# --- events and activation -------------------------------------------------------------------------------------------


def test_a_plugin_activates_a_pod() -> None:
    opened: list[bool] = []

    class Gate(PreEnqueue):
        """Rejects every pod until it is opened."""

        name = "Door"

        def __init__(self, activate: object) -> None:
            self.activate = activate

        def events_to_register(self) -> tuple[()]:
            return ()

        def pre_enqueue(self, pod: PodInfo) -> Status | None:
            return None if opened else Status.unresolvable("closed")

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(1000)
        assert world.scheduler.queue.statistics().gated == 1
        opened.append(True)
        gate = world.scheduler.engine.cycles["default-scheduler"].profile.plugins["Door"]
        gate.activate((await world.pod("web")).metadata.uid)  # type: ignore[attr-defined]
        gate.activate("unknown uid")  # type: ignore[attr-defined]
        await world.settle()
        assert await world.node_of("web") == "n1"

    play(story, plugins=(Gate,))


@played(through=faulty(Fault("bind", Outcome.BROKEN, delay_s=5, where=lambda request: request.name == "web")))
async def test_a_pod_that_is_updated_in_flight_is_retried_with_the_update(world: World) -> None:
    """The binding fails; meanwhile the pod was updated."""
    await world.create(node("n1", cpu=1), pod("alone", on="n1", apart=[pods_like(HOSTNAME, app="web")]))
    await world.create(pod("web", cpu=1))
    await world.settle()
    assert len(world.scheduler.bindings.running) == 1
    await world.patch("web", {"metadata": {"labels": {"app": "web"}}})
    await world.settle(15)
    assert await world.node_of("web") == ""
    condition = await world.condition("web")
    assert condition is not None
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in condition[2]
    await world.delete("alone")
    await world.settle(15)
    assert await world.node_of("web") == "n1"


@played(
    through=faulty(
        Fault("bind", Outcome.BROKEN, delay_s=5, where=lambda request: request.name == "unlucky", times=None)
    )
)
async def test_a_failed_binding_queues_pods_that_need_its_resources(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("unlucky", cpu=1))
    await world.settle()
    await world.create(pod("next", cpu=1))
    await world.settle()
    assert attempts_of(world.scheduler, "next") == 1
    await world.settle(6)
    assert await world.node_of("next") == "n1"


@played()
async def test_resources_that_are_released_while_a_pod_is_in_flight_are_used(world: World) -> None:
    """The event occurs in the batch that rejects the pod, and is replayed when the pod is requeued."""
    await world.create(node("n1", cpu=1), pod("first", cpu=1))
    await world.settle()
    await world.create(pod("late", cpu=1))
    await world.delete("first")
    await world.settle(15)
    assert await world.node_of("late") == "n1"


# --- Nothing is left behind: alarms of a stopped scheduler, reservations of a lost race, half an object --------------


SLICE = kind_of_view(ResourceSlice)
UNREADABLE_SLICE: dict[str, object] = {
    "metadata": {"name": "bad"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "p"},
        "devices": [{"name": "x", "capacity": {"memory": {"value": "lots"}}}],
    },
}


def test_a_scheduler_that_is_stopped_leaves_its_waiting_pods_to_the_next_one() -> None:
    config, registry = with_plugins(Hold)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        async with running(world, config, registry=registry) as first:
            assert len(first.waiting_pods) == 1
        async with running(world, None) as second:
            await world.settle(5)
            assert await world.node_of("web") == "n1"
            await world.settle(120)  # the time-out of the first one comes, and means nothing any more
            assert await world.node_of("web") == "n1"
            assert await world.condition("web") == ("True", "", "")
            check(second)

    play(story, schedulers=0)


def test_a_pod_bound_by_another_scheduler_releases_its_reservations() -> None:
    held: set[str] = set()

    class Holds(Reserve):
        name = "Holds"

        def reserve(self, pod: PodInfo, row: int) -> None:
            held.add(pod.uid)

        def unreserve(self, pod: PodInfo, node_name: str) -> None:
            held.discard(pod.uid)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        assert len(held) == 1
        await world.client.bind("default", "web", (await world.pod("web")).metadata.uid, "n1")
        await world.settle(30)
        assert held == set()

    play(
        story,
        plugins=(Holds,),
        through=lambda client, clock: FaultyClient(client, clock, Script(Fault("bind", delay_s=5))),
    )


@played()
async def test_a_slice_that_cannot_be_read_comes_and_goes(world: World) -> None:
    await store_object(world.store, SLICE, "", UNREADABLE_SLICE)
    await world.settle()
    await world.delete("bad", kind=SLICE)
    await world.create(node("n1", cpu=1), pod("web", cpu=1))
    await world.settle()
    assert await world.node_of("web") == "n1"
