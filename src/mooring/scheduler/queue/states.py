"""The states of a pod in the queue, and the transitions between them.

    not queued ──added──> active ──popped──> in flight ──done──> not queued
                            ^                 ^     │
                            │    popped from  │     ├──rejected──────────────> unschedulable ─┐
                            │    backoff      │     │                                         │
                            ├──complete─── backoff <──event in flight ────────────────────────┤ event, update,
                            │                       │                                         │ timeout
                            ├──complete─── error backoff <──failed                            │
                            └─────────────────────────────────────────────────────────────────┘

The drawing shows the usual transitions; `CAUSES` lists all of them. A pod on its way to active or backoff becomes gated
if a PreEnqueue plugin rejects it, and leaves gated in the same ways as unschedulable. Activation moves a pod from every
state but in flight to active. Deletion moves a pod from every state to not queued.

 1. A transition that `CAUSES` does not list is a bug.
 2. `TRANSITIONS` gives the label `queue` of kube-scheduler's metric `queue_incoming_pods_total`. Gated pods count as
    unschedulable there. A pod that stays unschedulable after its own update or an activation is not counted again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class QueueState(IntEnum):
    """Where a pod is. An IntEnum, because every transition hashes it and the hash of an Enum is slow."""

    NOT_QUEUED = 0
    """Not in the queue, before it is added or after it is done."""
    ACTIVE = 1
    """In activeQ: ready, ordered by the QueueSort plugin."""
    BACKOFF = 2
    """In backoffQ after a rejection: an event may have helped. Popped early if activeQ is empty."""
    ERROR_BACKOFF = 3
    """In backoffQ after an error. Never popped early, in order to protect the API server."""
    UNSCHEDULABLE = 4
    """Rejected, and waiting for an event that can help."""
    GATED = 5
    """A PreEnqueue plugin rejects it."""
    IN_FLIGHT = 6
    """Popped, and neither done nor requeued."""

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


UNSCHEDULABLE_STATES: Final = frozenset((QueueState.UNSCHEDULABLE, QueueState.GATED))
BACKOFF_STATES: Final = frozenset((QueueState.BACKOFF, QueueState.ERROR_BACKOFF))


class TransitionCause(IntEnum):
    """Why a pod changed its state."""

    ADDED = 0
    UPDATED = 1
    POPPED = 2
    POPPED_FROM_BACKOFF = 3
    """Before the end of its backoff, because activeQ was empty."""
    REJECTED = 4
    """Plugins rejected it, and no event during the attempt can help."""
    EVENT_IN_FLIGHT = 5
    """Plugins rejected it, but an event during the attempt may help."""
    FAILED = 6
    """The attempt ended with an error, which is not the pod's fault."""
    EVENT = 7
    """A cluster event may help."""
    BACKOFF_COMPLETE = 8
    UNSCHEDULABLE_TIMEOUT = 9
    ACTIVATED = 10
    """A plugin requested it."""
    DONE = 11
    DELETED = 12

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


class EventLabel:
    """Values of the label `event` of `queue_incoming_pods_total` for causes that are not cluster events."""

    ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
    BACKOFF_COMPLETE: Final = "BackoffComplete"
    POP_FROM_BACKOFF: Final = "PopFromBackoffQ"


_REQUEUED: Final = frozenset((TransitionCause.EVENT_IN_FLIGHT, TransitionCause.FAILED))
_ADDED: Final = frozenset((TransitionCause.ADDED, TransitionCause.UPDATED))
_MOVED: Final = frozenset((TransitionCause.EVENT, TransitionCause.UPDATED, TransitionCause.UNSCHEDULABLE_TIMEOUT))
_MOVED_OR_ACTIVATED: Final = _MOVED | {TransitionCause.ACTIVATED}
_DELETED: Final = frozenset((TransitionCause.DELETED,))

