"""Waiting until somebody is ready: on virtual time, without a busy loop, and cancellable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mooring.kit.loop import DeadlockError, VirtualLoop, run
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.queue.states import QueueState
from tests.scheduler.queue.builders import NODE_ADD, QueueHarness, gate, rejecting_plugin


def wait_for_pod(
    prepare: Callable[[QueueHarness], object], meanwhile: Callable[[QueueHarness], Awaitable[object]] | None = None
) -> tuple[str | None, float, int]:
    """(who is popped, after how many seconds, in how many events of the loop)."""
    harness = QueueHarness(
        rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)), gate("Gate")
    )

    async def scheduler() -> tuple[str | None, float, int]:
        prepare(harness)
        async with TaskGroup("test") as group:
            if meanwhile is not None:
                group.start(_finish(meanwhile(harness)), name="meanwhile")
            await harness.queue.wait_until_ready()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return harness.pop(), harness.clock.now_s(), loop.statistics()["events"]

    return run(scheduler(), harness.clock)


async def _finish(work: Awaitable[object]) -> None:
    await work


def failed(harness: QueueHarness) -> None:
    harness.add("p")
    harness.pop()
    harness.fail("p")


def asleep(harness: QueueHarness) -> None:
    harness.make_unschedulable("p")


def nothing(harness: QueueHarness) -> None:
    pass


async def add_after_3_s(harness: QueueHarness) -> None:
    await harness.clock.wait(3)
    harness.add("q")


async def wake_after_1_s(harness: QueueHarness) -> None:
    await harness.clock.wait(1)
    harness.move_all(NODE_ADD)


async def a_failure_after_half_a_second(harness: QueueHarness) -> None:
    await harness.clock.wait(0.5)
    harness.add("early")
    harness.pop()
    harness.fail("early")


def failed_and_asleep(harness: QueueHarness) -> None:
    harness.make_unschedulable("p")
    harness.move_all(NODE_ADD)
    harness.pop()
    harness.reject("p")
    harness.add("failed")
    harness.pop()
    harness.fail("failed")


async def a_gated_pod_after_1_s(harness: QueueHarness) -> None:
    await harness.clock.wait(1)
    harness.gate.is_closed = True
    harness.add("gated")
    harness.gate.is_closed = False


@pytest.mark.parametrize(
    ("prepare", "meanwhile", "who", "after_s"),
    [
        pytest.param(lambda harness: harness.add("p"), None, "p", 0, id="somebody is ready already"),
        pytest.param(failed, None, "p", 2, id="the end of a backoff"),
        pytest.param(asleep, None, "p", 300, id="the end of a sleep"),
        pytest.param(nothing, add_after_3_s, "q", 3, id="somebody comes"),
        pytest.param(asleep, wake_after_1_s, "p", 1, id="somebody is woken, and popped early"),
        pytest.param(failed_and_asleep, wake_after_1_s, "p", 1, id="the same, although an alarm rings before its own"),
        pytest.param(nothing, a_gated_pod_after_1_s, "gated", 301, id="the end of a sleep that began while waiting"),
        pytest.param(asleep, a_failure_after_half_a_second, "early", 2, id="an alarm that is set while waiting"),
    ],
)
def test_waiting_ends_exactly_when_somebody_is_ready(
    prepare: Callable[[QueueHarness], None],
    meanwhile: Callable[[QueueHarness], Awaitable[None]] | None,
    who: str,
    after_s: float,
) -> None:
    popped, now_s, events = wait_for_pod(prepare, meanwhile)
    assert (popped, now_s) == (who, after_s)
    assert events < 30, "it does not spin"


def test_waiting_for_nothing_is_a_deadlock_on_virtual_time_and_not_a_spin() -> None:
    with pytest.raises(DeadlockError):
        wait_for_pod(nothing)


def test_a_cancelled_wait_leaves_no_alarm_and_can_be_taken_up_again() -> None:
    harness = QueueHarness(rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)))

    async def scheduler() -> None:
        failed(harness)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(1):
                await harness.queue.wait_until_ready()
        assert loop.statistics()["alarms"] == 0
        assert harness.state("p") is QueueState.ERROR_BACKOFF
        await harness.queue.wait_until_ready()
        assert harness.clock.now_s() == 2

    run(scheduler(), harness.clock)


def test_several_may_wait() -> None:
    harness = QueueHarness(rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)))
    ended_s: list[float] = []

    async def wait() -> None:
        await harness.queue.wait_until_ready()
        ended_s.append(harness.clock.now_s())

    async def both() -> None:
        async with TaskGroup("test") as group:
            group.start(wait(), name="one")
            group.start(wait(), name="two")
            group.start(add_after_3_s(harness), name="add")

    run(both(), harness.clock)
    assert ended_s == [3, 3]
