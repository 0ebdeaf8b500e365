"""What wakes a pod: its own change, its gate, an event, a plugin, or having slept too long."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.events import ASSIGNED_POD_ADD, UNSCHEDULABLE_TIMEOUT, Action, Subject, Wake
from mooring.scheduler.queue.moves import Cause, Room
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    GATES_GONE,
    NODE_ADD,
    POD_LABEL,
    Gate,
    HintLog,
    Lobby,
    Refuser,
    gate,
    refuser,
)

ON_NODE_ADD = Wake(Subject.NODE, Action.ADD)


def on_own_change(name: str, answer: bool = True) -> Refuser:
    return refuser(name, Wake(Subject.PENDING_POD, Action.UPDATE_POD_LABEL, HintLog(answer)))


# Its own change


@pytest.mark.parametrize(
    ("by", "pending", "wait_s", "room"),
    [
        pytest.param("Yes", (), 0, Room.BACKOFF, id="the change helps, but it backs off"),
        pytest.param("Yes", (), 5, Room.ACTIVE, id="the change helps, and it has backed off"),
        pytest.param((), ("Yes",), 0, Room.ACTIVE, id="it was pending on that change"),
        pytest.param("No", (), 5, Room.UNSCHEDULABLE, id="the change does not help"),
        pytest.param("Deaf", (), 5, Room.UNSCHEDULABLE, id="its rejector does not care for changes"),
    ],
)
def test_a_sleeping_pod_that_is_changed_is_woken_if_that_helps(
    by: str, pending: tuple[str, ...], wait_s: float, room: Room
) -> None:
    lobby = Lobby(on_own_change("Yes"), on_own_change("No", answer=False), refuser("Deaf", ON_NODE_ADD))
    lobby.sleep("p", by=by, pending=pending)
    lobby.wait_s(wait_s)
    lobby.update("p", POD_LABEL, labels={"app": "new"})
    assert lobby.room("p") is room
    assert lobby.entry("p").pod.signature.labels == {"app": "new"}


def test_a_change_does_not_wake_others() -> None:
    lobby = Lobby(on_own_change("Yes"))
    lobby.sleep("p", "q", by="Yes")
    lobby.update("p", POD_LABEL)
    assert (lobby.room("p"), lobby.room("q")) == (Room.BACKOFF, Room.UNSCHEDULABLE)


def test_a_pod_that_is_changed_while_it_waits_is_sorted_again() -> None:
    lobby = Lobby(refuser("Fit", ON_NODE_ADD))
    lobby.add("a", "b", priority=5)
    lobby.update("b", POD_LABEL, priority=9)
    assert lobby.pop_all() == ["b", "a"]
    for name in "ab":
        lobby.refuse(name)
    lobby.wake(NODE_ADD)
    lobby.update("a", POD_LABEL, priority=10)
    assert (lobby.room("a"), lobby.room("b")) == (Room.BACKOFF, Room.BACKOFF)
    assert lobby.pop_all() == ["a", "b"]


@pytest.mark.parametrize(
    ("by", "room"),
    [
        pytest.param("Yes", Room.BACKOFF, id="the change helps"),
        pytest.param("No", Room.UNSCHEDULABLE, id="the change does not help"),
    ],
)
def test_a_change_in_flight_is_remembered_and_the_pod_comes_back_as_told_last(by: str, room: Room) -> None:
    lobby = Lobby(on_own_change("Yes"), on_own_change("No", answer=False))
    lobby.add("p", "other")
    lobby.pop_all()
    lobby.update("p", POD_LABEL, labels={"app": "new"})
    assert lobby.room("p") is Room.IN_FLIGHT
    assert lobby.in_flight["p"].pod.signature.labels == {}, "who schedules it is not disturbed"
    assert lobby.refuse("p", by) is room
    assert lobby.entry("p").pod.signature.labels == {"app": "new"}
    assert lobby.refuse("other", by) is Room.UNSCHEDULABLE


def test_whoever_gives_a_pod_back_may_know_it_better_than_the_queue() -> None:
    lobby = Lobby(on_own_change("No", answer=False))
    lobby.add("p")
    lobby.pop()
    lobby.update("p", POD_LABEL, labels={"app": "newer"})
    lobby.in_flight["p"].pod = lobby.pod("p", labels={"app": "newest"})
    lobby.refuse("p", "No")
    assert lobby.entry("p").pod.signature.labels == {"app": "newest"}


def test_a_change_in_flight_counts_for_that_attempt_only() -> None:
    lobby = Lobby(on_own_change("Yes"))
    lobby.add("p")
    lobby.pop()
    lobby.update("p", POD_LABEL)
    assert lobby.refuse("p", "Yes") is Room.BACKOFF
    lobby.pop()
    assert lobby.refuse("p", "Yes") is Room.UNSCHEDULABLE


def test_a_pod_that_changes_all_the_time_in_flight_is_tried_again() -> None:
    lobby = Lobby(on_own_change("No", answer=False))
    lobby.add("p")
    lobby.pop()
    for _ in range(101):
        lobby.update("p", POD_LABEL)
    assert len(lobby.in_flight["p"].own_events) == 1
    assert lobby.refuse("p", "No") is Room.BACKOFF


# Gates


def gated_lobby(*wakes: Wake) -> tuple[Lobby, Gate]:
    the_gate = gate("Gate", *wakes, is_shut=True)
    return Lobby(refuser("Fit", ON_NODE_ADD), the_gate), the_gate


def test_a_gated_pod_is_never_tried_until_its_gate_opens_and_its_change_is_seen() -> None:
    lobby, the_gate = gated_lobby(Wake(Subject.PENDING_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED))
    lobby.add("p")
    assert lobby.room("p") is Room.GATED
    assert lobby.entry("p").gated_by == "Gate"
    assert lobby.pop() is None
    lobby.wait_s(7)
    lobby.update("p", GATES_GONE)
    assert lobby.room("p") is Room.GATED, "the gate is asked again, and is still shut"
    the_gate.is_shut = False
    lobby.update("p", GATES_GONE)
    assert lobby.room("p") is Room.ACTIVE
    assert lobby.entry("p").first_attempt_s == 7, "the time at the gate does not count"
    assert lobby.counted() == [
        ("unschedulable", "UnschedulablePodAdd"),
        ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
    ]


def test_every_change_is_looked_at_until_one_lets_the_pod_in() -> None:
    lobby, the_gate = gated_lobby(Wake(Subject.PENDING_POD, Action.UPDATE))
    lobby.add("p")
    the_gate.opens_after = 3
    lobby.update("p", POD_LABEL, GATES_GONE, POD_LABEL)
    assert lobby.room("p") is Room.ACTIVE
    assert lobby.entry("p").label == "UnschedulablePodUpdatePodSchedulingGatesEliminated"
    assert the_gate.asked == ["p"] * 3, "when it came, and for two changes"


@pytest.mark.parametrize(
    ("wakes", "is_open", "room"),
    [
        pytest.param([], True, Room.GATED, id="the gate does not hear nodes: it is not even asked"),
        pytest.param([ON_NODE_ADD], False, Room.GATED, id="the gate hears nodes, and is shut"),
        pytest.param([ON_NODE_ADD], True, Room.ACTIVE, id="the gate hears nodes, and opens"),
    ],
)
def test_a_gated_pod_is_woken_only_by_what_its_gate_hears(wakes: list[Wake], is_open: bool, room: Room) -> None:
    lobby, the_gate = gated_lobby(*wakes)
    the_gate.guests = {"p"}
    lobby.sleep("p")
    lobby.wait_s(5)
    the_gate.guests = set()
    lobby.update("p")
    lobby.queue.activate([lobby.pod("p")])
    assert lobby.room("p") is Room.GATED
    assert lobby.entry("p").rejectors == {"Fit", "Gate"}
    the_gate.is_shut = not is_open
    the_gate.asked.clear()
    lobby.wake(NODE_ADD)
    assert lobby.room("p") is room
    assert the_gate.asked == (["p"] if wakes else [])


def test_a_gated_pods_own_change_is_looked_at_by_all_who_refused_it() -> None:
    the_gate = gate("Gate", ON_NODE_ADD)
    lobby = Lobby(on_own_change("Own"), the_gate)
    lobby.sleep("p", by="Own")
    the_gate.is_shut = True
    lobby.queue.activate([lobby.pod("p")])
    assert lobby.room("p") is Room.GATED
    the_gate.is_shut = False
    lobby.wait_s(5)
    lobby.update("p", POD_LABEL)
    assert lobby.room("p") is Room.ACTIVE


def test_a_pod_is_gated_on_its_way_to_backoff_too() -> None:
    lobby, the_gate = gated_lobby()
    the_gate.is_shut = False
    lobby.sleep("p")
    lobby.add("q")
    assert lobby.pop() == "q"
    the_gate.is_shut = True
    lobby.wake(NODE_ADD)
    assert lobby.room("p") is Room.GATED
    assert lobby.fail("q") is Room.GATED, "after an error as well"
    assert lobby.counted()[-2:] == [("unschedulable", "NodeAdd"), ("unschedulable", "ScheduleAttemptFailure")]


def test_who_comes_from_backoff_is_not_gated_again() -> None:
    lobby, the_gate = gated_lobby()
    the_gate.is_shut = False
    lobby.sleep("p", "q")
    lobby.wake(NODE_ADD)
    the_gate.is_shut = True
    lobby.queue.activate([lobby.pod("q")])
    lobby.wait_s(2)
    assert (lobby.room("p"), lobby.room("q")) == (Room.ACTIVE, Room.ACTIVE)


def test_a_pod_that_was_never_refused_does_not_back_off_after_its_gate() -> None:
    lobby, the_gate = gated_lobby(ON_NODE_ADD)
    lobby.add("p")
    the_gate.is_shut = False
    lobby.wake(NODE_ADD)
    assert lobby.room("p") is Room.ACTIVE


# Sleeping too long


def test_a_pod_is_woken_after_five_minutes_whatever_the_hints_say() -> None:
    lobby = Lobby(refuser("Deaf"))
    lobby.sleep("p", by="Deaf")
    lobby.wait_s(299)
    assert lobby.room("p") is Room.UNSCHEDULABLE
    lobby.wait_s(1)
    assert lobby.room("p") is Room.ACTIVE
    entry = lobby.entry("p")
    assert (entry.was_flushed, entry.cause) == (True, Cause.ASLEEP_TOO_LONG)
    assert lobby.counted()[-1] == ("active", "UnschedulableTimeout")
    lobby.pop()
    assert entry.was_flushed, "until the attempt is over, so that it can be counted"
    lobby.refuse("p", by="Deaf")
    assert not entry.was_flushed


@pytest.mark.parametrize(
    ("was_gated", "is_gated", "backs_off", "room"),
    [
        pytest.param(False, False, False, Room.ACTIVE, id="not gated"),
        pytest.param(True, False, False, Room.ACTIVE, id="not gated any more"),
        pytest.param(False, True, False, Room.GATED, id="newly gated"),
        pytest.param(True, True, False, Room.GATED, id="still gated"),
        pytest.param(False, False, True, Room.BACKOFF, id="not gated, backs off"),
        pytest.param(True, False, True, Room.BACKOFF, id="not gated any more, backs off"),
        pytest.param(False, True, True, Room.GATED, id="newly gated, backs off"),
        pytest.param(True, True, True, Room.GATED, id="still gated, backs off"),
    ],
)
def test_who_overslept_is_marked_unless_it_is_gated(
    was_gated: bool, is_gated: bool, backs_off: bool, room: Room
) -> None:
    the_gate = gate("Gate")
    backoff_s = 360.0 if backs_off else 1.0
    lobby = Lobby(
        refuser("Fit", ON_NODE_ADD), the_gate, asleep_s_max=30.0, backoff_initial_s=backoff_s, backoff_max_s=backoff_s
    )
    lobby.sleep("p")
    the_gate.is_shut = was_gated
    if was_gated:
        lobby.wake(UNSCHEDULABLE_TIMEOUT)
        assert lobby.room("p") is Room.GATED
    the_gate.is_shut = is_gated
    lobby.wait_s(30)
    assert lobby.room("p") is room
    assert lobby.entry("p").was_flushed == (not is_gated)


def test_a_gated_pod_is_looked_at_every_five_minutes_and_not_more_often() -> None:
    lobby, the_gate = gated_lobby()
    lobby.add("p")
    the_gate.asked.clear()
    times = []
    for second in range(1, 1_000):
        lobby.wait_s(1)
        if the_gate.asked:
            times.append(second)
            the_gate.asked.clear()
    assert times == [300, 600, 900]


def test_who_is_in_flight_while_somebody_oversleeps_is_tried_again_as_in_kubernetes() -> None:
    lobby = Lobby(refuser("Deaf"), asleep_s_max=10.0)
    lobby.sleep("p", by="Deaf")
    lobby.wait_s(9)
    lobby.add("q")
    lobby.pop()
    lobby.wait_s(1)
    assert lobby.room("p") is Room.ACTIVE
    assert lobby.refuse("q", by="Deaf") is Room.BACKOFF


# Cost


def test_gated_and_deaf_sleepers_are_not_asked_and_the_others_once_for_each_shape() -> None:
    log = HintLog(answer=False)
    near = refuser("Near", Wake(Subject.ASSIGNED_POD, Action.ADD, log, by_signature=True))
    shut = gate("Gate", Wake(Subject.PENDING_POD, Action.UPDATE), is_shut=True)
    lobby = Lobby(refuser("Fit", ON_NODE_ADD), near, shut)
    queue = lobby.queue
    for number in range(5_000):
        queue.add(lobby.pod(f"gated-{number}"))
    shut.is_shut = False
    for number in range(5_000):
        queue.add(lobby.pod(f"asleep-{number}", labels={"app": f"a{number % 10}"}))
        entry = queue.pop()
        assert entry is not None
        queue.give_back(entry, frozenset(("Near",) if number % 2 else ("Fit",)))
    shut.asked.clear()
    for _ in range(100):
        assert queue.wake(ASSIGNED_POD_ADD) == 0
    assert len(log.asked) == 100 * 5, "once for each shape that Near refused"
    assert queue.wake(CLAIM_ADD) == 0
    assert shut.asked == []
    queue.check()


def test_pods_that_each_have_their_own_shape_are_asked_about_one_by_one() -> None:
    log = HintLog(answer=False)
    lobby = Lobby(refuser("Near", Wake(Subject.ASSIGNED_POD, Action.ADD, log, by_signature=True)))
    for number in range(50):
        lobby.sleep(f"db-{number}", by="Near", labels={"pod-index": str(number)})
    lobby.wake(ASSIGNED_POD_ADD)
    assert len(log.asked) == 50, "no index helps here: a known limit"
