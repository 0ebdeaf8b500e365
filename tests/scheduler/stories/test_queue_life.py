"""The queue in life: how long pods wait, what wakes them, and what they are told, on virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from mooring.api.kinds import NODE, POD
from mooring.client.promise import Client
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.framework.plugin import Permit, PreEnqueue, PreFilter, Wait
from mooring.scheduler.framework.status import Rejection, failure, unresolvable
from mooring.scheduler.scheduler import Limits, Scheduler
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Request, Script
from tests.scheduler.config.builders import configuration
from tests.scheduler.stories.actors import running, with_plugins
from tests.scheduler.world import Through, World, check, play


def faulty(*faults: Fault) -> Through:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(*faults))

    return through


def attempts_of(scheduler: Scheduler, name: str) -> int:
    return next(entry.attempts for entry in scheduler.queue.entries() if entry.pod.name == name)


# --- how long -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "gaps_s"),
    [
        pytest.param({}, [1, 2, 4, 8, 10, 10], id="from 1 s to 10 s"),
        pytest.param(
            {"podInitialBackoffSeconds": 3, "podMaxBackoffSeconds": 7}, [3, 6, 7, 7], id="as it is configured"
        ),
    ],
)
def test_a_pod_whose_attempts_fail_backs_off_for_twice_as_long_each_time(
    fields: dict[str, object], gaps_s: list[int]
) -> None:
    tried_s: list[float] = []

    def note(request: Request) -> bool:
        tried_s.append(clock_of[0].now_s())
        return True

    clock_of: list[VirtualClock] = []

    def through(client: Client, clock: VirtualClock) -> Client:
        clock_of.append(clock)
        return FaultyClient(client, clock, Script(Fault("bind", Outcome.REQUEST_LOST, where=note, times=None)))

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(sum(gaps_s) + len(gaps_s) + 1)
        gaps = [after - before for before, after in pairwise(tried_s)]
        # Windows of a second: a pod may wait up to one longer, as in kube-scheduler.
        assert len(gaps) >= len(gaps_s)
        for gap, wanted in zip(gaps, gaps_s):
            assert wanted - 0.01 <= gap <= wanted + 1.01

    play(story, config=configuration(**fields), through=through)


def test_a_success_in_between_is_not_held_against_errors_and_refusals() -> None:
    """Errors back off by the errors in a row, refusals by the number of refusals."""

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("filler", cpu=1))
        await world.settle()
        await world.create(pod("web", cpu=1))
        await world.settle()
        entry = next(iter(world.scheduler.queue.entries()))
        assert (entry.unschedulable_count, entry.errors_in_a_row) == (1, 0)
        await world.delete("filler")
        await world.settle(0.5)
        assert (entry.unschedulable_count, entry.errors_in_a_row) == (1, 1)
        await world.settle(5)
        assert await world.node_of("web") == "n1"

    lost = Fault("bind", Outcome.REQUEST_LOST, where=lambda request: request.name == "web")
    play(story, through=faulty(lost))


def test_a_refused_pod_that_nothing_wakes_is_tried_again_after_five_minutes() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("big", cpu=2))
        await world.settle(298)
        assert attempts_of(world.scheduler, "big") == 1
        await world.settle(4)
        assert attempts_of(world.scheduler, "big") == 2

    play(story)


def test_how_long_a_refused_pod_sleeps_at_most_can_be_set() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("big", cpu=2))
        await world.settle(25)
        assert attempts_of(world.scheduler, "big") == 3

    play(story, limits=Limits(asleep_s_max=10))


# --- what wakes -----------------------------------------------------------------------------------------------------


def test_a_plugin_activates_a_pod() -> None:
    opened: list[bool] = []

    class Door(PreEnqueue):
        """Nobody comes in before it is open."""

        name = "Door"

        def __init__(self, activate: object) -> None:
            self.activate = activate

        def wakes(self) -> tuple[()]:
            return ()

        def pre_enqueue(self, pod: PodRecord) -> Rejection | None:
            return None if opened else unresolvable("closed")

    config, registry = with_plugins(Door)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(1000)
        assert world.scheduler.queue.statistics().gated == 1
        opened.append(True)
        door = world.scheduler.engine.cycles["default-scheduler"].profile.plugins["Door"]
        door.activate((await world.pod("web")).metadata.uid)  # type: ignore[attr-defined]
        door.activate("nobody's uid")  # type: ignore[attr-defined]
        await world.settle()
        assert await world.node_of("web") == "n1"

    play(story, config=config, registry=registry)


def test_a_pod_that_is_changed_while_it_is_in_flight_is_tried_with_the_change() -> None:
    """Its binding fails; meanwhile it was given a toleration."""
    slow = Fault("bind", Outcome.REQUEST_LOST, delay_s=5, where=lambda request: request.name == "web")

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle()
        assert len(world.scheduler.bindings.under_way) == 1
        await world.patch("web", {"spec": {"nodeSelector": {"disk": "ssd"}}})
        await world.settle(15)
        assert await world.node_of("web") == ""
        told = await world.condition("web")
        assert told is not None
        assert "1 node(s) didn't match Pod's node affinity/selector" in told[2]
        await world.patch("n1", {"metadata": {"labels": {"disk": "ssd"}}}, kind=NODE)
        await world.settle(15)
        assert await world.node_of("web") == "n1"

    play(story, through=faulty(slow))


def test_room_that_comes_free_by_a_failed_binding_wakes_those_who_lack_it() -> None:
    slow = Fault("bind", Outcome.REQUEST_LOST, delay_s=5, where=lambda request: request.name == "unlucky", times=None)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("unlucky", cpu=1))
        await world.settle()
        await world.create(pod("next", cpu=1))
        await world.settle()
        assert attempts_of(world.scheduler, "next") == 1
        await world.settle(6)
        assert await world.node_of("next") == "n1"

    play(story, through=faulty(slow))


def test_room_that_comes_free_while_a_pod_is_in_flight_is_not_slept_through() -> None:
    """The pod is refused in the same turn in which the room comes free: it learns of it when it comes back."""

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("first", cpu=1))
        await world.settle()
        await world.create(pod("late", cpu=1))
        await world.delete("first")
        await world.settle(15)
        assert await world.node_of("late") == "n1"

    play(story)


# --- what is told ---------------------------------------------------------------------------------------------------


def test_a_condition_that_says_it_already_is_not_written_again() -> None:
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
    play(story, through=faulty(noted), limits=Limits(asleep_s_max=10))


def test_the_time_of_the_transition_stays_while_only_the_message_changes() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("big", cpu=2))
        await world.settle(5)

        async def since() -> str | None:
            (condition,) = (await world.pod("big")).status.conditions
            return condition.last_transition_time

        before = await since()
        await world.create(node("n2", cpu=1, taints=["gone:NoSchedule"]))
        await world.settle(400)
        told = await world.condition("big")
        assert told is not None
        assert told[2].startswith("0/2 nodes are available")
        assert await since() == before

    play(story)


def test_a_long_message_is_whole_in_the_condition_and_shortened_in_the_event() -> None:
    text = "x" * 3000

    class Talkative(PreFilter[None]):
        name = "Talkative"

        def pre_filter(self, pod: PodRecord) -> Rejection:
            return unresolvable(text)

    config, registry = with_plugins(Talkative)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle()
        told = await world.condition("web")
        assert told is not None
        assert text in told[2]
        ((_, _, note),) = (await world.events("FailedScheduling"))[:1]
        assert len(note.encode()) == 1024
        assert note.endswith(" ...")

    play(story, config=config, registry=registry)


def test_an_error_of_the_cycle_is_a_scheduler_error() -> None:
    class Broken(PreFilter[None]):
        name = "Broken"

        def pre_filter(self, pod: PodRecord) -> Rejection:
            return failure("out of order")

    config, registry = with_plugins(Broken)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        message = 'running PreFilter plugin "Broken": out of order'
        assert await world.condition("web") == ("False", "SchedulerError", message)
        assert ("web", "FailedScheduling", message) in await world.events()

    play(story, config=config, registry=registry)


@pytest.mark.parametrize(
    "outcome", [Outcome.BROKEN, Outcome.REQUEST_LOST, Outcome.ANSWER_LOST], ids=lambda outcome: outcome.name
)
def test_a_status_that_is_written_late_does_not_contradict_what_happened_since(outcome: Outcome) -> None:
    """The patch about the refusal goes wrong a few times; meanwhile the pod is bound."""

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


def test_where_a_pod_is_going_is_not_told_after_it_has_arrived() -> None:
    """Writing the expected node takes longer than Permit and the binding."""

    class Brief(Permit):
        name = "Brief"

        def permit(self, pod: PodRecord, node_name: str) -> Wait:
            return Wait(10)

    config, registry = with_plugins(Brief)

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
    play(story, config=config, registry=registry, through=faulty(slow))


# --- several -------------------------------------------------------------------------------------------------------


def test_two_profiles_each_with_its_own_plugins() -> None:
    profiles = [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": "packer",
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ],
            "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
        },
    ]

    async def story(world: World) -> None:
        await world.create(node("busy", cpu=8), node("idle", cpu=8), pod("there", cpu=4, on="busy"))
        await world.settle()
        await world.create(pod("spread", cpu=1), pod("packed", cpu=1, scheduler="packer"))
        await world.settle()
        assert [await world.node_of(name) for name in ("spread", "packed")] == ["idle", "busy"]
        await world.create(pod("lost", cpu=1, scheduler="nobody"))
        await world.settle()
        assert await world.condition("lost") is None

    play(story, config=configuration(profiles=profiles))


def test_two_schedulers_with_names_of_their_own_share_a_cluster() -> None:
    config = configuration(profiles=[{"schedulerName": "second"}])

    async def story(world: World) -> None:
        await world.create(*(node(f"n{n}", cpu=2) for n in range(4)))
        async with running(world, config) as second:
            for n in range(5):
                await world.create(pod(f"a-{n}", cpu=1))
                await world.settle(0.3)
                await world.create(pod(f"b-{n}", cpu=1, scheduler="second"))
                await world.settle(0.3)
            await world.settle(60)
            placed = [found for found in (await world.pods()).values() if found.spec.node_name]
            assert len(placed) == 8
            # Each sees what the other has done. If both decided at the same moment, nobody would keep them from it.
            assert await world.overcommitted() == []
            check(second)

    play(story)


def test_a_new_scheduler_goes_on_with_the_nominations_of_the_last_one() -> None:
    async def story(world: World) -> None:
        async with running(world):
            await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1))
            await world.settle()
            await world.patch("low", {"spec": {"terminationGracePeriodSeconds": 30}})
            await world.create(pod("high", cpu=2, priority=100))
            await world.settle()
            assert (await world.pod("high")).status.nominated_node_name == "n1"
        async with running(world) as second:
            await world.create(pod("thief", cpu=2, priority=50))
            await world.settle()
            await world.delete("low")
            await world.settle(30)
            assert await world.node_of("high") == "n1"
            assert await world.node_of("thief") == ""
            check(second)

    play(story, schedulers=0)


def test_a_new_scheduler_finds_what_the_last_one_had_only_assumed() -> None:
    class Cut:
        """A way to the API that ends with the first scheduler: its bindings never arrive."""

        def __init__(self, inner: Client) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
            await asyncio.Event().wait()

    async def story(world: World) -> None:
        async with running(world, client=Cut(world.client)) as first:  # type: ignore[arg-type]
            await world.create(node("n1", cpu=2), *(pod(f"web-{n}", cpu=1) for n in range(3)))
            await world.settle()
            assert len(first.assumptions) == 2
        async with running(world) as second:
            await world.settle()
            placed = [found for found in (await world.pods()).values() if found.spec.node_name]
            assert len(placed) == 2
            assert len(second.assumptions) == 0

    play(story, schedulers=0)
