"""The rooms of the queue, and the moves between them: one table, each move with its causes.

    outside ──added──> active ──popped──> in flight ──done──> outside
                         ^                 ^     │
                         │    popped early │     ├──refused───────────────> unschedulable ─┐
                         │                 │     │                                         │
                         ├──backed off── backoff <──helped in flight ──────────────────────┤ woken, updated,
                         │                       │                                         │ asleep too long
                         ├──backed off── error backoff <──failed                           │
                         └─────────────────────────────────────────────────────────────────┘

Whoever is on its way to active or backoff may find itself gated instead, and leaves that room like unschedulable.
Activation leads from every room but in flight to active; deletion from everywhere to outside. The drawing shows the
usual ways, `ALLOWED` is the law.

 1. A move that is not in the table, or has another cause there, is a bug.
 2. What a move counts as, and its label, are the labels `queue` and `event` of kube-scheduler's metric
    `queue_incoming_pods_total`. Gated pods count as unschedulable there, and who was already asleep does not come in
    again when it is looked at in place (an update, an activation).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Room(IntEnum):
    """Where a pod is. An IntEnum, because every move looks it up and an Enum's hash is slow."""

    OUTSIDE = 0
    """Not in the queue: not yet, or not any more."""
    ACTIVE = 1
    """Ready: the next to be popped is the first by the QueueSort plugin."""
    BACKOFF = 2
    """Refused not long ago, but something has happened that may help; popped early when nobody is active."""
    ERROR_BACKOFF = 3
    """Something went wrong not long ago. Never popped early: it protects the API server."""
    UNSCHEDULABLE = 4
    """Refused, and asleep until something happens that can help."""
    GATED = 5
    """Asleep because a PreEnqueue plugin does not let it in."""
    IN_FLIGHT = 6
    """Popped, and neither done nor given back."""

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


ASLEEP: Final = frozenset((Room.UNSCHEDULABLE, Room.GATED))
BACKING_OFF: Final = frozenset((Room.BACKOFF, Room.ERROR_BACKOFF))


class Cause(IntEnum):
    """Why a pod moved."""

    ADDED = 0
    UPDATED = 1
    POPPED = 2
    POPPED_EARLY = 3
    """From backoff, because nobody was active."""
    REFUSED = 4
    """Plugins refused it, and nothing that happened meanwhile can help."""
    HELPED_IN_FLIGHT = 5
    """Plugins refused it, but something that happened meanwhile may help."""
    FAILED = 6
    """Something went wrong that says nothing about the pod."""
    WOKEN = 7
    """By an event that may help."""
    BACKED_OFF = 8
    """Its backoff is over."""
    ASLEEP_TOO_LONG = 9
    ACTIVATED = 10
    """A plugin asked for it."""
    DONE = 11
    DELETED = 12

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


class Label:
    """What kube-scheduler calls the causes that are no cluster event."""

    ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
    BACKOFF_COMPLETE: Final = "BackoffComplete"
    POP_FROM_BACKOFF: Final = "PopFromBackoffQ"


NO_CAUSE: Final[frozenset[Cause]] = frozenset()
_SENT_BACK: Final = frozenset((Cause.REFUSED, Cause.HELPED_IN_FLIGHT, Cause.FAILED))
_CAME: Final = frozenset((Cause.ADDED, Cause.UPDATED))
_LOOKED_AT_AGAIN: Final = frozenset((Cause.WOKEN, Cause.UPDATED, Cause.ASLEEP_TOO_LONG))
_LET_IN: Final = _LOOKED_AT_AGAIN | {Cause.ACTIVATED}
_GONE: Final = frozenset((Cause.DELETED,))
_RETRIED: Final = _SENT_BACK - {Cause.REFUSED}

ALLOWED: Final[dict[tuple[Room, Room], frozenset[Cause]]] = {
    (Room.OUTSIDE, Room.ACTIVE): _CAME | _RETRIED,
    (Room.OUTSIDE, Room.GATED): _CAME | _RETRIED,
    # A binding that fails comes back although the pod was done, as nobody had to remember events for it.
    (Room.OUTSIDE, Room.BACKOFF): _RETRIED,
    (Room.OUTSIDE, Room.ERROR_BACKOFF): _RETRIED,
    (Room.ACTIVE, Room.IN_FLIGHT): frozenset((Cause.POPPED,)),
    (Room.ACTIVE, Room.OUTSIDE): _GONE,
    (Room.BACKOFF, Room.ACTIVE): frozenset((Cause.BACKED_OFF, Cause.ACTIVATED)),
    (Room.BACKOFF, Room.IN_FLIGHT): frozenset((Cause.POPPED_EARLY,)),
    (Room.BACKOFF, Room.OUTSIDE): _GONE,
    (Room.ERROR_BACKOFF, Room.ACTIVE): frozenset((Cause.BACKED_OFF, Cause.ACTIVATED)),
    (Room.ERROR_BACKOFF, Room.OUTSIDE): _GONE,
    (Room.UNSCHEDULABLE, Room.ACTIVE): _LET_IN,
    (Room.UNSCHEDULABLE, Room.BACKOFF): _LOOKED_AT_AGAIN,
    (Room.UNSCHEDULABLE, Room.GATED): _LET_IN,
    (Room.UNSCHEDULABLE, Room.OUTSIDE): _GONE,
    (Room.GATED, Room.ACTIVE): _LET_IN,
    (Room.GATED, Room.BACKOFF): _LOOKED_AT_AGAIN,
    (Room.GATED, Room.GATED): _LET_IN,
    (Room.GATED, Room.OUTSIDE): _GONE,
    (Room.IN_FLIGHT, Room.ACTIVE): _RETRIED,
    (Room.IN_FLIGHT, Room.BACKOFF): _RETRIED,
    (Room.IN_FLIGHT, Room.ERROR_BACKOFF): _RETRIED,
    (Room.IN_FLIGHT, Room.UNSCHEDULABLE): frozenset((Cause.REFUSED,)),
    (Room.IN_FLIGHT, Room.GATED): _RETRIED,
    (Room.IN_FLIGHT, Room.OUTSIDE): frozenset((Cause.DONE, Cause.DELETED)),
}


def check_move(come_from: Room, to: Room, cause: Cause, who: object) -> None:
    """Asserts that the table has this move."""
    assert cause in ALLOWED.get((come_from, to), NO_CAUSE), (
        f"{who} may not move from {come_from.words} to {to.words} because it was {cause.words}"
    )


def counted_as(come_from: Room, to: Room, cause: Cause) -> str:
    if to in ASLEEP:
        was_looked_at_in_place = come_from in ASLEEP and cause in (Cause.UPDATED, Cause.ACTIVATED)
        return "" if was_looked_at_in_place else "unschedulable"
    return "active" if cause is Cause.POPPED_EARLY else _COUNTED[to]


_COUNTED: Final = {
    Room.OUTSIDE: "",
    Room.IN_FLIGHT: "",
    Room.ACTIVE: "active",
    Room.BACKOFF: "backoff",
    Room.ERROR_BACKOFF: "backoff",
}

LAWFUL: Final[dict[tuple[Room, Room, Cause], str]] = {
    (come_from, to, cause): counted_as(come_from, to, cause)
    for (come_from, to), causes in ALLOWED.items()
    for cause in causes
}
"""Every allowed move with what it counts as: one look for every move of every pod."""
