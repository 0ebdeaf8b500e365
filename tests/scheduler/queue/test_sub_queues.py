"""Transitions, statistics and status of the sub-queues; which unschedulable pods an event moves."""

from __future__ import annotations

import math

import pytest

from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from mooring.scheduler.queue import unschedulable as module
from mooring.scheduler.queue.queued_pod import (
    BACKOFF_STATES,
    CAUSES,
    NEVER_S,
    UNSCHEDULABLE_STATES,
    QueuedPod,
    QueueState,
    TransitionCause,
    check_transition,
    incoming_queue,
)
from mooring.scheduler.queue.queueing_hints import QueueingHintMap, QueueingStrategy
from mooring.scheduler.queue.sub_queues import BackoffQueue, backoff_end_s, backoff_state
from mooring.scheduler.queue.unschedulable import UnschedulablePods
from tests.builders import pod
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    NODE_ADD,
    QueueHarness,
    RecordingHint,
    RejectingPlugin,
    gate,
    profile,
    record,
    rejecting_plugin,
)


def new_harness(unschedulable_s_max: float = 300.0) -> QueueHarness:
    return QueueHarness(
        rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)),
        gate("Gate"),
        unschedulable_s_max=unschedulable_s_max,
    )


def test_the_status_has_state_cause_and_time() -> None:
    harness = new_harness()
    seen = []

    def note_status() -> None:
        status = harness.queue.status("p")
        assert status is not None
        seen.append((status.state, status.cause, status.since_s))

    harness.add("p")
    note_status()
    harness.pop()
    note_status()
    harness.wait_s(0.5)
    harness.reject("p")
    note_status()
    harness.move_all(NODE_ADD)
    note_status()
    harness.wait_s(2)
    harness.queue.flush()
    note_status()
    harness.pop()
    note_status()
    harness.queue.done("p")
    assert harness.queue.status("p") is None
    assert seen == [
        (QueueState.ACTIVE, TransitionCause.ADDED, 0.0),
        (QueueState.IN_FLIGHT, TransitionCause.POPPED, 0.0),
        (QueueState.UNSCHEDULABLE, TransitionCause.REJECTED, 0.5),
        (QueueState.BACKOFF, TransitionCause.EVENT, 0.5),
        (QueueState.ACTIVE, TransitionCause.BACKOFF_COMPLETE, 2.5),
        (QueueState.IN_FLIGHT, TransitionCause.POPPED, 2.5),
    ]


def test_statistics_count_by_state() -> None:
    closed = gate("Gate", is_closed=True)
    closed.admitted = {"unschedulable", "in-flight", "failed", "moved", "active"}
    harness = QueueHarness(
        rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)),
        rejecting_plugin("Volumes", ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)),
        closed,
    )
    harness.add("gated")
    harness.make_unschedulable("unschedulable", by="Fit")
    harness.make_unschedulable("moved", by="Volumes")
    harness.add("failed", "in-flight")
    assert (harness.pop(), harness.pop()) == ("failed", "in-flight")
    harness.move_all(CLAIM_ADD)
    harness.fail("failed")
    harness.add("active")
    numbers = harness.queue.statistics()
    assert (numbers.active, numbers.backoff, numbers.unschedulable, numbers.gated) == (1, 2, 1, 1)
    assert (numbers.in_flight, harness.queue.in_flight_events()) == (1, {"PodPopped": 1, CLAIM_ADD.label: 1})
    assert len(harness.queue) == 6


def test_the_deadline_is_the_first_end_of_a_backoff_or_a_timeout() -> None:
    harness = new_harness(unschedulable_s_max=20.0)
    assert harness.queue._sub_queues.deadline_s == math.inf
    harness.make_unschedulable("p")
    assert harness.queue._sub_queues.deadline_s == 20
    harness.move_all(NODE_ADD)
    assert harness.queue._sub_queues.deadline_s == 2
    harness.wait_s(2)
    assert harness.queue._sub_queues.deadline_s == math.inf, "no pod waits for a time"


def test_check_finds_a_pod_with_a_wrong_state() -> None:
    harness = new_harness()
    harness.add("p")
    harness.entry("p").state = QueueState.BACKOFF
    with pytest.raises(AssertionError, match=r"QueuedPod\(default/p backoff, 0 attempts\) is in"):
        harness.queue.check()


def backoff_queue(initial_s: float = 1.0, max_s: float = 10.0) -> BackoffQueue:
    return BackoffQueue(initial_s, max_s, lambda entry: (-entry.pod.priority, entry.queued_s))


