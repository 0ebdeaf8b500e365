"""The rules of the queue, one by one: the facts are those of kube-scheduler v1.36."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import UNSCHEDULABLE_TIMEOUT, Action, Subject, Wake
from mooring.scheduler.framework.plugin import QueueSort
from mooring.scheduler.queue.moves import Cause, Room
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    POD_LABEL,
    HintLog,
    Lobby,
    gate,
    profile,
    refuser,
)

ON_NODE_ADD = Wake(Subject.NODE, Action.ADD)
FIT = refuser("Fit", ON_NODE_ADD)


# Popping


def test_higher_priority_first_then_who_came_first() -> None:
    lobby = Lobby()
    lobby.add("a", priority=1)
    lobby.add("b", priority=5)
    lobby.wait_s(1)
    lobby.add("c", priority=5)
    lobby.add("d", priority=9)
    assert lobby.pop_all() == ["d", "b", "c", "a"]


def test_the_queue_sort_plugin_decides() -> None:
    class LowestFirst(QueueSort):
        name = "LowestFirst"

        def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
            return (pod.priority,)

    lobby = Lobby(profiles=[profile(sort=LowestFirst())])
    lobby.add("high", priority=9)
    lobby.add("low", priority=1)
    assert lobby.pop_all() == ["low", "high"]


def test_a_queue_sort_plugin_that_fails_puts_the_pod_last(caplog: pytest.LogCaptureFixture) -> None:
    class Picky(QueueSort):
        name = "Picky"

        def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
            if pod.name == "odd":
                raise RuntimeError("what is that")
            return (pod.priority, queued_s)

    lobby = Lobby(profiles=[profile(sort=Picky())])
    lobby.add("odd")
    lobby.add("even", priority=9)
    assert lobby.pop_all() == ["even", "odd"]
    assert "QueueSort plugin Picky failed for default/odd, which goes last" in caplog.text


def test_popping_counts_attempts_and_the_first_try_is_remembered() -> None:
    lobby = Lobby(FIT)
    lobby.wait_s(3)
    lobby.add("p")
    for attempt in (1, 2, 3):
        assert lobby.pop() == "p"
        assert lobby.entry("p").attempts == attempt
        lobby.wait_s(1)
        lobby.fail("p")
        lobby.wait_s(20)
    assert lobby.entry("p").first_attempt_s == 3


def test_when_nobody_is_active_the_first_of_the_refused_is_popped_before_its_backoff_is_over() -> None:
    lobby = Lobby(FIT)
    lobby.sleep("a", "b", priority=1)
    lobby.sleep("c", priority=2)
    lobby.wake(NODE_ADD)
    lobby.add("d")
    assert lobby.pop_all() == ["d", "c", "a", "b"]
    assert lobby.counted()[-3:] == [("active", "PopFromBackoffQ")] * 3
    assert lobby.entry("c").cause is Cause.POPPED_EARLY


def test_a_pod_whose_attempt_failed_waits_its_backoff_out_although_nobody_is_active() -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    lobby.pop()
    assert lobby.fail("p") is Room.ERROR_BACKOFF
    assert lobby.pop() is None
    lobby.wait_s(1.999)
    assert lobby.pop() is None
    lobby.wait_s(0.001)
    assert lobby.room("p") is Room.ACTIVE
    assert lobby.pop() == "p"


def test_a_pod_that_is_refused_often_does_not_block_one_that_came_later() -> None:
    lobby = Lobby(FIT)
    lobby.sleep("old", priority=5)
    lobby.wait_s(1)
    lobby.add("new", priority=5)
    lobby.wake(UNSCHEDULABLE_TIMEOUT)
    lobby.wait_s(20)
    lobby.pop()
    lobby.refuse("old")
    lobby.wait_s(20)
    lobby.wake(UNSCHEDULABLE_TIMEOUT)
    assert lobby.room("old") is Room.ACTIVE
    assert lobby.pop_all() == ["new", "old"]


# Backing off


def test_the_backoff_doubles_with_every_refusal_up_to_the_limit() -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    waits = []
    for _ in range(7):
        assert lobby.pop() == "p"
        lobby.refuse("p")
        lobby.wake(NODE_ADD)
        whereabouts = lobby.queue.whereabouts("p")
        assert whereabouts is not None
        assert whereabouts.backoff_end_s is not None
        waits.append(whereabouts.backoff_end_s - lobby.clock.now_s() - 1)
        lobby.wait_s(waits[-1])
        assert lobby.room("p") is Room.BACKOFF, "the window of the last second is waited out"
        lobby.wait_s(1)
        assert lobby.room("p") is Room.ACTIVE
    assert waits == [1, 2, 4, 8, 10, 10, 10]


def test_errors_back_off_by_errors_in_a_row_and_a_refusal_ends_the_row() -> None:
    lobby = Lobby(FIT, backoff_initial_s=2.0, backoff_max_s=5.0)
    lobby.add("p")
    ends = []
    for outcome in (lobby.refuse, lobby.fail, lobby.fail, lobby.fail, lobby.refuse, lobby.fail):
        lobby.pop()
        now_s = lobby.clock.now_s()
        outcome("p")
        lobby.wake(NODE_ADD)
        whereabouts = lobby.queue.whereabouts("p")
        assert whereabouts is not None
        assert whereabouts.backoff_end_s is not None
        ends.append(whereabouts.backoff_end_s - now_s - 1)
        lobby.wait_s(20)
    assert ends == [2, 2, 4, 5, 4, 2]


@pytest.mark.parametrize(
    ("wait_s", "room"),
    [
        pytest.param(0, Room.BACKOFF, id="woken while it backs off"),
        pytest.param(1.5, Room.BACKOFF, id="within the last window"),
        pytest.param(2, Room.ACTIVE, id="woken after it"),
    ],
)
def test_where_a_woken_pod_goes_depends_on_its_backoff(wait_s: float, room: Room) -> None:
    lobby = Lobby(FIT)
    lobby.sleep("p")
    lobby.wait_s(wait_s)
    assert lobby.wake(NODE_ADD) == 1
    assert lobby.room("p") is room


def test_a_pod_that_was_pending_does_not_back_off() -> None:
    lobby = Lobby(FIT)
    lobby.sleep("p", by=(), pending=("Fit",))
    lobby.wake(NODE_ADD)
    assert lobby.room("p") is Room.ACTIVE


def test_with_a_backoff_of_zero_nobody_backs_off() -> None:
    lobby = Lobby(FIT, backoff_initial_s=0.0, backoff_max_s=0.0)
    lobby.sleep("p")
    lobby.wake(NODE_ADD)
    assert lobby.room("p") is Room.ACTIVE
    lobby.pop()
    assert lobby.fail("p") is Room.ACTIVE


# Giving back


@pytest.mark.parametrize(
    ("happens", "by", "pending", "room"),
    [
        pytest.param([], "Fit", (), Room.UNSCHEDULABLE, id="nothing happened: it sleeps"),
        pytest.param([CLAIM_ADD], "Fit", (), Room.UNSCHEDULABLE, id="nothing that its rejector hears"),
        pytest.param([NODE_ADD], "Fit", (), Room.BACKOFF, id="something that helps"),
        pytest.param([NODE_ADD], "Deaf", (), Room.UNSCHEDULABLE, id="something that helps others"),
        pytest.param([NODE_ADD], "No", (), Room.UNSCHEDULABLE, id="its rejector's hint says no"),
        pytest.param([NODE_ADD], (), ("Fit",), Room.ACTIVE, id="something for which it was pending"),
        pytest.param([NODE_ADD], "Fit", ("No",), Room.BACKOFF, id="pending says no, a rejector yes"),
        pytest.param([CLAIM_ADD, NODE_ADD], "Fit", ("Volumes",), Room.ACTIVE, id="the best of all events"),
        pytest.param([NODE_ADD, CLAIM_ADD], "Fit", ("Volumes",), Room.ACTIVE, id="in any order"),
        pytest.param([UNSCHEDULABLE_TIMEOUT], "Deaf", (), Room.BACKOFF, id="something for everybody"),
        pytest.param([], (), (), Room.ERROR_BACKOFF, id="nobody refused it: an error"),
    ],
)
def test_what_happened_in_flight_is_replayed_to_a_pod_that_comes_back(
    happens: list[object], by: str, pending: tuple[str, ...], room: Room
) -> None:
    lobby = Lobby(
        FIT,
        refuser("No", Wake(Subject.NODE, Action.ADD, HintLog(answer=False))),
        refuser("Volumes", Wake(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD)),
        refuser("Deaf"),
    )
    lobby.queue.wake(NODE_ADD)  # before it is popped: does not count
    lobby.add("p")
    lobby.pop()
    for event in happens:
        lobby.wake(event)  # type: ignore[arg-type]
    assert lobby.refuse("p", by, pending) is room
    assert lobby.counted()[-1][1] == "ScheduleAttemptFailure"
    assert lobby.queue.statistics().in_flight_events == 0


def test_hints_see_the_change_that_happened_in_flight() -> None:
    log = HintLog()
    lobby = Lobby(refuser("Fit", Wake(Subject.NODE, Action.ADD | Action.UPDATE, log)))
    lobby.add("p")
    lobby.pop()
    lobby.wake(NODE_ADD, None, "n1")
    lobby.wake(NODE_LABEL, "n1", "n2")
    log.answer = False
    lobby.refuse("p")
    assert log.changes == [(None, "n1"), ("n1", "n2")]


def test_events_that_no_plugin_hears_are_not_kept_for_pods_in_flight() -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    lobby.pop()
    lobby.wake(CLAIM_ADD)
    assert lobby.queue.statistics().in_flight_events == 0


def test_what_is_kept_for_pods_in_flight_can_be_counted_by_event() -> None:
    lobby = Lobby(FIT)
    assert lobby.queue.in_flight_events() == {}
    lobby.add("p", "q")
    lobby.pop_all()
    for _ in range(3):
        lobby.wake(NODE_ADD)
    lobby.update("p", POD_LABEL)
    lobby.queue.activate([lobby.pod("q")])
    assert lobby.queue.in_flight_events() == {
        "PodPopped": 2,
        "NodeAdd": 3,
        "UnschedulablePodUpdatePodLabel": 1,
        "ForceActivate": 1,
    }


def test_beyond_the_limit_of_events_a_pod_is_tried_again_rather_than_left_asleep() -> None:
    lobby = Lobby(FIT, refuser("Deaf"), in_flight_events_max=3)
    lobby.add("old", "young")
    assert lobby.pop() == "old"
    lobby.wake(NODE_ADD)
    assert lobby.pop() == "young"
    for _ in range(3):
        lobby.wake(NODE_ADD)
    assert lobby.refuse("old", by="Deaf") is Room.BACKOFF
    assert lobby.refuse("young", by="Deaf") is Room.UNSCHEDULABLE


def test_a_binding_that_fails_after_done_brings_the_pod_back() -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    lobby.pop()
    lobby.queue.done("p")
    assert lobby.room("p") is Room.OUTSIDE
    assert lobby.fail("p") is Room.ERROR_BACKOFF
    assert lobby.entry("p").attempts == 1
    lobby.wait_s(2)
    assert lobby.pop() == "p"
    assert lobby.entry("p").attempts == 2


def test_a_refusal_after_done_is_tried_again_as_nobody_knows_what_happened() -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    lobby.pop()
    lobby.queue.done("p")
    assert lobby.refuse("p") is Room.BACKOFF


def test_done_twice_is_done() -> None:
    lobby = Lobby(FIT)
    lobby.add("p", "q")
    lobby.pop()
    lobby.queue.done("p")
    lobby.queue.done("p")
    lobby.queue.done("q")
    assert (lobby.room("p"), lobby.room("q")) == (Room.OUTSIDE, Room.ACTIVE)


def test_a_pod_that_is_in_the_queue_cannot_be_given_back(caplog: pytest.LogCaptureFixture) -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    lobby.pop()
    entry = lobby.in_flight["p"]
    lobby.refuse("p")
    assert lobby.queue.give_back(entry, frozenset(("Fit",))) is Room.UNSCHEDULABLE
    assert entry.unschedulable_count == 1
    assert "pod default/p was given back, but is in the queue" in caplog.text


def test_an_error_forgets_who_refused_the_pod_before() -> None:
    lobby = Lobby(FIT)
    lobby.sleep("p")
    lobby.wake(NODE_ADD)
    lobby.pop()
    assert lobby.entry("p").rejectors == {"Fit"}, "until the attempt is over, for logs"
    lobby.queue.give_back(lobby.in_flight["p"], frozenset(("Fit",)), is_error=True)
    assert lobby.entry("p").rejectors == frozenset()
    assert lobby.room("p") is Room.ERROR_BACKOFF


# Deleting


def active(lobby: Lobby) -> None:
    lobby.add("p")


def asleep(lobby: Lobby) -> None:
    lobby.sleep("p")


def backing_off(lobby: Lobby) -> None:
    lobby.sleep("p")
    lobby.wake(NODE_ADD)


def failed(lobby: Lobby) -> None:
    lobby.add("p")
    lobby.pop()
    lobby.fail("p")


def gated(lobby: Lobby) -> None:
    lobby.gate.is_shut = True
    lobby.add("p")


def in_flight(lobby: Lobby) -> None:
    lobby.add("p")
    lobby.pop()


EVERYWHERE = pytest.mark.parametrize(
    "story", [active, asleep, backing_off, failed, gated, in_flight], ids=lambda story: story.__name__
)


@EVERYWHERE
def test_a_deleted_pod_is_gone_from_wherever_it_was(story: Callable[[Lobby], None]) -> None:
    lobby = Lobby(FIT, gate("Gate"))
    story(lobby)
    assert lobby.queue.delete("p")
    lobby.queue.check()
    lobby.queue.done("p")
    assert lobby.room("p") is Room.OUTSIDE
    assert not lobby.queue.delete("p")
    lobby.wait_s(1_000)
    assert lobby.pop() is None


def test_a_pod_that_is_deleted_in_flight_does_not_come_back() -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    lobby.pop()
    lobby.queue.delete("p")
    assert lobby.refuse("p") is Room.OUTSIDE
    assert len(lobby.queue) == 0


def test_a_pod_that_is_heard_of_again_after_its_deletion_is_not_lost() -> None:
    lobby = Lobby(FIT)
    lobby.add("p")
    lobby.pop()
    lobby.queue.delete("p")
    lobby.add("p")
    assert lobby.refuse("p") is Room.UNSCHEDULABLE


@EVERYWHERE
def test_a_pod_that_is_added_twice_is_there_once_and_as_told_last(story: Callable[[Lobby], None]) -> None:
    lobby = Lobby(FIT, gate("Gate"))
    story(lobby)
    room = lobby.room("p")
    lobby.add("p", labels={"app": "new"})
    assert (lobby.room("p"), len(lobby.queue)) == (room, 1)
    entry = lobby.entry("p")
    assert (entry.newer or entry.pod).signature.labels == {"app": "new"}


# Activating


@pytest.mark.parametrize(
    ("story", "room", "is_counted"),
    [
        pytest.param(active, Room.ACTIVE, False, id="active already"),
        pytest.param(asleep, Room.ACTIVE, True, id="asleep"),
        pytest.param(backing_off, Room.ACTIVE, True, id="backing off"),
        pytest.param(failed, Room.ACTIVE, True, id="after an error"),
        pytest.param(in_flight, Room.IN_FLIGHT, False, id="in flight"),
    ],
)
def test_a_plugin_can_activate_a_pod(story: Callable[[Lobby], None], room: Room, is_counted: bool) -> None:
    lobby = Lobby(FIT, gate("Gate"))
    story(lobby)
    lobby.queue.activate([lobby.pod("p"), lobby.pod("stranger")])
    lobby.queue.check()
    assert (lobby.room("p"), lobby.room("stranger")) == (room, Room.OUTSIDE)
    assert (("active", "ForceActivate") in lobby.counted()) == is_counted


def test_a_pod_that_was_activated_in_flight_backs_off_instead_of_sleeping_and_others_do_not() -> None:
    lobby = Lobby(FIT)
    lobby.add("p", "other")
    lobby.pop_all()
    lobby.queue.activate([lobby.pod("p")])
    assert lobby.refuse("p") is Room.BACKOFF
    assert lobby.refuse("other") is Room.UNSCHEDULABLE


# Profiles


def test_each_pod_is_heard_by_the_plugins_of_its_own_profile() -> None:
    profiles = [
        profile(refuser("Fit", ON_NODE_ADD)),
        profile(refuser("Fit", Wake(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD)), scheduler_name="second"),
    ]
    lobby = Lobby(profiles=profiles)
    lobby.sleep("a")
    lobby.sleep("b", scheduler="second")
    lobby.wake(CLAIM_ADD)
    assert (lobby.room("a"), lobby.room("b")) == (Room.UNSCHEDULABLE, Room.BACKOFF)
    assert lobby.queue.refused_by() == {("Fit", "default-scheduler"): 1, ("Fit", "second"): 1}


def test_a_pod_of_a_profile_that_is_not_served_is_a_mistake_of_intake() -> None:
    with pytest.raises(AssertionError, match="asks for nobody, which is no profile here"):
        Lobby(FIT).add("p", scheduler="nobody")


def test_who_is_in_flight_is_refused_by_nobody_yet() -> None:
    lobby = Lobby(FIT)
    lobby.sleep("a", "b", by=("Fit", "Ports"))
    lobby.sleep("c", by=(), pending=("Fit",))
    assert lobby.queue.refused_by() == {("Fit", "default-scheduler"): 3, ("Ports", "default-scheduler"): 2}
    lobby.queue.activate([lobby.pod("a")])
    lobby.pop()
    assert lobby.queue.refused_by() == {("Fit", "default-scheduler"): 2, ("Ports", "default-scheduler"): 1}


def test_a_pod_whose_update_comes_before_its_creation_is_taken_in() -> None:
    lobby = Lobby(FIT)
    lobby.update("p", POD_LABEL)
    assert lobby.room("p") is Room.ACTIVE
    assert lobby.counted() == [("active", "UnschedulablePodUpdate")]
