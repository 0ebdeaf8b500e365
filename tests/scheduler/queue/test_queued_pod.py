"""Queued pods, and the events that occur while they are in flight."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.queue.in_flight import InFlightPods
from mooring.scheduler.queue.queued_pod import InFlightEvent
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


# --- In-flight events: a pod gets those since it was popped, up to a limit


def event(what: object) -> InFlightEvent:
    return InFlightEvent(NODE_ADD, None, what)


def events_of(in_flight: InFlightPods, uid: str) -> list[object] | None:
    events = in_flight.events_since_pop(uid)
    return None if events is None else [one.new for one in events]


def flight(steps: str, events_max: int = 1_000) -> InFlightPods:
    """'+a' pops pod a, '-a' removes it, any digit is an event."""
    in_flight = InFlightPods(events_max)
    for step in steps.split():
        if step.startswith("+"):
            in_flight.add(step[1:])
        elif step.startswith("-"):
            in_flight.remove(step[1:])
        else:
            in_flight.record(event(step))
        in_flight.check()
    return in_flight


@pytest.mark.parametrize(
    ("steps", "uid", "expected", "stored"),
    [
        pytest.param("1 2", "a", None, 0, id="no in-flight pod: no event is stored"),
        pytest.param("+a", "a", [], 0, id="no event"),
        pytest.param("1 +a 2 3", "a", ["2", "3"], 2, id="events before the pod was popped are not returned"),
        pytest.param("+a 1 +b 2", "b", ["2"], 2, id="each pod has its own position"),
        pytest.param("+a 1 +b 2 -a", "b", ["2"], 1, id="events that only a needed are dropped"),
        pytest.param("+a 1 +b 2 -b", "a", ["1", "2"], 2, id="the oldest pod keeps all events"),
        pytest.param("+a 1 +b 2 +c 3 -b -a", "c", ["3"], 1, id="the middle pod is removed first"),
        pytest.param("+a 1 -a +a 2", "a", ["2"], 1, id="a pod is popped again"),
        pytest.param("+a 1 -a", "a", None, 0, id="no in-flight pod left"),
        pytest.param("+a 1 -b", "a", ["1"], 1, id="removing an unknown pod changes nothing"),
    ],
)
def test_events_since_a_pod_was_popped(steps: str, uid: str, expected: list[object] | None, stored: int) -> None:
    in_flight = flight(steps)
    assert events_of(in_flight, uid) == expected
    assert len(list(in_flight.events())) == stored


def test_beyond_the_limit_a_pod_that_was_popped_earlier_gets_none() -> None:
    in_flight = flight("+a 1 2 +b 3 4", events_max=3)
    assert events_of(in_flight, "a") is None
    assert events_of(in_flight, "b") == ["3", "4"]
    assert [event.new for event in in_flight.events()] == ["2", "3", "4"]


def test_a_pod_is_in_flight_once() -> None:
    with pytest.raises(AssertionError, match="a is in flight already"):
        flight("+a +a")


@given(st.lists(st.sampled_from(["+a", "+b", "+c", "-a", "-b", "-c", "event"]), max_size=60), st.integers(1, 8))
def test_events_equal_those_of_one_list_per_pod(steps: list[str], events_max: int) -> None:
    in_flight = InFlightPods(events_max)
    private: dict[str, list[object]] = {}
    for number, step in enumerate(steps):
        uid = step[1:]
        if step == "event":
            in_flight.record(event(number))
            for events in private.values():
                events.append(number)
        elif step.startswith("-"):
            in_flight.remove(uid)
            private.pop(uid, None)
        elif uid not in private:
            in_flight.add(uid)
            private[uid] = []
        in_flight.check()
    for uid, events in private.items():
        assert events_of(in_flight, uid) == (events if len(events) <= events_max else None)
