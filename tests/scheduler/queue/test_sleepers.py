"""Sleepers are found by what can wake them; what cannot costs next to nothing."""

from __future__ import annotations

import pytest

from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ASSIGNED_POD_ADD, UNSCHEDULABLE_TIMEOUT, Action, Subject, Wake
from mooring.scheduler.queue import sleepers as room
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.hearing import Ears, Verdict
from mooring.scheduler.queue.sleepers import Sleepers
from tests.builders import pod
from tests.scheduler.queue.builders import CLAIM_ADD, NODE_ADD, HintLog, Refuser, gate, profile, record, refuser


def sleeper(
    name: str,
    *by: str,
    pending: tuple[str, ...] = (),
    gated_by: str | None = None,
    app: str = "web",
    queued_s: float = 0.0,
    priority: int = 0,
) -> QueuedPod:
    entry = QueuedPod(record(pod(name, uid=name, labels={"app": app}, priority=priority)), queued_s)
    entry.rejectors = frozenset(by) | ({gated_by} if gated_by else frozenset())
    entry.pending, entry.gated_by = frozenset(pending), gated_by
    return entry


def dormitory(*plugins: Refuser, entries: list[QueuedPod], asleep_s_max: float = 300.0) -> Sleepers:
    gates = (gate("Nodes", Wake(Subject.NODE, Action.ADD)), gate("Gate"))
    sleepers = Sleepers(Ears({"default-scheduler": profile(*plugins, *gates)}, with_extenders=False), asleep_s_max)
    for entry in entries:
        sleepers.add(entry)
    return sleepers


def woken(sleepers: Sleepers, event: object = NODE_ADD, **options: object) -> list[str]:
    found = sleepers.woken_by(event, None, None, options.get("only"))  # type: ignore[arg-type]
    return [entry.pod.name for entry, _ in found]


def on_node_add(name: str, hint: HintLog | None = None, *, by_signature: bool = False) -> Refuser:
    return refuser(name, Wake(Subject.NODE, Action.ADD, hint, by_signature))


def test_pods_are_woken_by_what_those_hear_who_refused_them() -> None:
    sleepers = dormitory(
        on_node_add("Fit"),
        refuser("Volumes", Wake(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD)),
        entries=[sleeper("a", "Fit"), sleeper("b", "Volumes"), sleeper("c", "Fit", "Volumes")],
    )
    assert woken(sleepers, NODE_ADD) == ["a", "c"]
    assert woken(sleepers, CLAIM_ADD) == ["b", "c"]
    assert woken(sleepers, ASSIGNED_POD_ADD) == []
    assert woken(sleepers, UNSCHEDULABLE_TIMEOUT) == ["a", "b", "c"]


def test_a_hint_that_reads_the_shape_is_asked_once_for_all_pods_of_a_shape() -> None:
    log = HintLog()
    entries = [sleeper(f"w{number}", "Fit", app="web") for number in range(5)]
    entries += [sleeper(f"d{number}", "Fit", app="db") for number in range(5)]
    sleepers = dormitory(on_node_add("Fit", log, by_signature=True), entries=entries)
    assert len(woken(sleepers)) == 10
    assert log.asked == ["w0", "d0"]


def test_a_hint_that_reads_the_pod_is_asked_for_each() -> None:
    log = HintLog()
    sleepers = dormitory(on_node_add("Fit", log), entries=[sleeper(name, "Fit") for name in "abc"])
    assert woken(sleepers) == ["a", "b", "c"]
    assert log.asked == ["a", "b", "c"]


def test_hints_of_a_pod_are_not_asked_when_its_shape_has_settled_it() -> None:
    by_pod = HintLog()
    plugins = (on_node_add("Fit", HintLog(), by_signature=True), on_node_add("Volumes", by_pod))
    sleepers = dormitory(*plugins, entries=[sleeper("a", "Fit", "Volumes")])
    assert woken(sleepers) == ["a"]
    assert by_pod.asked == []


def test_an_event_that_no_rejector_hears_asks_nobody_however_many_sleep() -> None:
    log = HintLog()
    plugins = (on_node_add("Fit", log), refuser("Near", Wake(Subject.ASSIGNED_POD, Action.ADD, log)))
    sleepers = dormitory(*plugins, entries=[sleeper(f"p{number}", "Fit") for number in range(1_000)])
    for _ in range(1_000):
        assert woken(sleepers, ASSIGNED_POD_ADD) == []
    assert log.asked == []