def entry_of(
    name: str = "p", *, queued_s: float = 0.0, rejections: int = 0, errors: int = 0, priority: int = 0
) -> QueuedPod:
    entry = QueuedPod(record(pod(name, uid=name, priority=priority)), queued_s)
    entry.unschedulable_count, entry.consecutive_errors = rejections, errors
    entry.unschedulable_plugins = frozenset(("Fit",)) if rejections and not errors else frozenset()
    return entry


@pytest.mark.parametrize(
    ("entry", "initial_s", "max_s", "end"),
    [
        pytest.param(entry_of(), 1, 10, NEVER_S, id="no attempt: no backoff"),
        pytest.param(entry_of(rejections=1), 1, 10, 2, id="one rejection: one second, to the end of its window"),
        pytest.param(entry_of(rejections=2), 1, 10, 3, id="twice: two seconds"),
        pytest.param(entry_of(rejections=5), 3, 1000, 49, id="doubling: 3 * 2^4 = 48"),
        pytest.param(entry_of(rejections=16), 1, 32, 33, id="up to the limit"),
        pytest.param(entry_of(rejections=2000), 1, 32, 33, id="for any number"),
        pytest.param(entry_of(rejections=5, errors=1), 1, 32, 2, id="after an error, consecutive errors count"),
        pytest.param(entry_of(rejections=1, errors=16), 1, 32, 33, id="errors reach the limit too"),
        pytest.param(entry_of(rejections=16), 0, 0, NEVER_S, id="a maximum of zero: no backoff"),
        pytest.param(entry_of(rejections=1, queued_s=7.4), 1, 10, 9, id="8.4 lies in the window that ends at 9"),
        pytest.param(entry_of(rejections=1, queued_s=7.0), 1, 10, 9, id="so does 8.0"),
        pytest.param(entry_of(rejections=1, queued_s=0.3), 0.25, 10, 1, id="0.55 lies in the first window"),
    ],
)
def test_a_backoff_ends_at_the_end_of_its_window(entry: QueuedPod, initial_s: float, max_s: float, end: float) -> None:
    backoff_queue(initial_s, max_s).set_window(entry)
    assert backoff_end_s(entry) == end


def test_rejected_pods_of_one_window_return_in_queue_sort_order() -> None:
    # The values of kube-scheduler's own test: now is 10 s, every pod was rejected once.
    backoff = backoff_queue()
    for name, queued_s, priority in (
        ("p0", 10, 1),
        ("p1", 9, 1),
        ("p2", 8.001, 2),
        ("p3", 8, 1),
        ("p4", 8, 2),
        ("p5", 7, 1),
    ):
        entry = entry_of(name, queued_s=queued_s, rejections=1, priority=priority)
        backoff.set_window(entry)
        backoff.rejected.push(name, entry)
    assert over(backoff, at_s=10.0) == ["p5", "p4", "p2", "p3"]
    assert backoff.next_end_s() == 11


def test_pods_after_an_error_return_after_rejected_ones_in_insertion_order() -> None:
    backoff = backoff_queue()
    for name, queued_s, errors, priority in (("f1", 0.2, 1, 1), ("f2", 0.1, 1, 9), ("r1", 0.3, 0, 1), ("f0", 0, 3, 9)):
        entry = entry_of(name, queued_s=queued_s, rejections=1, errors=errors, priority=priority)
        backoff.set_window(entry)
        backoff.heap(backoff_state(entry)).push(name, entry)
    assert over(backoff, at_s=2.0) == ["r1", "f1", "f2"]
    assert over(backoff, at_s=4.9) == []
    assert over(backoff, at_s=5.0) == ["f0"]


@pytest.mark.parametrize(
    ("unschedulable_plugins", "pending", "state"),
    [
        pytest.param({"Fit"}, (), QueueState.BACKOFF, id="rejected"),
        pytest.param((), {"Fit"}, QueueState.BACKOFF, id="a pending plugin"),
        pytest.param((), (), QueueState.ERROR_BACKOFF, id="neither: an error"),
    ],
)
def test_the_backoff_state_depends_on_the_last_attempt(
    unschedulable_plugins: set[str], pending: set[str], state: QueueState
) -> None:
    entry = entry_of()
    entry.unschedulable_plugins, entry.pending_plugins = frozenset(unschedulable_plugins), frozenset(pending)
    assert backoff_state(entry) is state


