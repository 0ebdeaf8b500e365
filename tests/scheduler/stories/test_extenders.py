"""Extenders in the running scheduler: called between watch events, and possibly unavailable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from mooring.api.kinds import NODE
from mooring.client.interface import Client
from mooring.scheduler.extenders.extender import ExtenderError
from mooring.scheduler.queue.queued_pod import QueueState
from mooring.scheduler.scheduler import Scheduler
from tests.builders import node, pod
from tests.scheduler.config.builders import configuration
from tests.scheduler.extenders.builders import written
from tests.scheduler.stories.actors import ScriptedExtenders, running
from tests.scheduler.world import World, check, play

Reported = Callable[[World, Scheduler, ScriptedExtenders], Awaitable[None]]

FILTERS = {"filterVerb": "filter", "nodeCacheCapable": True}


def everybody(question: dict[str, Any]) -> dict[str, object]:
    return {"NodeNames": question["NodeNames"]}


def playing(
    reported: Reported, settings: Mapping[str, object], answers: Mapping[str, object], *, delay_s: float = 0.0
) -> None:
    """A story with one extender."""

    async def story(world: World) -> None:
        transport = ScriptedExtenders(world, answers, delay_s=delay_s)
        config = configuration(extenders=[written(**settings)])
        async with running(world, config, transport=transport) as scheduler:
            await reported(world, scheduler, transport)
            check(scheduler)

    play(story, schedulers=0)


def test_an_extender_strikes_nodes_off() -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(*(node(f"n{n}", cpu=1) for n in range(3)), pod("web", cpu=1))
        await world.settle()
        assert await world.node_of("web") == "n1"
        assert [verb for verb, _ in extenders.requests] == ["filter"]

    playing(reported, FILTERS, {"filter": {"NodeNames": ["n1"]}})


def test_a_pod_that_an_extender_rejects_everywhere_is_reported_and_queued_by_anything() -> None:
    def unless_n1_is_there(question: dict[str, Any]) -> dict[str, object]:
        if "n1" in question["NodeNames"]:
            return everybody(question)
        return {"NodeNames": [], "FailedNodes": {"n0": "no licence"}}

    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), pod("web", cpu=1))
        await world.settle()
        seen = await world.condition("web")
        assert seen is not None
        assert seen[1] == "Unschedulable"
        assert "1 no licence" in seen[2]
        await world.create(node("n1", cpu=1))
        await world.settle(15)
        assert await world.node_of("web") != ""

    playing(reported, FILTERS, {"filter": unless_n1_is_there})


def test_an_extender_scores_nodes() -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(*(node(f"n{n}", cpu=8) for n in range(3)))
        await world.create(*(pod(f"web-{n}", cpu=1) for n in range(4)))
        await world.settle()
        assert {found.spec.node_name for found in (await world.pods()).values()} == {"n2"}

    settings = {"prioritizeVerb": "prioritize", "weight": 100, "nodeCacheCapable": True}
    playing(reported, settings, {"prioritize": [{"Host": "n2", "Score": 10}]})


def test_an_extender_binds() -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), pod("web", cpu=1))
        uid = (await world.pod("web")).metadata.uid
        await world.settle(0.5)
        ((verb, question),) = extenders.requests
        assert (verb, question) == (
            "bind",
            {"PodName": "web", "PodNamespace": "default", "PodUID": uid, "Node": "n0"},
        )
        assert len(scheduler.assumed_pods) == 1, "it says that it has: the watch will tell"
        await world.client.bind("default", "web", uid, "n0")
        await world.settle()
        assert len(scheduler.assumed_pods) == 0

    playing(reported, {"bindVerb": "bind"}, {"bind": {}})


def test_an_extender_that_cannot_bind_gives_the_pod_back() -> None:
    answers: list[object] = [{"Error": "no such disk"}, {}]

    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        assert await world.condition("web") == ("False", "SchedulerError", "no such disk")
        assert scheduler.engine.columns.pods == {}
        await world.settle(5)
        assert len(extenders.requests) == 2

    playing(reported, {"bindVerb": "bind"}, {"bind": lambda question: answers.pop(0)})


def test_if_an_ignorable_extender_fails_to_bind_the_scheduler_binds() -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), pod("web", cpu=1))
        await world.settle()
        assert await world.node_of("web") == "n0"

    playing(reported, {"bindVerb": "bind", "ignorable": True}, {"bind": ExtenderError("away")})


def test_an_extender_that_is_not_there_makes_the_pod_back_off_as_after_an_error() -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        seen = await world.condition("web")
        assert seen is not None
        assert seen[:2] == ("False", "SchedulerError")
        assert "context deadline exceeded" in seen[2]
        where = scheduler.queue.status((await world.pod("web")).metadata.uid)
        assert where is not None
        assert where.state is QueueState.ERROR_BACKOFF
        await world.settle(60)
        assert 4 <= len(extenders.requests) <= 9, "1, 2, 4, 8 and then 10 s apart"

    playing(reported, FILTERS, {"filter": ExtenderError('Post "http://x/filter": context deadline exceeded')})


def test_a_failing_ignorable_extender_is_skipped() -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), pod("web", cpu=1))
        await world.settle()
        assert await world.node_of("web") == "n0"

    playing(reported, {**FILTERS, "ignorable": True}, {"filter": ExtenderError("away")})


@pytest.mark.parametrize("failure", [RuntimeError("a bug of ours"), KeyError("x")], ids=["RuntimeError", "KeyError"])
@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_whatever_the_way_to_an_extender_raises_does_not_stop_the_scheduler(verb: str, failure: Exception) -> None:
    answers: list[object] = [failure]

    def once(question: dict[str, Any]) -> object:
        return answers.pop() if answers else ({} if verb == "bind" else everybody(question))

    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), pod("web", cpu=1))
        await world.settle(30)
        assert len(extenders.requests) == 2
        assert len(scheduler.queue) == 0

    settings = FILTERS if verb == "filter" else {"bindVerb": "bind"}
    playing(reported, settings, {verb: once})


def test_an_extender_changes_the_victims() -> None:
    def second_node(question: dict[str, Any]) -> dict[str, object]:
        victims = question["NodeNameToMetaVictims"]["n1"]
        return {"NodeNameToMetaVictims": {"n1": victims}}

    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=1), node("n1", cpu=1))
        await world.create(pod("a", cpu=1, priority=1), pod("b", cpu=1, priority=2))
        await world.settle()
        on_n1 = next(name for name, found in (await world.pods()).items() if found.spec.node_name == "n1")
        await world.create(pod("high", cpu=1, priority=100))
        await world.settle(5)
        assert await world.node_of("high") == "n1"
        assert on_n1 not in await world.pods()

    playing(reported, {"preemptVerb": "preempt", "nodeCacheCapable": True}, {"preempt": second_node})


def test_what_happens_while_an_extender_thinks_is_taken_in_afterwards() -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=2))
        await world.settle()
        await world.create(pod("web", cpu=1))
        await world.settle(1)
        assert scheduler.event_buffer.is_held
        await world.create(node("n1", cpu=2), pod("theirs", cpu=1, on="n0"))
        await world.settle(1)
        assert "n1" not in scheduler.engine.columns.row_of
        assert scheduler.engine.columns.pods == {}
        await world.settle(10)
        assert await world.node_of("web") == "n0"
        assert "n1" in scheduler.engine.columns.row_of
        assert len(scheduler.engine.columns.pods) == 2
        assert await world.overcommitted() == []

    playing(reported, FILTERS, {"filter": everybody}, delay_s=5)


@pytest.mark.parametrize("what", ["the pod", "the node"])
def test_what_is_deleted_while_an_extender_thinks(what: str) -> None:
    async def reported(world: World, scheduler: Scheduler, extenders: ScriptedExtenders) -> None:
        await world.create(node("n0", cpu=2))
        await world.settle()
        await world.create(pod("web", cpu=1))
        await world.settle(1)
        if what == "the pod":
            await world.delete("web")
        else:
            await world.client.delete(NODE, "", "n0")
            await world.create(node("n1", cpu=2))
        await world.settle(60)
        if what == "the pod":
            assert scheduler.engine.columns.pods == {}
            assert scheduler.pods.pending == {}
        assert scheduler.bindings.running == {}
        assert len(scheduler.queue) == 0

    playing(reported, FILTERS, {"filter": everybody}, delay_s=5)


def test_bindings_that_fail_while_an_extender_thinks_wait_for_it() -> None:
    """The first pod's binding fails while the extender is asked about the second one."""

    class Rejecting:
        """Rejects to bind one pod, after a while."""

        def __init__(self, world: World) -> None:
            self._world = world

        def __getattr__(self, name: str) -> object:
            return getattr(self._world.client, name)

        async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
            if name == "first":
                await self._world.clock.wait(2)
                raise ExtenderError("not this one")
            await self._world.client.bind(namespace, name, uid, node_name)

    async def story(world: World) -> None:
        transport = ScriptedExtenders(world, {"filter": everybody}, delay_s=3)
        client: Client = Rejecting(world)  # type: ignore[assignment]
        config = configuration(extenders=[written(**FILTERS)])
        async with running(world, config, client=client, transport=transport) as scheduler:
            await world.create(node("n0", cpu=1), pod("first", cpu=1))
            await world.settle(3.5)
            await world.create(pod("second", cpu=1))
            await world.settle(60)
            assert await world.node_of("second") == "n0"
            assert await world.overcommitted() == []
            check(scheduler)

    play(story, schedulers=0)
