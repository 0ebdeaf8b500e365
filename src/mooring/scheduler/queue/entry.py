"""A pod in the queue: what was tried, what came of it, and where it is now.

Comes in   what `SchedulingQueue` writes: nobody else does, except that whoever gives a pod back may renew `pod`
Goes out   `QueuedPod`, to the scheduling and binding cycles; `Whereabouts`, to whoever asks why a pod is where it is

 1. `rejectors` and `pending` are both empty if, and only if, nobody has refused or gated the pod since it came, or
    since its last attempt failed with an error.
 2. `gated_by` is set exactly while the pod is in the room GATED, and is then one of the rejectors.
 3. Times are readings of the given clock (`now_s`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ClusterEvent
from mooring.scheduler.queue.moves import Cause, Room

if TYPE_CHECKING:
    from mooring.scheduler.queue.sleepers import Audience

NOBODY: Final[frozenset[str]] = frozenset()
NEVER_S: Final = float("-inf")
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"


class Happening(NamedTuple):
    """An event with what it was about."""

    event: ClusterEvent
    old: Any
    new: Any


class QueuedPod:
    """One pod on its way through the queue."""

    __slots__ = (
        "attempts",
        "audience",
        "backoff_window_s",
        "cause",
        "errors_in_a_row",
        "first_attempt_s",
        "flushed_s",
        "gated_by",
        "is_gone",
        "label",
        "newer",
        "own_events",
        "pending",
        "pod",
        "popped",
        "queued_s",
        "rejectors",
        "room",
        "scheduler_name",
        "since_s",
        "unschedulable_count",
        "was_flushed",
    )

    def __init__(self, pod: PodInfo, now_s: float) -> None:
        self.pod = pod
        self.scheduler_name: str = pod.signature.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
        self.attempts = 0
        """How often it was popped."""
        self.queued_s = now_s
        """When it came, or was given back last; what the QueueSort plugin is told."""
        self.first_attempt_s: float | None = None
        """When it first became ready to be tried: scheduling durations count from here, not from the time at a gate."""
        self.unschedulable_count = 0
        self.errors_in_a_row = 0
        self.rejectors: frozenset[str] = NOBODY
        self.pending: frozenset[str] = NOBODY
        """Plugins that asked for a while: when they say that it is over, the pod does not back off."""
        self.gated_by: str | None = None
        self.backoff_window_s = NEVER_S
        """The second in which its backoff ends; it is over when that second is. See `backoff`."""
        self.was_flushed = False
        """It was woken for having slept too long; if it is placed then, a hint is missing somewhere."""
        self.flushed_s = NEVER_S
        """When that was last. Counts only while it is later than `queued_s`: the pod was gated then, and not tried."""
        self.room = Room.OUTSIDE
        self.since_s = now_s
        self.cause = Cause.ADDED
        self.label = ""
        self.popped = pod
        """The pod as it was popped last: what is being tried."""
        self.newer: PodInfo | None = None
        """What the watch told of the pod while it was in flight."""
        self.is_gone = False
        """It was deleted, or bound by somebody else, while it was in flight."""
        self.own_events: list[Happening] = []
        """What happened to the pod itself while it was in flight."""
        self.audience: Audience | None = None
        """With whom it sleeps, while it does."""

    @property
    def uid(self) -> str:
        return self.pod.uid

    def __repr__(self) -> str:
        return f"QueuedPod({self.pod.key} {self.room.words}, {self.attempts} attempts)"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a pod is, since when, and why."""

    room: Room
    since_s: float
    cause: Cause
    label: str
    """What kube-scheduler calls the cause."""
    attempts: int
    rejectors: tuple[str, ...]
    pending: tuple[str, ...]
    gated_by: str | None
    backoff_end_s: float | None
    """When it may be tried again, if it backs off."""
    asleep_until_s: float | None
    """When it is woken at the latest, if it sleeps."""

    @property
    def sentence(self) -> str:
        """The same for people."""
        parts = [f"{self.room.words} since {self.since_s:.3f} s: {self.cause.words}"]
        if self.label:
            parts[0] += f" ({self.label})"
        if self.gated_by is not None:
            parts.append(f"gated by {self.gated_by}")
        elif self.rejectors:
            parts.append(f"refused by {', '.join(self.rejectors)}")
        if self.pending:
            parts.append(f"waiting for {', '.join(self.pending)}")
        if self.backoff_end_s is not None:
            parts.append(f"backs off until {self.backoff_end_s:.3f} s")
        if self.asleep_until_s is not None:
            parts.append(f"woken at {self.asleep_until_s:.3f} s at the latest")
        return "; ".join(parts)