def over(backoff: BackoffQueue, *, at_s: float) -> list[str]:
    names = []
    while (entry := backoff.first_completed(at_s)) is not None:
        names.append(entry.pod.name)
        backoff.heap(backoff_state(entry)).delete(entry.pod.uid)
    return names


# --- The transitions of the queue: which are allowed, and which queue the metric counts them for ---------------------


def test_every_state_can_be_entered_and_left() -> None:
    others = {state for state in QueueState if state is not QueueState.NOT_QUEUED}
    assert {target for _, target in CAUSES} == set(QueueState)
    assert {origin for origin, _ in CAUSES} == set(QueueState)
    assert all((state, QueueState.NOT_QUEUED) in CAUSES for state in others)


def test_only_pop_makes_a_pod_in_flight() -> None:
    causes = {cause for (_, target), causes in CAUSES.items() if target is QueueState.IN_FLIGHT for cause in causes}
    assert causes == {TransitionCause.POPPED, TransitionCause.POPPED_FROM_BACKOFF}


def test_a_pod_after_an_error_is_never_popped_from_backoff() -> None:
    assert (QueueState.ERROR_BACKOFF, QueueState.IN_FLIGHT) not in CAUSES


@pytest.mark.parametrize("state", sorted(UNSCHEDULABLE_STATES | BACKOFF_STATES), ids=lambda state: state.text)
def test_of_the_waiting_states_only_backoff_leads_to_in_flight(state: QueueState) -> None:
    assert ((state, QueueState.IN_FLIGHT) in CAUSES) == (state is QueueState.BACKOFF)


@pytest.mark.parametrize(
    ("origin", "target", "cause"),
    [
        pytest.param(
            QueueState.NOT_QUEUED, QueueState.IN_FLIGHT, TransitionCause.POPPED, id="from not queued to in flight"
        ),
        pytest.param(QueueState.ACTIVE, QueueState.BACKOFF, TransitionCause.EVENT, id="from active back to backoff"),
        pytest.param(QueueState.BACKOFF, QueueState.ACTIVE, TransitionCause.EVENT, id="out of backoff by an event"),
        pytest.param(
            QueueState.ERROR_BACKOFF,
            QueueState.IN_FLIGHT,
            TransitionCause.POPPED_FROM_BACKOFF,
            id="popped from backoff after an error",
        ),
        pytest.param(
            QueueState.IN_FLIGHT, QueueState.UNSCHEDULABLE, TransitionCause.FAILED, id="unschedulable after an error"
        ),
        pytest.param(
            QueueState.UNSCHEDULABLE, QueueState.UNSCHEDULABLE, TransitionCause.EVENT, id="unschedulable again"
        ),
    ],
)
def test_other_transitions_are_bugs(origin: QueueState, target: QueueState, cause: TransitionCause) -> None:
    with pytest.raises(AssertionError, match=f"p: no transition from {origin.text} to {target.text} with cause"):
        check_transition(origin, target, cause, "p")


@pytest.mark.parametrize(
    ("origin", "target", "cause", "queue"),
    [
        pytest.param(
            QueueState.NOT_QUEUED, QueueState.ACTIVE, TransitionCause.ADDED, "active", id="a new pod is active"
        ),
        pytest.param(
            QueueState.NOT_QUEUED,
            QueueState.GATED,
            TransitionCause.ADDED,
            "unschedulable",
            id="gated counts as unschedulable",
        ),
        pytest.param(
            QueueState.IN_FLIGHT,
            QueueState.ERROR_BACKOFF,
            TransitionCause.FAILED,
            "backoff",
            id="both backoff states count as backoff",
        ),
        pytest.param(
            QueueState.BACKOFF,
            QueueState.IN_FLIGHT,
            TransitionCause.POPPED_FROM_BACKOFF,
            "active",
            id="popped from backoff counts as active",
        ),
        pytest.param(
            QueueState.ACTIVE, QueueState.IN_FLIGHT, TransitionCause.POPPED, "", id="a popped pod is not counted"
        ),
        pytest.param(
            QueueState.GATED,
            QueueState.GATED,
            TransitionCause.EVENT,
            "unschedulable",
            id="gated again after an event is counted again",
        ),
        pytest.param(
            QueueState.GATED, QueueState.GATED, TransitionCause.UPDATED, "", id="gated again after an update is not"
        ),
        pytest.param(
            QueueState.UNSCHEDULABLE,
            QueueState.GATED,
            TransitionCause.ACTIVATED,
            "",
            id="gated after an activation is not",
        ),
    ],
)
def test_transitions_are_counted_as_in_kube_scheduler(
    origin: QueueState, target: QueueState, cause: TransitionCause, queue: str
) -> None:
    check_transition(origin, target, cause, "p")
    assert incoming_queue(origin, target, cause) == queue


