"""`wait_until_ready` on virtual time, and PreEnqueue plugins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import DeadlockError, VirtualLoop, run
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.status import Status
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod, QueueState
from tests.builders import pod
from tests.scheduler.queue.builders import NODE_ADD, GatingPlugin, QueueHarness, gate, profile, record, rejecting_plugin


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


# --- PreEnqueue plugins: which pods are gated, by which plugin, and what happens if a plugin fails -------------------


def run_pre_enqueue(
    *gates: GatingPlugin, gating_plugin: str | None = None, unschedulable_plugins: frozenset[str] = frozenset()
) -> tuple[bool, QueuedPod]:
    entry = QueuedPod(record(pod("p")), 0.0)
    entry.gating_plugin, entry.unschedulable_plugins = gating_plugin, unschedulable_plugins
    queue = SchedulingQueue({"default-scheduler": profile(*gates)}, clock=VirtualClock())
    is_admitted = queue._run_pre_enqueue_plugins(entry)
    return is_admitted, entry


def test_without_plugins_every_pod_is_admitted() -> None:
    assert run_pre_enqueue()[0]


def test_every_plugin_must_admit_the_pod() -> None:
    is_admitted, entry = run_pre_enqueue(gate("One"), gate("Two", is_closed=True), third := gate("Three"))
    assert (is_admitted, entry.gating_plugin, entry.unschedulable_plugins) == (False, "Two", frozenset(("Two",)))
    assert third.called_for == [], "no plugin runs after the first rejection"


def test_the_last_gating_plugin_runs_first() -> None:
    one, two = gate("One", is_closed=True), gate("Two", is_closed=True)
    _, entry = run_pre_enqueue(one, two, gating_plugin="Two")
    assert (one.called_for, two.called_for, entry.gating_plugin) == ([], ["p"], "Two")


def test_another_plugin_may_gate_the_pod_when_the_last_one_admits_it() -> None:
    is_admitted, entry = run_pre_enqueue(
        gate("One", is_closed=True), gate("Two"), gating_plugin="Two", unschedulable_plugins=frozenset(("Two",))
    )
    assert (is_admitted, entry.gating_plugin, entry.unschedulable_plugins) == (False, "One", frozenset(("One", "Two")))


def test_a_gating_plugin_stays_an_unschedulable_plugin_after_it_admits_the_pod() -> None:
    is_admitted, entry = run_pre_enqueue(
        gate("One"), gating_plugin="One", unschedulable_plugins=frozenset(("One", "Fit"))
    )
    assert (is_admitted, entry.gating_plugin, entry.unschedulable_plugins) == (True, None, frozenset(("One", "Fit")))


def test_a_plugin_that_raises_gates_the_pod_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    broken = gate("Broken", ClusterEventWithHint(EventResource.NODE, ActionType.ADD))
    broken.error = RuntimeError("no key")
    with caplog.at_level(logging.ERROR):
        is_admitted, entry = run_pre_enqueue(broken)
    assert (is_admitted, entry.gating_plugin) == (False, "Broken")
    assert "PreEnqueue plugin Broken failed for pod default/p" in caplog.text
    assert "no key" in caplog.text


def test_a_plugin_that_returns_an_error_gates_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(GatingPlugin):
        name = "Failing"

        def pre_enqueue(self, pod: object) -> Status | None:
            return Status.error("no key")

    with caplog.at_level(logging.ERROR):
        is_admitted, entry = run_pre_enqueue(Failing(()))
    assert (is_admitted, entry.gating_plugin) == (False, "Failing")
    assert "PreEnqueue plugin Failing failed for pod default/p: no key" in caplog.text
