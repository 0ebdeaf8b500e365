"""The scheduling loop: batches, errors, the log of slow cycles, and the handling of failures."""

from __future__ import annotations

import logging

import pytest

from mooring.kit.clock import VirtualClock
from mooring.scheduler import loop
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision, PreemptionPlan
from mooring.scheduler.failure import (
    failed_with_error,
    rejected_in_binding,
    rejected_in_cycle,
    rejected_on_node,
)
from mooring.scheduler.framework.plugin import SKIP, PreFilter, Reserve, Skip
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.reporting.reports import Failure
from tests.builders import node, pod
from tests.scheduler.harness import engine_of
from tests.scheduler.world import World, play


def test_the_loop_yields_while_many_pods_are_ready() -> None:
    """On virtual time a batch takes no time: the number of pods ends it."""
    counts: list[int] = []

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1000, pods=1000))
        await world.settle()
        await world.create(*(pod(f"web-{n}", cpu=1) for n in range(3 * loop.BATCH_PODS_MAX)))
        for _ in range(50):
            await world.clock.wait(0)
            counts.append(len(world.scheduler.queue))
        await world.settle()
        assert all(found.spec.node_name == "n1" for found in (await world.pods()).values())
        assert len({count for count in counts if count}) >= 2, "another task ran between two batches"

    play(story)


def test_a_slow_cycle_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Slow(PreFilter[None]):
        """Takes 250 ms."""

        name = "Slow"

        def __init__(self, clock: VirtualClock) -> None:
            self._clock = clock

        def pre_filter(self, pod: PodInfo) -> Skip:
            self._clock.advance_to(self._clock.now_s() + 0.25)
            return SKIP

    async def story(world: World) -> None:
        with caplog.at_level(logging.WARNING):
            await world.create(node("n1", cpu=1), pod("web", cpu=1))
            await world.settle()
        assert await world.node_of("web") == "n1"
        assert "slow cycle: pod default/web took 250.0 ms on 1 nodes" in caplog.text

    play(story, plugins=(Slow,), is_replayed=False)  # it moves the clock, which the replay does


def test_an_exception_in_reserve_ends_the_attempt_and_not_the_loop() -> None:
    """An exception of a built-in plugin affects one pod only."""

    class Holds(Reserve):
        name = "Holds"
        held = 0

        def reserve(self, pod: PodInfo, row: int) -> None:
            type(self).held += 1

        def unreserve(self, pod: PodInfo, node_name: str) -> None:
            type(self).held -= 1

    class Buggy(Reserve):
        """Counts as a built-in plugin."""

        name = "Buggy"
        bugs = 1

        def reserve(self, pod: PodInfo, row: int) -> None:
            if type(self).bugs:
                type(self).bugs -= 1
                raise AssertionError("out of sync")

        def unreserve(self, pod: PodInfo, node_name: str) -> None:
            return None

    Buggy.is_built_in = True

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        assert await world.condition("web") == ("False", "SchedulerError", "AssertionError: out of sync")
        assert world.scheduler.engine.columns.pods == {}
        assert Holds.held == 0
        await world.settle(10)
        assert await world.node_of("web") == "n1"
        assert Holds.held == 1

    play(story, plugins=(Holds, Buggy))


# --- What a failure says, and what becomes of the pod: each kind of end in one row -----------------------------------


RECORD = engine_of(node("n1")).record(pod("web"))
FIT = frozenset(("NodeResourcesFit",))


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        pytest.param(
            rejected_in_cycle(Decision(RECORD, message="0/1 nodes", unschedulable_plugins=FIT)),
            Failure("0/1 nodes", is_error=False, plugin="NodeResourcesFit", unschedulable_plugins=FIT),
            id="no node: the nomination is kept",
        ),
        pytest.param(
            rejected_in_cycle(Decision(RECORD, message="0/1 nodes", unschedulable_plugins=FIT, clears_nomination=True)),
            Failure(
                "0/1 nodes", is_error=False, plugin="NodeResourcesFit", unschedulable_plugins=FIT, nominated_node=""
            ),
            id="no node, and preemption does not help: the nomination is cleared",
        ),
        pytest.param(
            rejected_in_cycle(
                Decision(RECORD, message="0/1 nodes", unschedulable_plugins=FIT, preemption=PreemptionPlan("n1", ()))
            ),
            Failure(
                "0/1 nodes", is_error=False, plugin="NodeResourcesFit", unschedulable_plugins=FIT, nominated_node="n1"
            ),
            id="preemption finds a node",
        ),
        pytest.param(
            rejected_in_cycle(Decision(RECORD, message="oops", error="filter")),
            Failure("oops", is_error=True),
            id="the cycle failed",
        ),
        pytest.param(
            rejected_on_node(Status(Code.UNSCHEDULABLE, ("not today",), "Quota")),
            Failure(
                "0/1 nodes are available: 1 not today.",
                is_error=False,
                plugin="Quota",
                unschedulable_plugins=frozenset(("Quota",)),
                nominated_node="",
            ),
            id="Reserve or Permit rejected it: unschedulable until an event of the plugin",
        ),
        pytest.param(
            rejected_on_node(Status(Code.PENDING, ("waiting",), "Quota")),
            Failure(
                "0/1 nodes are available: 1 waiting.",
                is_error=False,
                plugin="Quota",
                pending_plugins=frozenset(("Quota",)),
                nominated_node="",
            ),
            id="a pending plugin",
        ),
        pytest.param(
            rejected_in_binding(Status(Code.UNSCHEDULABLE, ("not ready",), "Disks")),
            Failure("not ready", is_error=False, plugin="Disks", nominated_node=""),
            id="PreBind or Bind rejected it: retried, because no event is known to help",
        ),
        pytest.param(
            failed_with_error(Status(Code.ERROR, ("the server is away",))),
            Failure("the server is away", is_error=True, nominated_node=""),
            id="an error",
        ),
    ],
)
def test_failures(failure: Failure, expected: Failure) -> None:
    assert failure == expected