def rejected(
    name: str,
    *by: str,
    pending: tuple[str, ...] = (),
    gating_plugin: str | None = None,
    app: str = "web",
    queued_s: float = 0.0,
    priority: int = 0,
) -> QueuedPod:
    entry = QueuedPod(record(pod(name, uid=name, labels={"app": app}, priority=priority)), queued_s)
    entry.unschedulable_plugins = frozenset(by) | ({gating_plugin} if gating_plugin else frozenset())
    entry.pending_plugins, entry.gating_plugin = frozenset(pending), gating_plugin
    return entry


def unschedulable_pods(
    *plugins: RejectingPlugin, entries: list[QueuedPod], unschedulable_s_max: float = 300.0
) -> UnschedulablePods:
    gates = (gate("Nodes", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)), gate("Gate"))
    unschedulable = UnschedulablePods(
        QueueingHintMap({"default-scheduler": profile(*plugins, *gates)}, with_extenders=False), unschedulable_s_max
    )
    for entry in entries:
        unschedulable.add(entry)
    return unschedulable


def moved(unschedulable: UnschedulablePods, event: object = NODE_ADD, **options: object) -> list[str]:
    found = unschedulable.pods_to_move(event, None, None, options.get("pre_check"))  # type: ignore[arg-type]
    return [entry.pod.name for entry, _ in found]


def on_node_add(name: str, hint: RecordingHint | None = None, *, per_signature: bool = False) -> RejectingPlugin:
    return rejecting_plugin(name, ClusterEventWithHint(EventResource.NODE, ActionType.ADD, hint, per_signature))


def test_an_event_moves_the_pods_whose_rejecting_plugins_registered_it() -> None:
    unschedulable = unschedulable_pods(
        on_node_add("Fit"),
        rejecting_plugin("Volumes", ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)),
        entries=[rejected("a", "Fit"), rejected("b", "Volumes"), rejected("c", "Fit", "Volumes")],
    )
    assert moved(unschedulable, NODE_ADD) == ["a", "c"]
    assert moved(unschedulable, CLAIM_ADD) == ["b", "c"]
    assert moved(unschedulable, ASSIGNED_POD_ADD) == []
    assert moved(unschedulable, UNSCHEDULABLE_TIMEOUT) == ["a", "b", "c"]


def test_a_per_signature_hint_is_called_once_per_signature() -> None:
    log = RecordingHint()
    entries = [rejected(f"w{number}", "Fit", app="web") for number in range(5)]
    entries += [rejected(f"d{number}", "Fit", app="db") for number in range(5)]
    unschedulable = unschedulable_pods(on_node_add("Fit", log, per_signature=True), entries=entries)
    assert len(moved(unschedulable)) == 10
    assert log.called_for == ["w0", "d0"]


def test_another_hint_is_called_for_each_pod() -> None:
    log = RecordingHint()
    unschedulable = unschedulable_pods(on_node_add("Fit", log), entries=[rejected(name, "Fit") for name in "abc"])
    assert moved(unschedulable) == ["a", "b", "c"]
    assert log.called_for == ["a", "b", "c"]


def test_per_pod_hints_are_not_called_if_they_cannot_improve_the_strategy() -> None:
    by_pod = RecordingHint()
    plugins = (on_node_add("Fit", RecordingHint(), per_signature=True), on_node_add("Volumes", by_pod))
    unschedulable = unschedulable_pods(*plugins, entries=[rejected("a", "Fit", "Volumes")])
    assert moved(unschedulable) == ["a"]
    assert by_pod.called_for == []


def test_an_event_that_no_rejecting_plugin_registered_calls_no_hint() -> None:
    log = RecordingHint()
    plugins = (
        on_node_add("Fit", log),
        rejecting_plugin("Near", ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ADD, log)),
    )
    unschedulable = unschedulable_pods(*plugins, entries=[rejected(f"p{number}", "Fit") for number in range(1_000)])
    for _ in range(1_000):
        assert moved(unschedulable, ASSIGNED_POD_ADD) == []
    assert log.called_for == []


