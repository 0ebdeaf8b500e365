"""The status of a pod in one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from tests.scheduler.queue.builders import NODE_ADD, QueueHarness, gate, rejecting_plugin


def new_harness() -> QueueHarness:
    closed = gate("Gate", is_closed=True)
    closed.admitted = {"p"}
    return QueueHarness(
        rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)),
        closed,
        unschedulable_s_max=60.0,
    )


def active(harness: QueueHarness) -> None:
    harness.wait_s(1.5)
    harness.add("p")


def unschedulable(harness: QueueHarness) -> None:
    harness.make_unschedulable("p", by=("Fit", "Ports"))


def pending(harness: QueueHarness) -> None:
    harness.make_unschedulable("p", by=(), pending=("Fit",))


def backing_off(harness: QueueHarness) -> None:
    harness.make_unschedulable("p")
    harness.wait_s(0.25)
    harness.move_all(NODE_ADD)


def failed(harness: QueueHarness) -> None:
    harness.add("p")
    harness.pop()
    harness.fail("p")


def gated(harness: QueueHarness) -> None:
    harness.add("other")


def in_flight(harness: QueueHarness) -> None:
    harness.add("p")
    harness.pop()


@pytest.mark.parametrize(
    ("story", "summary"),
    [
        (active, "active since 1.500 s: added (UnschedulablePodAdd)"),
        (
            unschedulable,
            "unschedulable since 0.000 s: rejected (ScheduleAttemptFailure); rejected by Fit, Ports; "
            "retried at 60.000 s at the latest",
        ),
        (
            pending,
            "unschedulable since 0.000 s: rejected (ScheduleAttemptFailure); pending on Fit; "
            "retried at 60.000 s at the latest",
        ),
        (backing_off, "backoff since 0.250 s: event (NodeAdd); rejected by Fit; backs off until 2.000 s"),
        (failed, "error backoff since 0.000 s: failed (ScheduleAttemptFailure); backs off until 2.000 s"),
        (
            gated,
            "gated since 0.000 s: added (UnschedulablePodAdd); gated by Gate; retried at 60.000 s at the latest",
        ),
        (in_flight, "in flight since 0.000 s: popped"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_summary_gives_state_and_cause(story: Callable[[QueueHarness], None], summary: str) -> None:
    harness = new_harness()
    story(harness)
    status = harness.queue.status("p" if story is not gated else "other")
    assert status is not None
    assert status.summary == summary


def test_a_pod_that_is_not_queued_has_no_status() -> None:
    assert new_harness().queue.status("nobody") is None
