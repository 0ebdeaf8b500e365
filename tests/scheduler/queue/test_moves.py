"""The table of moves is the law: what it does not hold is a bug, and what it holds is counted as Kubernetes does."""

from __future__ import annotations

import pytest

from mooring.scheduler.queue.moves import ALLOWED, ASLEEP, BACKING_OFF, Cause, Room, check_move, counted_as


def test_a_pod_can_reach_every_room_and_leave_it_again() -> None:
    others = {room for room in Room if room is not Room.OUTSIDE}
    assert {to for _, to in ALLOWED} == set(Room)
    assert {come_from for come_from, _ in ALLOWED} == set(Room)
    assert all((room, Room.OUTSIDE) in ALLOWED for room in others)


def test_only_popping_takes_a_pod_in_flight() -> None:
    causes = {cause for (_, to), causes in ALLOWED.items() if to is Room.IN_FLIGHT for cause in causes}
    assert causes == {Cause.POPPED, Cause.POPPED_EARLY}


def test_a_pod_that_failed_is_never_popped_early() -> None:
    assert (Room.ERROR_BACKOFF, Room.IN_FLIGHT) not in ALLOWED


@pytest.mark.parametrize("room", sorted(ASLEEP | BACKING_OFF), ids=lambda room: room.words)
def test_who_waits_goes_in_flight_only_through_active_or_early_from_backoff(room: Room) -> None:
    assert ((room, Room.IN_FLIGHT) in ALLOWED) == (room is Room.BACKOFF)


@pytest.mark.parametrize(
    ("come_from", "to", "cause"),
    [
        pytest.param(Room.OUTSIDE, Room.IN_FLIGHT, Cause.POPPED, id="from outside in flight"),
        pytest.param(Room.ACTIVE, Room.BACKOFF, Cause.WOKEN, id="from active back to backoff"),
        pytest.param(Room.BACKOFF, Room.ACTIVE, Cause.WOKEN, id="out of backoff by an event"),
        pytest.param(Room.ERROR_BACKOFF, Room.IN_FLIGHT, Cause.POPPED_EARLY, id="early although it failed"),
        pytest.param(Room.IN_FLIGHT, Room.UNSCHEDULABLE, Cause.FAILED, id="to sleep after an error"),
        pytest.param(Room.UNSCHEDULABLE, Room.UNSCHEDULABLE, Cause.WOKEN, id="from bed to bed"),
    ],
)
def test_other_moves_are_bugs(come_from: Room, to: Room, cause: Cause) -> None:
    with pytest.raises(AssertionError, match=f"p may not move from {come_from.words} to {to.words} because it was"):
        check_move(come_from, to, cause, "p")


@pytest.mark.parametrize(
    ("come_from", "to", "cause", "queue"),
    [
        pytest.param(Room.OUTSIDE, Room.ACTIVE, Cause.ADDED, "active", id="a new pod comes in as active"),
        pytest.param(Room.OUTSIDE, Room.GATED, Cause.ADDED, "unschedulable", id="gated counts as unschedulable"),
        pytest.param(
            Room.IN_FLIGHT, Room.ERROR_BACKOFF, Cause.FAILED, "backoff", id="there is one backoff for metrics"
        ),
        pytest.param(Room.BACKOFF, Room.IN_FLIGHT, Cause.POPPED_EARLY, "active", id="popped early: as if by active"),
        pytest.param(Room.ACTIVE, Room.IN_FLIGHT, Cause.POPPED, "", id="popping is not coming in"),
        pytest.param(Room.GATED, Room.GATED, Cause.WOKEN, "unschedulable", id="woken and gated again comes in again"),
        pytest.param(Room.GATED, Room.GATED, Cause.UPDATED, "", id="looked at in place does not"),
        pytest.param(Room.UNSCHEDULABLE, Room.GATED, Cause.ACTIVATED, "", id="nor does an activation that was gated"),
    ],
)
def test_moves_are_counted_as_in_kubernetes(come_from: Room, to: Room, cause: Cause, queue: str) -> None:
    check_move(come_from, to, cause, "p")
    assert counted_as(come_from, to, cause) == queue