def test_gated_pods_hear_only_what_their_gate_hears() -> None:
    entries = [
        sleeper("a", "Fit", gated_by="Gate"),
        sleeper("b", "Fit", gated_by="Nodes"),
        sleeper("c", gated_by="Nodes"),
    ]
    log = HintLog()
    sleepers = dormitory(on_node_add("Fit", log), entries=entries)
    assert woken(sleepers, NODE_ADD) == ["b", "c"]
    assert woken(sleepers, UNSCHEDULABLE_TIMEOUT) == ["a", "b", "c"]
    assert sleepers.gated == 3


def test_only_those_who_are_meant_are_woken() -> None:
    entries = [sleeper("low", "Fit", priority=1), sleeper("high", "Fit", priority=9)]
    sleepers = dormitory(on_node_add("Fit"), entries=entries)
    found = sleepers.woken_by(NODE_ADD, None, None, lambda pod: pod.priority <= 5)
    assert [(entry.pod.name, verdict) for entry, verdict in found] == [("low", Verdict.AFTER_BACKOFF)]


def test_a_plugin_that_the_pod_is_pending_on_wakes_it_at_once() -> None:
    sleepers = dormitory(on_node_add("Fit"), entries=[sleeper("a", "Fit"), sleeper("b", pending=("Fit",))])
    verdicts = {entry.pod.name: verdict for entry, verdict in sleepers.woken_by(NODE_ADD, None, None, None)}
    assert verdicts == {"a": Verdict.AFTER_BACKOFF, "b": Verdict.AT_ONCE}


def test_who_has_slept_longest_is_the_first_to_have_slept_too_long() -> None:
    entries = [sleeper("a", "Fit", queued_s=5), sleeper("b", "Fit", queued_s=3), sleeper("c", "Fit", queued_s=0)]
    entries[2].flushed_s = 9.0
    sleepers = dormitory(on_node_add("Fit"), entries=entries, asleep_s_max=10.0)
    assert sleepers.next_end_s() == 13
    assert sleepers.first_overslept(12.9) is None
    order = []
    while (entry := sleepers.first_overslept(100.0)) is not None:
        order.append(entry.pod.name)
        sleepers.remove(entry)
    assert order == ["b", "a", "c"]
    assert (len(sleepers), sleepers.next_end_s()) == (0, float("inf"))


def test_audiences_without_sleepers_are_forgotten_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "AUDIENCES_MAX", 3)
    sleepers = dormitory(on_node_add("Fit"), entries=[kept := sleeper("kept", "Fit")])
    for number in range(10):
        entry = sleeper("p", "Fit", f"Other{number}")
        sleepers.add(entry)
        assert woken(sleepers) == ["kept", "p"]
        sleepers.remove(entry)
    assert len(sleepers._audiences) <= 3
    assert [entry.pod.name for entry in sleepers.entries()] == [kept.pod.name]
    sleepers.remove(kept)
    assert woken(sleepers) == []


@pytest.mark.parametrize(
    ("by_both", "asked"),
    [
        pytest.param(True, 3, id="a hint that reads both shapes is asked once for a shape, and again for newcomers"),
        pytest.param(False, 7, id="any other is asked every time"),
    ],
)
def test_what_woke_nobody_wakes_nobody_the_next_time(by_both: bool, asked: int) -> None:
    calls: list[tuple[str, str]] = []

    def is_never_a_friend(pod: PodInfo, old: None, new: PodInfo) -> bool:
        calls.append((pod.name, new.name))
        return False

    wake = Wake(Subject.ASSIGNED_POD, Action.ADD, is_never_a_friend, by_signature=True, by_both_signatures=by_both)
    sleepers = dormitory(refuser("Affinity", wake), entries=[sleeper("a", "Affinity")])
    columns = Columns()
    placed = [columns.record(pod(f"placed-{n}", on="n1", labels={"app": "db"})) for n in range(5)]
    for each in placed[:3]:
        assert sleepers.woken_by(ASSIGNED_POD_ADD, None, each, None) == []
    sleepers.add(sleeper("b", "Affinity", app="other"))
    for each in placed[3:]:
        assert sleepers.woken_by(ASSIGNED_POD_ADD, None, each, None) == []
    assert len(calls) == asked