CAUSES: Final[dict[tuple[QueueState, QueueState], frozenset[TransitionCause]]] = {
    (QueueState.NOT_QUEUED, QueueState.ACTIVE): _ADDED | _REQUEUED,
    (QueueState.NOT_QUEUED, QueueState.GATED): _ADDED | _REQUEUED,
    # The binding failed. The pod was done before, so that no events were recorded for it during the binding.
    (QueueState.NOT_QUEUED, QueueState.BACKOFF): _REQUEUED,
    (QueueState.NOT_QUEUED, QueueState.ERROR_BACKOFF): _REQUEUED,
    (QueueState.ACTIVE, QueueState.IN_FLIGHT): frozenset((TransitionCause.POPPED,)),
    (QueueState.ACTIVE, QueueState.NOT_QUEUED): _DELETED,
    (QueueState.BACKOFF, QueueState.ACTIVE): frozenset((TransitionCause.BACKOFF_COMPLETE, TransitionCause.ACTIVATED)),
    (QueueState.BACKOFF, QueueState.IN_FLIGHT): frozenset((TransitionCause.POPPED_FROM_BACKOFF,)),
    (QueueState.BACKOFF, QueueState.NOT_QUEUED): _DELETED,
    (QueueState.ERROR_BACKOFF, QueueState.ACTIVE): frozenset(
        (TransitionCause.BACKOFF_COMPLETE, TransitionCause.ACTIVATED)
    ),
    (QueueState.ERROR_BACKOFF, QueueState.NOT_QUEUED): _DELETED,
    (QueueState.UNSCHEDULABLE, QueueState.ACTIVE): _MOVED_OR_ACTIVATED,
    (QueueState.UNSCHEDULABLE, QueueState.BACKOFF): _MOVED,
    (QueueState.UNSCHEDULABLE, QueueState.GATED): _MOVED_OR_ACTIVATED,
    (QueueState.UNSCHEDULABLE, QueueState.NOT_QUEUED): _DELETED,
    (QueueState.GATED, QueueState.ACTIVE): _MOVED_OR_ACTIVATED,
    (QueueState.GATED, QueueState.BACKOFF): _MOVED,
    (QueueState.GATED, QueueState.GATED): _MOVED_OR_ACTIVATED,
    (QueueState.GATED, QueueState.NOT_QUEUED): _DELETED,
    (QueueState.IN_FLIGHT, QueueState.ACTIVE): _REQUEUED,
    (QueueState.IN_FLIGHT, QueueState.BACKOFF): _REQUEUED,
    (QueueState.IN_FLIGHT, QueueState.ERROR_BACKOFF): _REQUEUED,
    (QueueState.IN_FLIGHT, QueueState.UNSCHEDULABLE): frozenset((TransitionCause.REJECTED,)),
    (QueueState.IN_FLIGHT, QueueState.GATED): _REQUEUED,
    (QueueState.IN_FLIGHT, QueueState.NOT_QUEUED): frozenset((TransitionCause.DONE, TransitionCause.DELETED)),
}


_INCOMING: Final = {
    QueueState.NOT_QUEUED: "",
    QueueState.IN_FLIGHT: "",
    QueueState.ACTIVE: "active",
    QueueState.BACKOFF: "backoff",
    QueueState.ERROR_BACKOFF: "backoff",
}


def incoming_queue(origin: QueueState, target: QueueState, cause: TransitionCause) -> str:
    """The queue that `queue_incoming_pods_total` counts the transition for; empty if it is not counted."""
    if target in UNSCHEDULABLE_STATES:
        is_in_place = origin in UNSCHEDULABLE_STATES and cause in (TransitionCause.UPDATED, TransitionCause.ACTIVATED)
        return "" if is_in_place else "unschedulable"
    return "active" if cause is TransitionCause.POPPED_FROM_BACKOFF else _INCOMING[target]


TRANSITIONS: Final[dict[tuple[QueueState, QueueState, TransitionCause], str]] = {
    (origin, target, cause): incoming_queue(origin, target, cause)
    for (origin, target), causes in CAUSES.items()
    for cause in causes
}
"""Every allowed transition with its incoming queue: one lookup for each transition of a pod."""


def check_transition(origin: QueueState, target: QueueState, cause: TransitionCause, subject: object) -> None:
    """Asserts that the transition is allowed."""
    assert (origin, target, cause) in TRANSITIONS, (
        f"{subject}: no transition from {origin.words} to {target.words} with cause {cause.words}"
    )
