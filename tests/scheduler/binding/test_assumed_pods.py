"""Assumed pods: confirmed, forgotten, released, or expired and looked up."""

from __future__ import annotations

import math

import pytest

from mooring.api.kinds import POD
from mooring.client.interface import Client
from mooring.scheduler.binding.assumed_pods import AssumedPods
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.scheduler import Limits
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, LosesFirstBinding, Outcome, Request, Script
from tests.scheduler.world import World, play

RECORD = Columns().record(pod("p"))
OTHER = Columns().record(pod("other"))


def test_an_assumption_is_overdue_when_its_confirmation_does_not_come_in_time() -> None:
    assumed_pods = AssumedPods(ttl_s=30.0)
    first, second = assumed_pods.add(RECORD, "n1"), assumed_pods.add(OTHER, "n2")
    assert assumed_pods.expired(1e9) == []  # nobody has accepted the bindings yet
    assumed_pods.bound(first, now_s=10.0)
    assumed_pods.bound(second, now_s=11.0)
    assert first.expires_s == 40.0
    assert assumed_pods.expired(39.9) == []
    assert assumed_pods.expired(40.0) == [first]
    assert assumed_pods.expired(40.5) == []  # reported once
    assert RECORD.uid in assumed_pods  # and still believed
    assumed_pods.remove(OTHER.uid)
    assert assumed_pods.expired(1e9) == []


def test_without_a_time_nothing_is_ever_overdue() -> None:
    assumed_pods = AssumedPods(ttl_s=None)
    assumed = assumed_pods.add(RECORD, "n1")
    assumed_pods.bound(assumed, now_s=0.0)
    assert assumed_pods.expired(1e9) == []
    assert assumed.expires_s == math.inf


def test_a_response_after_the_watch_event_changes_nothing() -> None:
    assumed_pods = AssumedPods(ttl_s=30.0)
    assumed = assumed_pods.add(RECORD, "n1")
    assumed_pods.remove(RECORD.uid)  # the watch was faster
    assumed_pods.bound(assumed, now_s=0.0)
    assert len(assumed_pods) == 0
    assert assumed_pods.expired(1e9) == []


def test_a_pod_is_assumed_once() -> None:
    assumed_pods = AssumedPods(ttl_s=None)
    assumed_pods.add(RECORD, "n1")
    with pytest.raises(AssertionError, match="already assumed"):
        assumed_pods.add(RECORD, "n2")


def test_a_binding_that_is_accepted_after_its_pod_was_deleted_leaves_no_trace() -> None:
    assumed_pods = AssumedPods(ttl_s=30.0)
    assumed = assumed_pods.add(RECORD, "n1")
    assumed_pods.release(RECORD.uid)
    assumed_pods.bound(assumed, now_s=0.0)
    assert len(assumed_pods) == 0
    assert assumed_pods.expired(1e9) == []


CONFIRMED_WITHIN = Limits(confirmation_s_max=30)


def play_with_lost_binding(story: object, *faults: Fault) -> None:
    play(
        story,  # type: ignore[arg-type]
        through=lambda client, clock: FaultyClient(LosesFirstBinding(client), clock, Script(*faults)),  # type: ignore[arg-type]
        limits=CONFIRMED_WITHIN,
    )


def test_an_unbound_pod_is_bound_again_and_its_resources_are_free_in_between() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(5)
        await world.create(pod("next", cpu=1))
        await world.settle(60)
        placed = [name for name, found in (await world.pods()).items() if found.spec.node_name]
        assert len(placed) == 1
        assert len(world.scheduler.assumed_pods) == 0

    play_with_lost_binding(story)


def test_a_pod_that_is_gone_is_forgotten() -> None:
    silent = Fault("next_batch", kind=POD, delay_s=200, after=1)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(5)
        assert len(world.scheduler.assumed_pods) == 1
        await world.delete("web")
        await world.settle(60)
        assert len(world.scheduler.assumed_pods) == 0
        assert world.scheduler.engine.columns.pods == {}
        assert world.scheduler.pods.pending == {}

    play_with_lost_binding(story, silent)


def test_a_pod_that_is_there_is_confirmed() -> None:
    silent = Fault("next_batch", kind=POD, delay_s=200, after=1)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(60)
        uid = (await world.pod("web")).metadata.uid
        assert await world.node_of("web") == "n1"
        assert len(world.scheduler.assumed_pods) == 0
        assert world.scheduler.engine.columns.pods[uid].node_name == "n1"

    def through(client: Client, clock: object) -> Client:
        return FaultyClient(client, clock, Script(silent))  # type: ignore[arg-type]

    play(story, through=through, limits=CONFIRMED_WITHIN)


@pytest.mark.parametrize("times", [1, 3])
def test_while_the_lookup_fails_the_pod_stays_assumed(times: int) -> None:
    def is_the_pod(request: Request) -> bool:
        return request.name == "web"

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(35)
        assert len(world.scheduler.assumed_pods) == 1
        await world.settle(31 * times)
        assert await world.node_of("web") == "n1"

    play_with_lost_binding(story, Fault("get", Outcome.REQUEST_LOST, where=is_the_pod, times=times))
