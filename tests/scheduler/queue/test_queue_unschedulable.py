"""Unschedulable and gated pods: own updates, gates, timeouts, and the cost of events."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEventWithHint,
    EventResource,
)
from mooring.scheduler.queue.queued_pod import QueueState, TransitionCause
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


def on_own_update(name: str, result: bool = True) -> RejectingPlugin:
    return rejecting_plugin(
        name, ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, RecordingHint(result))
    )


# Own updates


@pytest.mark.parametrize(
    ("by", "pending", "wait_s", "state"),
    [
        pytest.param("Yes", (), 0, QueueState.BACKOFF, id="helps, during the backoff"),
        pytest.param("Yes", (), 5, QueueState.ACTIVE, id="helps, after the backoff"),
        pytest.param((), ("Yes",), 0, QueueState.ACTIVE, id="helps a pending plugin"),
        pytest.param("No", (), 5, QueueState.UNSCHEDULABLE, id="does not help"),
        pytest.param("Unregistered", (), 5, QueueState.UNSCHEDULABLE, id="the plugin did not register updates"),
    ],
)
def test_an_update_queues_an_unschedulable_pod_if_it_helps(
    by: str, pending: tuple[str, ...], wait_s: float, state: QueueState
) -> None:
    harness = QueueHarness(
        on_own_update("Yes"), on_own_update("No", result=False), rejecting_plugin("Unregistered", ON_NODE_ADD)
    )
    harness.make_unschedulable("p", by=by, pending=pending)
    harness.wait_s(wait_s)
    harness.update("p", POD_LABEL, labels={"app": "new"})
    assert harness.state("p") is state
    assert harness.entry("p").pod.signature.labels == {"app": "new"}


def test_an_update_does_not_queue_other_pods() -> None:
    harness = QueueHarness(on_own_update("Yes"))
    harness.make_unschedulable("p", "q", by="Yes")
    harness.update("p", POD_LABEL)
    assert (harness.state("p"), harness.state("q")) == (QueueState.BACKOFF, QueueState.UNSCHEDULABLE)


def test_an_update_changes_the_order_of_waiting_pods() -> None:
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
        pytest.param("Yes", QueueState.BACKOFF, id="helps"),
        pytest.param("No", QueueState.UNSCHEDULABLE, id="does not help"),
    ],
)
def test_an_update_in_flight_is_replayed_and_the_latest_record_is_requeued(by: str, state: QueueState) -> None:
    harness = QueueHarness(on_own_update("Yes"), on_own_update("No", result=False))
    harness.add("p", "other")
    harness.pop_all()
    harness.update("p", POD_LABEL, labels={"app": "new"})
    assert harness.state("p") is QueueState.IN_FLIGHT
    assert harness.in_flight["p"].pod.signature.labels == {}, "the current attempt keeps its record"
    assert harness.reject("p", by) is state
    assert harness.entry("p").pod.signature.labels == {"app": "new"}
    assert harness.reject("other", by) is QueueState.UNSCHEDULABLE


def test_the_caller_of_requeue_may_set_a_newer_record() -> None:
    harness = QueueHarness(on_own_update("No", result=False))
    harness.add("p")
    harness.pop()
    harness.update("p", POD_LABEL, labels={"app": "newer"})
    harness.in_flight["p"].pod = harness.pod("p", labels={"app": "newest"})
    harness.reject("p", "No")
    assert harness.entry("p").pod.signature.labels == {"app": "newest"}


def test_an_update_in_flight_is_replayed_once() -> None:
    harness = QueueHarness(on_own_update("Yes"))
    harness.add("p")
    harness.pop()
    harness.update("p", POD_LABEL)
    assert harness.reject("p", "Yes") is QueueState.BACKOFF
    harness.pop()
    assert harness.reject("p", "Yes") is QueueState.UNSCHEDULABLE


def test_a_pod_with_too_many_updates_in_flight_is_retried() -> None:
    harness = QueueHarness(on_own_update("No", result=False))
    harness.add("p")
    harness.pop()
    for _ in range(101):
        harness.update("p", POD_LABEL)
    assert len(harness.in_flight["p"].own_events) == 1
    assert harness.reject("p", "No") is QueueState.BACKOFF


# Gating plugins


def gated_harness(*events: ClusterEventWithHint) -> tuple[QueueHarness, GatingPlugin]:
    gating = gate("Gate", *events, is_closed=True)
    return QueueHarness(rejecting_plugin("Fit", ON_NODE_ADD), gating), gating


def test_a_gated_pod_becomes_active_when_its_update_opens_the_gate() -> None:
    harness, gating = gated_harness(
        ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    )
    harness.add("p")
    assert harness.state("p") is QueueState.GATED
    assert harness.entry("p").gating_plugin == "Gate"
    assert harness.pop() is None
    harness.wait_s(7)
    harness.update("p", GATES_GONE)
    assert harness.state("p") is QueueState.GATED, "the plugin runs again, and still rejects the pod"
    gating.is_closed = False
    harness.update("p", GATES_GONE)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.entry("p").first_attempt_s == 7, "the time while it was gated does not count"
    assert harness.counted() == [
        ("unschedulable", "UnschedulablePodAdd"),
        ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
    ]


def test_every_event_of_an_update_is_tried_until_the_pod_is_admitted() -> None:
    harness, gating = gated_harness(ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE))
    harness.add("p")
    gating.opens_after = 3
    harness.update("p", POD_LABEL, GATES_GONE, POD_LABEL)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.entry("p").event_label == "UnschedulablePodUpdatePodSchedulingGatesEliminated"
    assert gating.called_for == ["p"] * 3, "when it was added, and for two events"


@pytest.mark.parametrize(
    ("events", "is_open", "state"),
    [
        pytest.param([], True, QueueState.GATED, id="the event is not registered: the plugin does not run"),
        pytest.param([ON_NODE_ADD], False, QueueState.GATED, id="the plugin rejects the pod"),
        pytest.param([ON_NODE_ADD], True, QueueState.ACTIVE, id="the plugin admits the pod"),
    ],
)
def test_only_events_of_its_gating_plugin_move_a_gated_pod(
    events: list[ClusterEventWithHint], is_open: bool, state: QueueState
) -> None:
    harness, gating = gated_harness(*events)
    gating.admitted = {"p"}
    harness.make_unschedulable("p")
    harness.wait_s(5)
    gating.admitted = set()
    harness.update("p")
    harness.queue.activate([harness.pod("p")])
    assert harness.state("p") is QueueState.GATED
    assert harness.entry("p").unschedulable_plugins == {"Fit", "Gate"}
    gating.is_closed = not is_open
    gating.called_for.clear()
    harness.move_all(NODE_ADD)
    assert harness.state("p") is state
    assert gating.called_for == (["p"] if events else [])


def test_all_rejecting_plugins_check_the_update_of_a_gated_pod() -> None:
    gating = gate("Gate", ON_NODE_ADD)
    harness = QueueHarness(on_own_update("Own"), gating)
    harness.make_unschedulable("p", by="Own")
    gating.is_closed = True
    harness.queue.activate([harness.pod("p")])
    assert harness.state("p") is QueueState.GATED
    gating.is_closed = False
    harness.wait_s(5)
    harness.update("p", POD_LABEL)
    assert harness.state("p") is QueueState.ACTIVE


def test_a_pod_is_gated_before_it_enters_backoff() -> None:
    harness, gating = gated_harness()
    gating.is_closed = False
    harness.make_unschedulable("p")
    harness.add("q")
    assert harness.pop() == "q"
    gating.is_closed = True
    harness.move_all(NODE_ADD)
    assert harness.state("p") is QueueState.GATED
    assert harness.fail("q") is QueueState.GATED, "after an error as well"
    assert harness.counted()[-2:] == [("unschedulable", "NodeAdd"), ("unschedulable", "ScheduleAttemptFailure")]


def test_a_pod_that_leaves_backoff_is_not_gated_again() -> None:
    harness, gating = gated_harness()
    gating.is_closed = False
    harness.make_unschedulable("p", "q")
    harness.move_all(NODE_ADD)
    gating.is_closed = True
    harness.queue.activate([harness.pod("q")])
    harness.wait_s(2)
    assert (harness.state("p"), harness.state("q")) == (QueueState.ACTIVE, QueueState.ACTIVE)


def test_a_gated_pod_without_attempt_has_no_backoff() -> None:
    harness, gating = gated_harness(ON_NODE_ADD)
    harness.add("p")
    gating.is_closed = False
    harness.move_all(NODE_ADD)
    assert harness.state("p") is QueueState.ACTIVE


# Timeouts


def test_an_unschedulable_pod_is_retried_after_five_minutes() -> None:
    harness = QueueHarness(rejecting_plugin("Unregistered"))
    harness.make_unschedulable("p", by="Unregistered")
    harness.wait_s(299)
    assert harness.state("p") is QueueState.UNSCHEDULABLE
    harness.wait_s(1)
    assert harness.state("p") is QueueState.ACTIVE
    entry = harness.entry("p")
    assert (entry.was_flushed, entry.cause) == (True, TransitionCause.UNSCHEDULABLE_TIMEOUT)
    assert harness.counted()[-1] == ("active", "UnschedulableTimeout")
    harness.pop()
    assert entry.was_flushed, "until the attempt ends, for the metric"
    harness.reject("p", by="Unregistered")
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
def test_a_pod_is_marked_as_flushed_unless_it_is_gated(
    was_gated: bool, is_gated: bool, backs_off: bool, state: QueueState
) -> None:
    gating = gate("Gate")
    backoff_s = 360.0 if backs_off else 1.0
    harness = QueueHarness(
        rejecting_plugin("Fit", ON_NODE_ADD),
        gating,
        unschedulable_s_max=30.0,
        backoff_initial_s=backoff_s,
        backoff_max_s=backoff_s,
    )
    harness.make_unschedulable("p")
    gating.is_closed = was_gated
    if was_gated:
        harness.move_all(UNSCHEDULABLE_TIMEOUT)
        assert harness.state("p") is QueueState.GATED
    gating.is_closed = is_gated
    harness.wait_s(30)
    assert harness.state("p") is state
    assert harness.entry("p").was_flushed == (not is_gated)


def test_a_gated_pod_is_checked_every_five_minutes() -> None:
    harness, gating = gated_harness()
    harness.add("p")
    gating.called_for.clear()
    times = []
    for second in range(1, 1_000):
        harness.wait_s(1)
        if gating.called_for:
            times.append(second)
            gating.called_for.clear()
    assert times == [300, 600, 900]


def test_a_timeout_of_another_pod_is_replayed_to_in_flight_pods() -> None:
    harness = QueueHarness(rejecting_plugin("Unregistered"), unschedulable_s_max=10.0)
    harness.make_unschedulable("p", by="Unregistered")
    harness.wait_s(9)
    harness.add("q")
    harness.pop()
    harness.wait_s(1)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.reject("q", by="Unregistered") is QueueState.BACKOFF


# Cost


def test_an_event_calls_few_plugins() -> None:
    log = RecordingHint(result=False)
    near = rejecting_plugin(
        "Near", ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ADD, log, per_signature=True)
    )
    closed = gate("Gate", ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE), is_closed=True)
    harness = QueueHarness(rejecting_plugin("Fit", ON_NODE_ADD), near, closed)
    queue = harness.queue
    for number in range(5_000):
        queue.add(harness.pod(f"gated-{number}"))
    closed.is_closed = False
    for number in range(5_000):
        queue.add(harness.pod(f"unschedulable-{number}", labels={"app": f"a{number % 10}"}))
        entry = queue.pop()
        assert entry is not None
        queue.requeue(entry, frozenset(("Near",) if number % 2 else ("Fit",)))
    closed.called_for.clear()
    for _ in range(100):
        assert queue.move_all_to_active_or_backoff(ASSIGNED_POD_ADD) == 0
    assert len(log.called_for) == 100 * 5, "once for each signature that Near rejected"
    assert queue.move_all_to_active_or_backoff(CLAIM_ADD) == 0
    assert closed.called_for == []
    queue.check()


def test_hints_are_called_for_each_of_many_signatures() -> None:
    log = RecordingHint(result=False)
    harness = QueueHarness(
        rejecting_plugin(
            "Near", ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ADD, log, per_signature=True)
        )
    )
    for number in range(50):
        harness.make_unschedulable(f"db-{number}", by="Near", labels={"pod-index": str(number)})
    harness.move_all(ASSIGNED_POD_ADD)
    assert len(log.called_for) == 50, "a known limit: there is no index for these"
