"""One way from room to room: checked, noted, told; and the check that finds what is out of place."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.queue.moves import Cause, Room
from tests.scheduler.queue.builders import CLAIM_ADD, NODE_ADD, Lobby, gate, refuser


def lobby(asleep_s_max: float = 300.0) -> Lobby:
    return Lobby(refuser("Fit", Wake(Subject.NODE, Action.ADD)), gate("Gate"), asleep_s_max=asleep_s_max)


def test_a_pod_can_be_asked_where_it_is_since_when_and_why() -> None:
    here = lobby()
    seen = []

    def ask() -> None:
        where = here.queue.whereabouts("p")
        assert where is not None
        seen.append((where.room, where.cause, where.since_s))

    here.add("p")
    ask()
    here.pop()
    ask()
    here.wait_s(0.5)
    here.refuse("p")
    ask()
    here.wake(NODE_ADD)
    ask()
    here.wait_s(2)
    here.queue.tick()
    ask()
    here.pop()
    ask()
    here.queue.done("p")
    assert here.queue.whereabouts("p") is None
    assert seen == [
        (Room.ACTIVE, Cause.ADDED, 0.0),
        (Room.IN_FLIGHT, Cause.POPPED, 0.0),
        (Room.UNSCHEDULABLE, Cause.REFUSED, 0.5),
        (Room.BACKOFF, Cause.WOKEN, 0.5),
        (Room.ACTIVE, Cause.BACKED_OFF, 2.5),
        (Room.IN_FLIGHT, Cause.POPPED, 2.5),
    ]


def test_statistics_count_by_room() -> None:
    shut = gate("Gate", is_shut=True)
    shut.guests = {"asleep", "flying", "failed", "woken", "active"}
    here = Lobby(
        refuser("Fit", Wake(Subject.NODE, Action.ADD)),
        refuser("Volumes", Wake(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD)),
        shut,
    )
    here.add("gated")
    here.sleep("asleep", by="Fit")
    here.sleep("woken", by="Volumes")
    here.add("failed", "flying")
    assert (here.pop(), here.pop()) == ("failed", "flying")
    here.wake(CLAIM_ADD)
    here.fail("failed")
    here.add("active")
    numbers = here.queue.statistics()
    assert (numbers.active, numbers.backoff, numbers.unschedulable, numbers.gated) == (1, 2, 1, 1)
    assert (numbers.in_flight, numbers.in_flight_events, numbers.in_flight_events_dropped) == (1, 1, 0)
    assert len(here.queue) == 6


def test_the_alarm_is_set_to_the_first_end_of_a_backoff_or_a_sleep() -> None:
    here = lobby(asleep_s_max=20.0)
    assert here.queue.next_alarm_s() is None
    here.sleep("p")
    assert here.queue.next_alarm_s() == 20
    here.wake(NODE_ADD)
    assert here.queue.next_alarm_s() == 2
    here.wait_s(2)
    assert here.queue.next_alarm_s() is None, "nobody waits for a time any more"


def test_the_check_finds_a_pod_that_is_not_where_it_should_be() -> None:
    here = lobby()
    here.add("p")
    here.entry("p").room = Room.BACKOFF
    with pytest.raises(AssertionError, match=r"QueuedPod\(default/p backoff, 0 attempts\) is in"):
        here.queue.check()