def test_only_events_of_the_gating_plugin_move_gated_pods() -> None:
    entries = [
        rejected("a", "Fit", gating_plugin="Gate"),
        rejected("b", "Fit", gating_plugin="Nodes"),
        rejected("c", gating_plugin="Nodes"),
    ]
    log = RecordingHint()
    unschedulable = unschedulable_pods(on_node_add("Fit", log), entries=entries)
    assert moved(unschedulable, NODE_ADD) == ["b", "c"]
    assert moved(unschedulable, UNSCHEDULABLE_TIMEOUT) == ["a", "b", "c"]
    assert unschedulable.gated_count == 3


def test_the_pre_check_excludes_pods() -> None:
    entries = [rejected("low", "Fit", priority=1), rejected("high", "Fit", priority=9)]
    unschedulable = unschedulable_pods(on_node_add("Fit"), entries=entries)
    found = unschedulable.pods_to_move(NODE_ADD, None, None, lambda pod: pod.priority <= 5)
    assert [(entry.pod.name, strategy) for entry, strategy in found] == [("low", QueueingStrategy.AFTER_BACKOFF)]


def test_a_pending_plugin_queues_the_pod_immediately() -> None:
    unschedulable = unschedulable_pods(
        on_node_add("Fit"), entries=[rejected("a", "Fit"), rejected("b", pending=("Fit",))]
    )
    strategies = {
        entry.pod.name: strategy for entry, strategy in unschedulable.pods_to_move(NODE_ADD, None, None, None)
    }
    assert strategies == {"a": QueueingStrategy.AFTER_BACKOFF, "b": QueueingStrategy.IMMEDIATELY}


def test_pods_time_out_in_the_order_of_their_timeouts() -> None:
    entries = [rejected("a", "Fit", queued_s=5), rejected("b", "Fit", queued_s=3), rejected("c", "Fit", queued_s=0)]
    entries[2].flushed_s = 9.0
    unschedulable = unschedulable_pods(on_node_add("Fit"), entries=entries, unschedulable_s_max=10.0)
    assert unschedulable.next_timeout_s() == 13
    assert unschedulable.first_leftover(12.9) is None
    order = []
    while (entry := unschedulable.first_leftover(100.0)) is not None:
        order.append(entry.pod.name)
        unschedulable.remove(entry)
    assert order == ["b", "a", "c"]
    assert (len(unschedulable), unschedulable.next_timeout_s()) == (0, float("inf"))


def test_empty_groups_are_removed_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUPS_MAX", 3)
    unschedulable = unschedulable_pods(on_node_add("Fit"), entries=[kept := rejected("kept", "Fit")])
    for number in range(10):
        entry = rejected("p", "Fit", f"Other{number}")
        unschedulable.add(entry)
        assert moved(unschedulable) == ["kept", "p"]
        unschedulable.remove(entry)
    assert len(unschedulable._groups) <= 3
    assert [entry.pod.name for entry in unschedulable.entries()] == [kept.pod.name]
    unschedulable.remove(kept)
    assert moved(unschedulable) == []


@pytest.mark.parametrize(
    ("by_both", "asked"),
    [
        pytest.param(True, 3, id="a per-signature-pair hint is called once per pair, and again for a new signature"),
        pytest.param(False, 7, id="another hint is called every time"),
    ],
)
def test_a_repeated_event_that_moved_no_pod_is_skipped(by_both: bool, asked: int) -> None:
    calls: list[tuple[str, str]] = []

    def skip(pod: PodInfo, old: None, new: PodInfo) -> QueueingHint:
        calls.append((pod.name, new.name))
        return QueueingHint.SKIP

    event = ClusterEventWithHint(
        EventResource.ASSIGNED_POD, ActionType.ADD, skip, per_signature=True, per_signature_pair=by_both
    )
    unschedulable = unschedulable_pods(rejecting_plugin("Affinity", event), entries=[rejected("a", "Affinity")])
    columns = Columns()
    placed = [columns.record(pod(f"placed-{n}", on="n1", labels={"app": "db"})) for n in range(5)]
    for placed_pod in placed[:3]:
        assert unschedulable.pods_to_move(ASSIGNED_POD_ADD, None, placed_pod, None) == []
    unschedulable.add(rejected("b", "Affinity", app="other"))
    for placed_pod in placed[3:]:
        assert unschedulable.pods_to_move(ASSIGNED_POD_ADD, None, placed_pod, None) == []
    assert len(calls) == asked
