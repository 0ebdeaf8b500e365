"""The rules of the scheduling queue. The expectations are those of kube-scheduler v1.36."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import UNSCHEDULABLE_TIMEOUT, ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import QueueSort
from mooring.scheduler.queue.queued_pod import QueueState, TransitionCause
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    POD_LABEL,
    QueueHarness,
    RecordingHint,
    gate,
    profile,
    rejecting_plugin,
)

ON_NODE_ADD = ClusterEventWithHint(EventResource.NODE, ActionType.ADD)
FIT = rejecting_plugin("Fit", ON_NODE_ADD)


# Pop


def test_pop_orders_by_priority_then_by_time() -> None:
    harness = QueueHarness()
    harness.add("a", priority=1)
    harness.add("b", priority=5)
    harness.wait_s(1)
    harness.add("c", priority=5)
    harness.add("d", priority=9)
    assert harness.pop_all() == ["d", "b", "c", "a"]


def test_the_queue_sort_plugin_orders_active_pods() -> None:
    class LowestFirst(QueueSort):
        name = "LowestFirst"

        def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
            return (pod.priority,)

    harness = QueueHarness(profiles=[profile(sort=LowestFirst())])
    harness.add("high", priority=9)
    harness.add("low", priority=1)
    assert harness.pop_all() == ["low", "high"]


def test_a_pod_is_last_if_the_queue_sort_plugin_raises(caplog: pytest.LogCaptureFixture) -> None:
    class Picky(QueueSort):
        name = "Picky"

        def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
            if pod.name == "odd":
                raise RuntimeError("what is that")
            return (pod.priority, queued_s)

    harness = QueueHarness(profiles=[profile(sort=Picky())])
    harness.add("odd")
    harness.add("even", priority=9)
    assert harness.pop_all() == ["even", "odd"]
    assert "QueueSort plugin Picky failed for pod default/odd, which is sorted last" in caplog.text


def test_pop_counts_attempts_and_keeps_the_time_of_the_first() -> None:
    harness = QueueHarness(FIT)
    harness.wait_s(3)
    harness.add("p")
    for attempt in (1, 2, 3):
        assert harness.pop() == "p"
        assert harness.entry("p").attempts == attempt
        harness.wait_s(1)
        harness.fail("p")
        harness.wait_s(20)
    assert harness.entry("p").first_attempt_s == 3


def test_if_active_is_empty_the_first_rejected_pod_is_popped_from_backoff() -> None:
    harness = QueueHarness(FIT)
    harness.make_unschedulable("a", "b", priority=1)
    harness.make_unschedulable("c", priority=2)
    harness.move_all(NODE_ADD)
    harness.add("d")
    assert harness.pop_all() == ["d", "c", "a", "b"]
    assert harness.counted()[-3:] == [("active", "PopFromBackoffQ")] * 3
    assert harness.entry("c").cause is TransitionCause.POPPED_FROM_BACKOFF


def test_a_pod_after_an_error_is_not_popped_from_backoff() -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    harness.pop()
    assert harness.fail("p") is QueueState.ERROR_BACKOFF
    assert harness.pop() is None
    harness.wait_s(1.999)
    assert harness.pop() is None
    harness.wait_s(0.001)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.pop() == "p"


def test_a_pod_that_is_rejected_often_does_not_block_a_newer_one() -> None:
    harness = QueueHarness(FIT)
    harness.make_unschedulable("old", priority=5)
    harness.wait_s(1)
    harness.add("new", priority=5)
    harness.move_all(UNSCHEDULABLE_TIMEOUT)
    harness.wait_s(20)
    harness.pop()
    harness.reject("old")
    harness.wait_s(20)
    harness.move_all(UNSCHEDULABLE_TIMEOUT)
    assert harness.state("old") is QueueState.ACTIVE
    assert harness.pop_all() == ["new", "old"]


# Backoff


def test_the_backoff_doubles_with_each_rejection_up_to_the_limit() -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    waits = []
    for _ in range(7):
        assert harness.pop() == "p"
        harness.reject("p")
        harness.move_all(NODE_ADD)
        status = harness.queue.status("p")
        assert status is not None
        assert status.backoff_end_s is not None
        waits.append(status.backoff_end_s - harness.clock.now_s() - 1)
        harness.wait_s(waits[-1])
        assert harness.state("p") is QueueState.BACKOFF, "until the end of the window"
        harness.wait_s(1)
        assert harness.state("p") is QueueState.ACTIVE
    assert waits == [1, 2, 4, 8, 10, 10, 10]


def test_the_backoff_after_errors_counts_consecutive_errors() -> None:
    harness = QueueHarness(FIT, backoff_initial_s=2.0, backoff_max_s=5.0)
    harness.add("p")
    ends = []
    for outcome in (harness.reject, harness.fail, harness.fail, harness.fail, harness.reject, harness.fail):
        harness.pop()
        now_s = harness.clock.now_s()
        outcome("p")
        harness.move_all(NODE_ADD)
        status = harness.queue.status("p")
        assert status is not None
        assert status.backoff_end_s is not None
        ends.append(status.backoff_end_s - now_s - 1)
        harness.wait_s(20)
    assert ends == [2, 2, 4, 5, 4, 2]


@pytest.mark.parametrize(
    ("wait_s", "state"),
    [
        pytest.param(0, QueueState.BACKOFF, id="during the backoff"),
        pytest.param(1.5, QueueState.BACKOFF, id="within the last window"),
        pytest.param(2, QueueState.ACTIVE, id="after the backoff"),
    ],
)
def test_an_event_moves_a_pod_to_backoff_or_active(wait_s: float, state: QueueState) -> None:
    harness = QueueHarness(FIT)
    harness.make_unschedulable("p")
    harness.wait_s(wait_s)
    assert harness.move_all(NODE_ADD) == 1
    assert harness.state("p") is state


def test_an_event_of_a_pending_plugin_skips_the_backoff() -> None:
    harness = QueueHarness(FIT)
    harness.make_unschedulable("p", by=(), pending=("Fit",))
    harness.move_all(NODE_ADD)
    assert harness.state("p") is QueueState.ACTIVE


def test_a_maximum_of_zero_disables_the_backoff() -> None:
    harness = QueueHarness(FIT, backoff_initial_s=0.0, backoff_max_s=0.0)
    harness.make_unschedulable("p")
    harness.move_all(NODE_ADD)
    assert harness.state("p") is QueueState.ACTIVE
    harness.pop()
    assert harness.fail("p") is QueueState.ACTIVE


# Requeueing


@pytest.mark.parametrize(
    ("events", "by", "pending", "state"),
    [
        pytest.param([], "Fit", (), QueueState.UNSCHEDULABLE, id="no event"),
        pytest.param([CLAIM_ADD], "Fit", (), QueueState.UNSCHEDULABLE, id="an event that its plugin did not register"),
        pytest.param([NODE_ADD], "Fit", (), QueueState.BACKOFF, id="an event that helps"),
        pytest.param([NODE_ADD], "Unregistered", (), QueueState.UNSCHEDULABLE, id="an event of another plugin"),
        pytest.param([NODE_ADD], "No", (), QueueState.UNSCHEDULABLE, id="the hint returns SKIP"),
        pytest.param([NODE_ADD], (), ("Fit",), QueueState.ACTIVE, id="an event of a pending plugin"),
        pytest.param([NODE_ADD], "Fit", ("No",), QueueState.BACKOFF, id="SKIP of a pending plugin, QUEUE of another"),
        pytest.param([CLAIM_ADD, NODE_ADD], "Fit", ("Volumes",), QueueState.ACTIVE, id="the best of all events"),
        pytest.param([NODE_ADD, CLAIM_ADD], "Fit", ("Volumes",), QueueState.ACTIVE, id="in any order"),
        pytest.param([UNSCHEDULABLE_TIMEOUT], "Unregistered", (), QueueState.BACKOFF, id="a wildcard event"),
        pytest.param([], (), (), QueueState.ERROR_BACKOFF, id="no plugin: an error"),
    ],
)
def test_events_in_flight_are_replayed_on_requeue(
    events: list[object], by: str, pending: tuple[str, ...], state: QueueState
) -> None:
    harness = QueueHarness(
        FIT,
        rejecting_plugin("No", ClusterEventWithHint(EventResource.NODE, ActionType.ADD, RecordingHint(result=False))),
        rejecting_plugin("Volumes", ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)),
        rejecting_plugin("Unregistered"),
    )
    harness.queue.move_all_to_active_or_backoff(NODE_ADD)  # before the pod is popped: not replayed
    harness.add("p")
    harness.pop()
    for event in events:
        harness.move_all(event)  # type: ignore[arg-type]
    assert harness.reject("p", by, pending) is state
    assert harness.counted()[-1][1] == "ScheduleAttemptFailure"
    assert harness.queue.in_flight_events() == {}


def test_hints_get_the_objects_of_events_in_flight() -> None:
    log = RecordingHint()
    harness = QueueHarness(
        rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE, log))
    )
    harness.add("p")
    harness.pop()
    harness.move_all(NODE_ADD, None, "n1")
    harness.move_all(NODE_LABEL, "n1", "n2")
    log.result = False
    harness.reject("p")
    assert log.changes == [(None, "n1"), ("n1", "n2")]


def test_events_that_no_plugin_registered_are_not_stored() -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    harness.pop()
    harness.move_all(CLAIM_ADD)
    assert harness.queue.in_flight_events() == {"PodPopped": 1}


def test_in_flight_events_are_counted_by_label() -> None:
    harness = QueueHarness(FIT)
    assert harness.queue.in_flight_events() == {}
    harness.add("p", "q")
    harness.pop_all()
    for _ in range(3):
        harness.move_all(NODE_ADD)
    harness.update("p", POD_LABEL)
    harness.queue.activate([harness.pod("q")])
    assert harness.queue.in_flight_events() == {
        "PodPopped": 2,
        "NodeAdd": 3,
        "UnschedulablePodUpdatePodLabel": 1,
        "ForceActivate": 1,
    }


def test_beyond_the_limit_of_in_flight_events_a_rejected_pod_is_retried() -> None:
    harness = QueueHarness(FIT, rejecting_plugin("Unregistered"), in_flight_events_max=3)
    harness.add("old", "young")
    assert harness.pop() == "old"
    harness.move_all(NODE_ADD)
    assert harness.pop() == "young"
    for _ in range(3):
        harness.move_all(NODE_ADD)
    assert harness.reject("old", by="Unregistered") is QueueState.BACKOFF
    assert harness.reject("young", by="Unregistered") is QueueState.UNSCHEDULABLE


def test_a_pod_can_be_requeued_after_done_if_its_binding_fails() -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    harness.pop()
    harness.queue.done("p")
    assert harness.state("p") is QueueState.NOT_QUEUED
    assert harness.fail("p") is QueueState.ERROR_BACKOFF
    assert harness.entry("p").attempts == 1
    harness.wait_s(2)
    assert harness.pop() == "p"
    assert harness.entry("p").attempts == 2


def test_a_pod_that_is_rejected_after_done_is_retried() -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    harness.pop()
    harness.queue.done("p")
    assert harness.reject("p") is QueueState.BACKOFF


def test_done_may_be_called_twice() -> None:
    harness = QueueHarness(FIT)
    harness.add("p", "q")
    harness.pop()
    harness.queue.done("p")
    harness.queue.done("p")
    harness.queue.done("q")
    assert (harness.state("p"), harness.state("q")) == (QueueState.NOT_QUEUED, QueueState.ACTIVE)


def test_a_queued_pod_cannot_be_requeued(caplog: pytest.LogCaptureFixture) -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    harness.pop()
    entry = harness.in_flight["p"]
    harness.reject("p")
    assert harness.queue.requeue(entry, frozenset(("Fit",))) is QueueState.UNSCHEDULABLE
    assert entry.unschedulable_count == 1
    assert "pod default/p cannot be requeued, it is in the queue" in caplog.text


def test_an_error_clears_the_unschedulable_plugins() -> None:
    harness = QueueHarness(FIT)
    harness.make_unschedulable("p")
    harness.move_all(NODE_ADD)
    harness.pop()
    assert harness.entry("p").unschedulable_plugins == {"Fit"}, "until the attempt ends, for logs"
    harness.queue.requeue(harness.in_flight["p"], frozenset(("Fit",)), is_error=True)
    assert harness.entry("p").unschedulable_plugins == frozenset()
    assert harness.state("p") is QueueState.ERROR_BACKOFF


# Delete


def active(harness: QueueHarness) -> None:
    harness.add("p")


def unschedulable(harness: QueueHarness) -> None:
    harness.make_unschedulable("p")


def backing_off(harness: QueueHarness) -> None:
    harness.make_unschedulable("p")
    harness.move_all(NODE_ADD)


def failed(harness: QueueHarness) -> None:
    harness.add("p")
    harness.pop()
    harness.fail("p")


def gated(harness: QueueHarness) -> None:
    harness.gate.is_closed = True
    harness.add("p")


def in_flight(harness: QueueHarness) -> None:
    harness.add("p")
    harness.pop()


IN_EVERY_STATE = pytest.mark.parametrize(
    "story", [active, unschedulable, backing_off, failed, gated, in_flight], ids=lambda story: story.__name__
)


@IN_EVERY_STATE
def test_delete_removes_a_pod_in_any_state(story: Callable[[QueueHarness], None]) -> None:
    harness = QueueHarness(FIT, gate("Gate"))
    story(harness)
    assert harness.queue.delete("p")
    harness.queue.check()
    harness.queue.done("p")
    assert harness.state("p") is QueueState.NOT_QUEUED
    assert not harness.queue.delete("p")
    harness.wait_s(1_000)
    assert harness.pop() is None


def test_a_pod_that_was_deleted_in_flight_is_not_requeued() -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    harness.pop()
    harness.queue.delete("p")
    assert harness.reject("p") is QueueState.NOT_QUEUED
    assert len(harness.queue) == 0


def test_a_pod_that_is_match_of_again_after_its_deletion_is_not_lost() -> None:
    harness = QueueHarness(FIT)
    harness.add("p")
    harness.pop()
    harness.queue.delete("p")
    harness.add("p")
    assert harness.reject("p") is QueueState.UNSCHEDULABLE


@IN_EVERY_STATE
def test_a_second_add_updates_the_pod(story: Callable[[QueueHarness], None]) -> None:
    harness = QueueHarness(FIT, gate("Gate"))
    story(harness)
    state = harness.state("p")
    harness.add("p", labels={"app": "new"})
    assert (harness.state("p"), len(harness.queue)) == (state, 1)
    entry = harness.entry("p")
    assert (entry.updated_pod or entry.pod).signature.labels == {"app": "new"}


# Activate


@pytest.mark.parametrize(
    ("story", "state", "is_counted"),
    [
        pytest.param(active, QueueState.ACTIVE, False, id="active already"),
        pytest.param(unschedulable, QueueState.ACTIVE, True, id="unschedulable"),
        pytest.param(backing_off, QueueState.ACTIVE, True, id="backing off"),
        pytest.param(failed, QueueState.ACTIVE, True, id="after an error"),
        pytest.param(in_flight, QueueState.IN_FLIGHT, False, id="in flight"),
    ],
)
def test_a_plugin_can_activate_a_pod(
    story: Callable[[QueueHarness], None], state: QueueState, is_counted: bool
) -> None:
    harness = QueueHarness(FIT, gate("Gate"))
    story(harness)
    harness.queue.activate([harness.pod("p"), harness.pod("unknown")])
    harness.queue.check()
    assert (harness.state("p"), harness.state("unknown")) == (state, QueueState.NOT_QUEUED)
    assert (("active", "ForceActivate") in harness.counted()) == is_counted


def test_a_pod_that_was_activated_in_flight_is_retried() -> None:
    harness = QueueHarness(FIT)
    harness.add("p", "other")
    harness.pop_all()
    harness.queue.activate([harness.pod("p")])
    assert harness.reject("p") is QueueState.BACKOFF
    assert harness.reject("other") is QueueState.UNSCHEDULABLE


# Profiles


def test_each_pod_is_match_by_the_plugins_of_its_own_profile() -> None:
    profiles = [
        profile(rejecting_plugin("Fit", ON_NODE_ADD)),
        profile(
            rejecting_plugin("Fit", ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)),
            scheduler_name="second",
        ),
    ]
    harness = QueueHarness(profiles=profiles)
    harness.make_unschedulable("a")
    harness.make_unschedulable("b", scheduler="second")
    harness.move_all(CLAIM_ADD)
    assert (harness.state("a"), harness.state("b")) == (QueueState.UNSCHEDULABLE, QueueState.BACKOFF)
    assert harness.queue.unschedulable_counts() == {("Fit", "default-scheduler"): 1, ("Fit", "second"): 1}


def test_a_pod_of_an_unknown_profile_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no profile nobody for"):
        QueueHarness(FIT).add("p", scheduler="nobody")


def test_in_flight_pods_are_not_counted_as_unschedulable() -> None:
    harness = QueueHarness(FIT)
    harness.make_unschedulable("a", "b", by=("Fit", "Ports"))
    harness.make_unschedulable("c", by=(), pending=("Fit",))
    assert harness.queue.unschedulable_counts() == {("Fit", "default-scheduler"): 3, ("Ports", "default-scheduler"): 2}
    harness.queue.activate([harness.pod("a")])
    harness.pop()
    assert harness.queue.unschedulable_counts() == {("Fit", "default-scheduler"): 2, ("Ports", "default-scheduler"): 1}


def test_an_update_adds_an_unknown_pod() -> None:
    harness = QueueHarness(FIT)
    harness.update("p", POD_LABEL)
    assert harness.state("p") is QueueState.ACTIVE
    assert harness.counted() == [("active", "UnschedulablePodUpdate")]
