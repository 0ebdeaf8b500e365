"""In-flight pods, and the events that occurred during their attempts.

A pod may be rejected by a decision that was made before an event that helps it. The queue therefore replays to a
requeued pod all events since it was popped. The events are stored once, in one list; each pod stores the position at
which it was popped.

 1. Events are stored only while a pod is in flight. Events older than the oldest in-flight pod are dropped.
 2. At most `events_max` events are stored. Beyond that the oldest are dropped, and `events_since_pop` returns None for
    a pod that was popped before them. The queue then assumes that one of the events helps.
 3. Every operation takes constant time on average.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

from mooring.scheduler.queue.queued_pod import InFlightEvent

IN_FLIGHT_EVENTS_MAX: Final = 10_000
"""A few seconds of a busy cluster. A pod that is in flight longer, such as one waiting for Permit, is retried."""


class InFlightPods:
    """The uids of in-flight pods, and the events since the oldest of them was popped."""

    def __init__(self, events_max: int = IN_FLIGHT_EVENTS_MAX) -> None:
        assert events_max > 0, f"the limit of in-flight events is {events_max}, must be positive"
        # An OrderedDict finds its oldest key in constant time after many deletions; a dict does not.
        self._popped_at: OrderedDict[str, int] = OrderedDict()
        """Positions are counted from the first event ever recorded."""
        self._events: deque[InFlightEvent] = deque()
        self._events_max = events_max
        self._dropped = 0
        """Number of events dropped from the left: the position of the first stored event."""

    def __len__(self) -> int:
        return len(self._popped_at)

    def __contains__(self, uid: object) -> bool:
        return uid in self._popped_at

    def add(self, uid: str) -> None:
        assert uid not in self._popped_at, f"{uid} is in flight already"
        self._popped_at[uid] = self._dropped + len(self._events)

    def remove(self, uid: str) -> None:
        """Removes the pod, and the events that only this pod needed."""
        if self._popped_at.pop(uid, None) is None:
            return
        if not self._popped_at:
            self._dropped += len(self._events)
            self._events.clear()
            return
        oldest = self._popped_at[next(iter(self._popped_at))]
        while self._dropped < oldest:
            self._events.popleft()
            self._dropped += 1

    def record(self, event: InFlightEvent) -> None:
        """Stores an event for the in-flight pods, if there are any."""
        if not self._popped_at:
            return
        self._events.append(event)
        if len(self._events) > self._events_max:
            self._events.popleft()
            self._dropped += 1

    def events_since_pop(self, uid: str) -> list[InFlightEvent] | None:
        """The events since the pod was popped, oldest first; None if some of them were dropped."""
        popped_at = self._popped_at.get(uid)
        if popped_at is None or popped_at < self._dropped:
            return None
        return list(islice(self._events, popped_at - self._dropped, None))

    def events(self) -> Iterable[InFlightEvent]:
        """All stored events, oldest first."""
        return self._events

    def check(self) -> None:
        """Asserts the invariants."""
        positions = list(self._popped_at.values())
        assert positions == sorted(positions), "in-flight pods are not ordered by the time they were popped"
        assert len(self._events) <= self._events_max
        assert positions or not self._events, "events are stored although no pod is in flight"
        assert not positions or positions[0] <= self._dropped or not self._events, (
            f"events from {self._dropped} on are stored, but the oldest pod was popped at {positions[0]}"
        )
