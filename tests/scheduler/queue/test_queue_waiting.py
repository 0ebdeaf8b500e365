"""`wait_until_ready` on virtual time: exact, without a busy loop, cancellable."""

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
    """(popped pod, seconds, number of loop events)."""
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


def unschedulable(harness: QueueHarness) -> None:
    harness.make_unschedulable("p")


def nothing(harness: QueueHarness) -> None:
    pass


async def add_after_3_s(harness: QueueHarness) -> None:
    await harness.clock.wait(3)
    harness.add("q")


async def move_after_1_s(harness: QueueHarness) -> None:
    await harness.clock.wait(1)
    harness.move_all(NODE_ADD)


async def a_failure_after_half_a_second(harness: QueueHarness) -> None:
    await harness.clock.wait(0.5)
    harness.add("early")
    harness.pop()
    harness.fail("early")


def failed_and_unschedulable(harness: QueueHarness) -> None:
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
    ("prepare", "meanwhile", "name", "after_s"),
    [
        pytest.param(lambda harness: harness.add("p"), None, "p", 0, id="a pod is ready"),
        pytest.param(failed, None, "p", 2, id="a backoff ends"),
        pytest.param(unschedulable, None, "p", 300, id="a timeout ends"),
        pytest.param(nothing, add_after_3_s, "q", 3, id="a pod is added"),
        pytest.param(unschedulable, move_after_1_s, "p", 1, id="an event moves a pod, which is popped from backoff"),
        pytest.param(failed_and_unschedulable, move_after_1_s, "p", 1, id="the same, with an earlier timer"),
        pytest.param(nothing, a_gated_pod_after_1_s, "gated", 301, id="a timeout that started while waiting"),
        pytest.param(unschedulable, a_failure_after_half_a_second, "early", 2, id="a timer that is set while waiting"),
    ],
)
def test_waiting_ends_exactly_when_a_pod_is_ready(
    prepare: Callable[[QueueHarness], None],
    meanwhile: Callable[[QueueHarness], Awaitable[None]] | None,
    name: str,
    after_s: float,
) -> None:
    popped, now_s, events = wait_for_pod(prepare, meanwhile)
    assert (popped, now_s) == (name, after_s)
    assert events < 30, "not a busy loop"


def test_waiting_with_an_empty_queue_is_a_deadlock_on_virtual_time() -> None:
    with pytest.raises(DeadlockError):
        wait_for_pod(nothing)


def test_a_cancelled_wait_leaves_no_timer() -> None:
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


def test_several_tasks_may_wait() -> None:
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
