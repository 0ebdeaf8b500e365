"""A pod's whereabouts, in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.scheduler.framework.events import Action, Subject, Wake
from tests.scheduler.queue.builders import NODE_ADD, Lobby, gate, refuser


def lobby() -> Lobby:
    shut = gate("Gate", is_shut=True)
    shut.guests = {"p"}
    return Lobby(refuser("Fit", Wake(Subject.NODE, Action.ADD)), shut, asleep_s_max=60.0)


def active(lobby: Lobby) -> None:
    lobby.wait_s(1.5)
    lobby.add("p")


def asleep(lobby: Lobby) -> None:
    lobby.sleep("p", by=("Fit", "Ports"))


def pending(lobby: Lobby) -> None:
    lobby.sleep("p", by=(), pending=("Fit",))


def backing_off(lobby: Lobby) -> None:
    lobby.sleep("p")
    lobby.wait_s(0.25)
    lobby.wake(NODE_ADD)


def failed(lobby: Lobby) -> None:
    lobby.add("p")
    lobby.pop()
    lobby.fail("p")


def gated(lobby: Lobby) -> None:
    lobby.add("stranger")


def in_flight(lobby: Lobby) -> None:
    lobby.add("p")
    lobby.pop()


@pytest.mark.parametrize(
    ("story", "sentence"),
    [
        (active, "active since 1.500 s: added (UnschedulablePodAdd)"),
        (
            asleep,
            "unschedulable since 0.000 s: refused (ScheduleAttemptFailure); refused by Fit, Ports; "
            "woken at 60.000 s at the latest",
        ),
        (
            pending,
            "unschedulable since 0.000 s: refused (ScheduleAttemptFailure); waiting for Fit; "
            "woken at 60.000 s at the latest",
        ),
        (backing_off, "backoff since 0.250 s: woken (NodeAdd); refused by Fit; backs off until 2.000 s"),
        (failed, "error backoff since 0.000 s: failed (ScheduleAttemptFailure); backs off until 2.000 s"),
        (
            gated,
            "gated since 0.000 s: added (UnschedulablePodAdd); gated by Gate; woken at 60.000 s at the latest",
        ),
        (in_flight, "in flight since 0.000 s: popped"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_pod_can_be_asked_why_it_is_where_it_is(story: Callable[[Lobby], None], sentence: str) -> None:
    here = lobby()
    story(here)
    whereabouts = here.queue.whereabouts("p" if story is not gated else "stranger")
    assert whereabouts is not None
    assert whereabouts.sentence == sentence


def test_of_strangers_nothing_is_known() -> None:
    assert lobby().queue.whereabouts("nobody") is None
