"""A pod in the queue: its state and the allowed transitions, its attempts, and the pods that the same plugins rejected.

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

Only the scheduling queue writes a `QueuedPod`, except that the caller of `requeue` may replace `pod` by a newer record.
`QueuedPodStatus` is a read-only copy for users.

 3. `unschedulable_plugins` and `pending_plugins` are both empty if and only if no plugin has rejected or gated the pod
    since it was added, or since its last attempt ended with an error.
 4. `gating_plugin` is set if and only if the pod is GATED. It is one of the unschedulable plugins.
 5. Times are those of the injected clock (`now_s`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.framework.events import ClusterEvent
from mooring.scheduler.queue.queueing_hints import EventHints, QueueingHintMap, QueueingStrategy

NO_PLUGINS: Final[frozenset[str]] = frozenset()
NEVER_S: Final = float("-inf")


class _NamedEnum(IntEnum):
    """An enum whose members have a name for users."""

    @property
    def text(self) -> str:
        """`error backoff`"""
        return self.name.lower().replace("_", " ")


class QueueState(_NamedEnum):
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


UNSCHEDULABLE_STATES: Final = frozenset((QueueState.UNSCHEDULABLE, QueueState.GATED))
BACKOFF_STATES: Final = frozenset((QueueState.BACKOFF, QueueState.ERROR_BACKOFF))


class TransitionCause(_NamedEnum):
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
        f"{subject}: no transition from {origin.text} to {target.text} with cause {cause.text}"
    )


class InFlightEvent(NamedTuple):
    """An event with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class QueuedPod:
    """A pod with its attempts, its state and its last rejection."""

    __slots__ = (
        "attempts",
        "backoff_window_s",
        "cause",
        "consecutive_errors",
        "event_label",
        "first_attempt_s",
        "flushed_s",
        "gating_plugin",
        "group",
        "is_deleted",
        "own_events",
        "pending_plugins",
        "pod",
        "popped_pod",
        "queued_s",
        "requeued_by",
        "scheduler_name",
        "since_s",
        "state",
        "unschedulable_count",
        "unschedulable_plugins",
        "updated_pod",
        "was_flushed",
    )

    def __init__(self, pod: PodInfo, now_s: float) -> None:
        self.pod = pod
        self.scheduler_name: str = pod.signature.scheduler_name
        self.attempts = 0
        """How often the pod was popped."""
        self.queued_s = now_s
        """When the pod was added or requeued last. The QueueSort plugin reads it."""
        self.first_attempt_s: float | None = None
        """When the pod first became active. Scheduling durations start here, and exclude the time it was gated."""
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.unschedulable_plugins: frozenset[str] = NO_PLUGINS
        """Plugins that rejected the pod in the last attempt or gate it."""
        self.pending_plugins: frozenset[str] = NO_PLUGINS
        """Plugins that returned Pending. An event that resolves one of them queues the pod without backoff."""
        self.gating_plugin: str | None = None
        self.backoff_window_s = NEVER_S
        """Start of the one-second window in which the backoff ends. See `sub_queues.BackoffQueue`."""
        self.was_flushed = False
        """The pod was queued by the unschedulable timeout. If it is placed now, some hint may be missing."""
        self.flushed_s = NEVER_S
        """Time of the last timeout. Matters only if later than `queued_s`: the pod was gated, and not attempted."""
        self.state = QueueState.NOT_QUEUED
        self.since_s = now_s
        self.cause = TransitionCause.ADDED
        self.event_label = ""
        self.requeued_by = ""
        """The label of the event that ended the last wait as unschedulable; empty before the first."""
        self.popped_pod = pod
        """The record that the current attempt uses."""
        self.updated_pod: PodInfo | None = None
        """The latest record from the watch, if the pod was updated in flight."""
        self.is_deleted = False
        """The pod was deleted, or bound by another scheduler, in flight."""
        self.own_events: list[InFlightEvent] = []
        """Events of the pod itself during the current attempt."""
        self.group: RejectionGroup | None = None
        """Set while the pod is unschedulable or gated."""

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def was_rejected(self) -> bool:
        """Whether plugins rejected the pod. If not, the last attempt ended with an error, or there was none."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def __repr__(self) -> str:
        return f"QueuedPod({self.pod.key} {self.state.text}, {self.attempts} attempts)"


GroupKey = tuple[str, frozenset[str], frozenset[str], str | None]
"""(scheduler name, unschedulable plugins, pending plugins, gating plugin)"""


class RejectionGroup:
    """The pods that the same plugins rejected. The same events can help them."""

    def __init__(self, key: GroupKey, hint_map: QueueingHintMap) -> None:
        self.key = key
        self.by_signature: dict[PodSignature, dict[str, QueuedPod]] = {}
        self._hint_map = hint_map
        self._hints: dict[ClusterEvent, EventHints | None] = {}

    def hints(self, event: ClusterEvent) -> EventHints | None:
        """The registrations of the group's plugins for the event; None if there are none."""
        try:
            return self._hints[event]
        except KeyError:
            scheduler_name, unschedulable_plugins, pending_plugins, gating_plugin = self.key
            hints = self._hint_map.hints(scheduler_name, unschedulable_plugins, pending_plugins, event)
            if gating_plugin is not None and not event.is_wildcard:
                hints = hints if self._hint_map.is_registered(scheduler_name, gating_plugin, event) else None
            self._hints[event] = hints
            return hints

    def strategy(self, pod: PodInfo, event: ClusterEvent, old: Any, new: Any) -> QueueingStrategy:
        """Whether an event makes one pod of this group worth another attempt."""
        hints = self.hints(event)
        return QueueingStrategy.SKIP if hints is None else hints.strategy(pod, old, new)


@dataclass(frozen=True, slots=True)
class QueuedPodStatus:
    """The state of a pod, since when, and why."""

    state: QueueState
    since_s: float
    cause: TransitionCause
    event_label: str
    """kube-scheduler's name of the cause."""
    attempts: int
    unschedulable_plugins: tuple[str, ...]
    pending_plugins: tuple[str, ...]
    gating_plugin: str | None
    backoff_end_s: float | None
    """When the backoff ends, if the pod is in backoffQ."""
    timeout_s: float | None
    """When the pod is retried at the latest, if it is unschedulable or gated."""

    @property
    def summary(self) -> str:
        """The status in one line."""
        parts = [f"{self.state.text} since {self.since_s:.3f} s: {self.cause.text}"]
        if self.event_label:
            parts[0] += f" ({self.event_label})"
        if self.gating_plugin is not None:
            parts.append(f"gated by {self.gating_plugin}")
        elif self.unschedulable_plugins:
            parts.append(f"rejected by {', '.join(self.unschedulable_plugins)}")
        if self.pending_plugins:
            parts.append(f"pending on {', '.join(self.pending_plugins)}")
        if self.backoff_end_s is not None:
            parts.append(f"backs off until {self.backoff_end_s:.3f} s")
        if self.timeout_s is not None:
            parts.append(f"retried at {self.timeout_s:.3f} s at the latest")
        return "; ".join(parts)
