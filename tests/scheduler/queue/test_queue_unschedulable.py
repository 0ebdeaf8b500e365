"""What events a pod: its own change, its gate, an event, a plugin, or having slept too long."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEventWithHint,
    EventResource,
)
from mooring.scheduler.queue.states import QueueState, TransitionCause
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    GATES_GONE,
    NODE_ADD,
    POD_LABEL,
    GatingPlugin,
    QueueHarness,
    RecordingHint,
    RejectingPlugin,
    gate,
    rejecting_plugin,
)

ON_NODE_ADD = ClusterEventWithHint(EventResource.NODE, ActionType.ADD)


def on_own_change(name: str, result: bool = True) -> RejectingPlugin:
    return rejecting_plugin(
        name, ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, RecordingHint(result))
    )


# Its own change


@pytest.mark.parametrize(
    ("by", "pending", "wait_s", "state"),
    [
        pytest.param("Yes", (), 0, QueueState.BACKOFF, id="the change helps, but it backs off"),
        pytest.param("Yes", (), 5, QueueState.ACTIVE, id="the change helps, and it has backed off"),
        pytest.param((), ("Yes",), 0, QueueState.ACTIVE, id="it was pending on that change"),
        pytest.param("No", (), 5, QueueState.UNSCHEDULABLE, id="the change does not help"),
        pytest.param("Deaf", (), 5, QueueState.UNSCHEDULABLE, id="its rejector does not care for changes"),
    ],
)
def test_a_sleeping_pod_that_is_changed_is_woken_if_that_helps(
    by: str, pending: tuple[str, ...], wait_s: float, state: QueueState
) -> None:
    harness = QueueHarness(
        on_own_change("Yes"), on_own_change("No", result=False), rejecting_plugin("Deaf", ON_NODE_ADD)
    )
    harness.make_unschedulable("p", by=by, pending=pending)
    harness.wait_s(wait_s)
    harness.update("p", POD_LABEL, labels={"app": "new"})
    assert harness.state("p") is state
    assert harness.entry("p").pod.signature.labels == {"app": "new"}


def test_a_change_does_not_wake_others() -> None:
    harness = QueueHarness(on_own_change("Yes"))
    harness.make_unschedulable("p", "q", by="Yes")
    harness.update("p", POD_LABEL)
    assert (harness.state("p"), harness.state("q")) == (QueueState.BACKOFF, QueueState.UNSCHEDULABLE)


def test_a_pod_that_is_changed_while_it_waits_is_sorted_again() -> None:
    harness = QueueHarness(rejecting_plugin("Fit", ON_NODE_ADD))
    harness.add("a", "b", priority=5)
    harness.update("b", POD_LABEL, priority=9)
    assert harness.pop_all() == ["b", "a"]
    for name in "ab":
        harness.reject(name)
    harness.move_all(NODE_ADD)
    harness.update("a", POD_LABEL, priority=10)
    assert (harness.state("a"), harness.state("b")) == (QueueState.BACKOFF, QueueState.BACKOFF)
    assert harness.pop_all() == ["a", "b"]


@pytest.mark.parametrize(
    ("by", "state"),
    [
        pytest.param("Yes", QueueState.BACKOFF, id="the change helps"),
        pytest.param("No", QueueState.UNSCHEDULABLE, id="the change does not help"),
    ],
)
def test_a_change_in_flight_is_remembered_and_the_pod_comes_back_as_told_last(by: str, state: QueueState) -> None:
    harness = QueueHarness(on_own_change("Yes"), on_own_change("No", result=False))
    harness.add("p", "other")
    harness.pop_all()
    harness.update("p", POD_LABEL, labels={"app": "new"})
    assert harness.state("p") is QueueState.IN_FLIGHT
    assert harness.in_flight["p"].pod.signature.labels == {}, "who schedules it is not disturbed"
    assert harness.reject("p", by) is state
    assert harness.entry("p").pod.signature.labels == {"app": "new"}
    assert harness.reject("other", by) is QueueState.UNSCHEDULABLE


def test_whoever_gives_a_pod_back_may_know_it_better_than_the_queue() -> None:
    harness = QueueHarness(on_own_change("No", result=False))
    harness.add("p")
    harness.pop()
    harness.update("p", POD_LABEL, labels={"app": "newer"})
    harness.in_flight["p"].pod = harness.pod("p", labels={"app": "newest"})
    harness.reject("p", "No")
    assert harness.entry("p").pod.signature.labels == {"app": "newest"}


def test_a_change_in_flight_counts_for_that_attempt_only() -> None:
    harness = QueueHarness(on_own_change("Yes"))
    harness.add("p")
    harness.pop()
    harness.update("p", POD_LABEL)
    assert harness.reject("p", "Yes") is QueueState.BACKOFF
    harness.pop()
    assert harness.reject("p", "Yes") is QueueState.UNSCHEDULABLE


def test_a_pod_that_changes_all_the_time_in_flight_is_tried_again() -> None:
    harness = QueueHarness(on_own_change("No", result=False))
    harness.add("p")
    harness.pop()
    for _ in range(101):
        harness.update("p", POD_LABEL)
    assert len(harness.in_flight["p"].own_events) == 1
    assert harness.reject("p", "No") is QueueState.BACKOFF


# Gates


def gated_harness(*events: ClusterEventWithHint) -> tuple[QueueHarness, GatingPlugin]:
    the_gate = gate("Gate", *events, is_closed=True)
    return QueueHarness(rejecting_plugin("Fit", ON_NODE_ADD), the_gate), the_gate


def test_a_gated_pod_is_never_tried_until_its_gate_opens_and_its_change_is_seen() -> None:
    harness, the_gate = gated_harness(
        ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    )
    harness.add("p")
    assert harness.state("p") is QueueState.GATED
    assert harness.entry("p").gating_plugin == "Gate"
    assert harness.pop() is None
    harness.wait_s(7)
    harness.update("p", GATES_GONE)
    assert harness.state("p") is QueueState.GATED, "the gate is asked again, and is still shut"
    the_gate.is_closed = False
    harness.update("p", GATES_GONE)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.entry("p").first_attempt_s == 7, "the time at the gate does not count"
    assert harness.counted() == [
        ("unschedulable", "UnschedulablePodAdd"),
        ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
    ]


def test_every_change_is_looked_at_until_one_lets_the_pod_in() -> None:
    harness, the_gate = gated_harness(ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE))
    harness.add("p")
    the_gate.opens_after = 3
    harness.update("p", POD_LABEL, GATES_GONE, POD_LABEL)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.entry("p").event_label == "UnschedulablePodUpdatePodSchedulingGatesEliminated"
    assert the_gate.called_for == ["p"] * 3, "when it came, and for two changes"


@pytest.mark.parametrize(
    ("events", "is_open", "state"),
    [
        pytest.param([], True, QueueState.GATED, id="the gate does not hear nodes: it is not even asked"),
        pytest.param([ON_NODE_ADD], False, QueueState.GATED, id="the gate hears nodes, and is shut"),
        pytest.param([ON_NODE_ADD], True, QueueState.ACTIVE, id="the gate hears nodes, and opens"),
    ],
)
def test_a_gated_pod_is_woken_only_by_what_its_gate_hears(
    events: list[ClusterEventWithHint], is_open: bool, state: QueueState
) -> None:
    harness, the_gate = gated_harness(*events)
    the_gate.admitted = {"p"}
    harness.make_unschedulable("p")
    harness.wait_s(5)
    the_gate.admitted = set()
    harness.update("p")
    harness.queue.activate([harness.pod("p")])
    assert harness.state("p") is QueueState.GATED
    assert harness.entry("p").unschedulable_plugins == {"Fit", "Gate"}
    the_gate.is_closed = not is_open
    the_gate.called_for.clear()
    harness.move_all(NODE_ADD)
    assert harness.state("p") is state
    assert the_gate.called_for == (["p"] if events else [])


def test_a_gated_pods_own_change_is_looked_at_by_all_who_refused_it() -> None:
    the_gate = gate("Gate", ON_NODE_ADD)
    harness = QueueHarness(on_own_change("Own"), the_gate)
    harness.make_unschedulable("p", by="Own")
    the_gate.is_closed = True
    harness.queue.activate([harness.pod("p")])
    assert harness.state("p") is QueueState.GATED
    the_gate.is_closed = False
    harness.wait_s(5)
    harness.update("p", POD_LABEL)
    assert harness.state("p") is QueueState.ACTIVE


def test_a_pod_is_gated_on_its_way_to_backoff_too() -> None:
    harness, the_gate = gated_harness()
    the_gate.is_closed = False
    harness.make_unschedulable("p")
    harness.add("q")
    assert harness.pop() == "q"
    the_gate.is_closed = True
    harness.move_all(NODE_ADD)
    assert harness.state("p") is QueueState.GATED
    assert harness.fail("q") is QueueState.GATED, "after an error as well"
    assert harness.counted()[-2:] == [("unschedulable", "NodeAdd"), ("unschedulable", "ScheduleAttemptFailure")]


def test_who_comes_from_backoff_is_not_gated_again() -> None:
    harness, the_gate = gated_harness()
    the_gate.is_closed = False
    harness.make_unschedulable("p", "q")
    harness.move_all(NODE_ADD)
    the_gate.is_closed = True
    harness.queue.activate([harness.pod("q")])
    harness.wait_s(2)
    assert (harness.state("p"), harness.state("q")) == (QueueState.ACTIVE, QueueState.ACTIVE)


def test_a_pod_that_was_never_refused_does_not_back_off_after_its_gate() -> None:
    harness, the_gate = gated_harness(ON_NODE_ADD)
    harness.add("p")
    the_gate.is_closed = False
    harness.move_all(NODE_ADD)
    assert harness.state("p") is QueueState.ACTIVE


# Sleeping too long


def test_a_pod_is_woken_after_five_minutes_whatever_the_hints_say() -> None:
    harness = QueueHarness(rejecting_plugin("Deaf"))
    harness.make_unschedulable("p", by="Deaf")
    harness.wait_s(299)
    assert harness.state("p") is QueueState.UNSCHEDULABLE
    harness.wait_s(1)
    assert harness.state("p") is QueueState.ACTIVE
    entry = harness.entry("p")
    assert (entry.was_flushed, entry.cause) == (True, TransitionCause.UNSCHEDULABLE_TIMEOUT)
    assert harness.counted()[-1] == ("active", "UnschedulableTimeout")
    harness.pop()
    assert entry.was_flushed, "until the attempt is over, so that it can be counted"
    harness.reject("p", by="Deaf")
    assert not entry.was_flushed


@pytest.mark.parametrize(
    ("was_gated", "is_gated", "backs_off", "state"),
    [
        pytest.param(False, False, False, QueueState.ACTIVE, id="not gated"),
        pytest.param(True, False, False, QueueState.ACTIVE, id="not gated any more"),
        pytest.param(False, True, False, QueueState.GATED, id="newly gated"),
        pytest.param(True, True, False, QueueState.GATED, id="still gated"),
        pytest.param(False, False, True, QueueState.BACKOFF, id="not gated, backs off"),
        pytest.param(True, False, True, QueueState.BACKOFF, id="not gated any more, backs off"),
        pytest.param(False, True, True, QueueState.GATED, id="newly gated, backs off"),
        pytest.param(True, True, True, QueueState.GATED, id="still gated, backs off"),
    ],
)
def test_who_overslept_is_marked_unless_it_is_gated(
    was_gated: bool, is_gated: bool, backs_off: bool, state: QueueState
) -> None:
    the_gate = gate("Gate")
    backoff_s = 360.0 if backs_off else 1.0
    harness = QueueHarness(
        rejecting_plugin("Fit", ON_NODE_ADD),
        the_gate,
        unschedulable_s_max=30.0,
        backoff_initial_s=backoff_s,
        backoff_max_s=backoff_s,
    )
    harness.make_unschedulable("p")
    the_gate.is_closed = was_gated
    if was_gated:
        harness.move_all(UNSCHEDULABLE_TIMEOUT)
        assert harness.state("p") is QueueState.GATED
    the_gate.is_closed = is_gated
    harness.wait_s(30)
    assert harness.state("p") is state
    assert harness.entry("p").was_flushed == (not is_gated)


def test_a_gated_pod_is_looked_at_every_five_minutes_and_not_more_often() -> None:
    harness, the_gate = gated_harness()
    harness.add("p")
    the_gate.called_for.clear()
    times = []
    for second in range(1, 1_000):
        harness.wait_s(1)
        if the_gate.called_for:
            times.append(second)
            the_gate.called_for.clear()
    assert times == [300, 600, 900]


def test_who_is_in_flight_while_somebody_oversleeps_is_tried_again_as_in_kubernetes() -> None:
    harness = QueueHarness(rejecting_plugin("Deaf"), unschedulable_s_max=10.0)
    harness.make_unschedulable("p", by="Deaf")
    harness.wait_s(9)
    harness.add("q")
    harness.pop()
    harness.wait_s(1)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.reject("q", by="Deaf") is QueueState.BACKOFF


# Cost


def test_gated_and_deaf_sleepers_are_not_asked_and_the_others_once_for_each_shape() -> None:
    log = RecordingHint(result=False)
    near = rejecting_plugin(
        "Near", ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ADD, log, per_signature=True)
    )
    shut = gate("Gate", ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE), is_closed=True)
    harness = QueueHarness(rejecting_plugin("Fit", ON_NODE_ADD), near, shut)
    queue = harness.queue
    for number in range(5_000):
        queue.add(harness.pod(f"gated-{number}"))
    shut.is_closed = False
    for number in range(5_000):
        queue.add(harness.pod(f"asleep-{number}", labels={"app": f"a{number % 10}"}))
        entry = queue.pop()
        assert entry is not None
        queue.requeue(entry, frozenset(("Near",) if number % 2 else ("Fit",)))
    shut.called_for.clear()
    for _ in range(100):
        assert queue.move_all_to_active_or_backoff(ASSIGNED_POD_ADD) == 0
    assert len(log.called_for) == 100 * 5, "once for each shape that Near refused"
    assert queue.move_all_to_active_or_backoff(CLAIM_ADD) == 0
    assert shut.called_for == []
    queue.check()


def test_pods_that_each_have_their_own_shape_are_asked_about_one_by_one() -> None:
    log = RecordingHint(result=False)
    harness = QueueHarness(
        rejecting_plugin(
            "Near", ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ADD, log, per_signature=True)
        )
    )
    for number in range(50):
        harness.make_unschedulable(f"db-{number}", by="Near", labels={"pod-index": str(number)})
    harness.move_all(ASSIGNED_POD_ADD)
    assert len(log.called_for) == 50, "no index helps here: a known limit"
