"""Unschedulable pods: an event finds the pods it may help, and calls few hints."""

from __future__ import annotations

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
from mooring.scheduler.queue import sub_queues as module
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.queue.queueing_hints import QueueingHintMap, QueueingStrategy
from mooring.scheduler.queue.sub_queues import UnschedulablePods
from tests.builders import pod
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    NODE_ADD,
    RecordingHint,
    RejectingPlugin,
    gate,
    profile,
    record,
    rejecting_plugin,
)


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
    for each in placed[:3]:
        assert unschedulable.pods_to_move(ASSIGNED_POD_ADD, None, each, None) == []
    unschedulable.add(rejected("b", "Affinity", app="other"))
    for each in placed[3:]:
        assert unschedulable.pods_to_move(ASSIGNED_POD_ADD, None, each, None) == []
    assert len(calls) == asked
