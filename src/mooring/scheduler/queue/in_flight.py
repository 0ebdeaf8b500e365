"""In flight: pods that were popped, and the events that they must be told of when they come back.

Comes in   pods as they are popped; events while any pod is in flight
Goes out   to a pod that comes back refused, everything that happened since it was popped

A pod that was refused may have been decided on before an event that helps it. The events are kept once, in one list;
each pod remembers where in the list it began.

 1. Events are kept only while somebody may ask for them: those before the oldest pod in flight are dropped.
 2. At most `events_max` are kept. Beyond that the oldest are dropped, and a pod that began before them cannot be told
    what happened: `since` answers None, which must be taken as "something that can help".
 3. Every operation is O(1) on average.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

from mooring.scheduler.queue.entry import Happening

IN_FLIGHT_EVENTS_MAX: Final = 10_000
"""A few seconds of a busy cluster. A pod that waits longer (for Permit) is tried again rather than told all of it."""


class InFlight:
    """Who is under way, and what happened meanwhile."""

    __slots__ = ("_began_at", "_dropped", "_dropped_unseen", "_events", "_events_max")

    def __init__(self, events_max: int = IN_FLIGHT_EVENTS_MAX) -> None:
        assert events_max > 0, f"a limit of {events_max} events keeps none"
        # An OrderedDict finds its oldest at once, however many were deleted before it; a dict does not.
        self._began_at: OrderedDict[str, int] = OrderedDict()
        self._events: deque[Happening] = deque()
        self._events_max = events_max
        self._dropped = 0  # events that are not kept any more, so that positions count from the beginning of time
        self._dropped_unseen = 0

    def __len__(self) -> int:
        return len(self._began_at)

    def __contains__(self, uid: object) -> bool:
        return uid in self._began_at

    @property
    def events(self) -> int:
        """How many events are kept."""
        return len(self._events)

    @property
    def events_dropped(self) -> int:
        """How many were dropped because of the limit while a pod might still have asked for them."""
        return self._dropped_unseen

    def begin(self, uid: str) -> None:
        assert uid not in self._began_at, f"{uid} is in flight already"
        self._began_at[uid] = self._dropped + len(self._events)

    def end(self, uid: str) -> None:
        """Nobody will ask for this pod any more."""
        if self._began_at.pop(uid, None) is None:
            return
        if not self._began_at:
            self._dropped += len(self._events)
            self._events.clear()
            return
        oldest = self._began_at[next(iter(self._began_at))]
        while self._dropped < oldest:
            self._events.popleft()
            self._dropped += 1

    def record(self, happening: Happening) -> None:
        """Remember an event for those under way."""
        if not self._began_at:
            return
        self._events.append(happening)
        if len(self._events) > self._events_max:
            self._events.popleft()
            self._dropped += 1
            self._dropped_unseen += 1

    def since(self, uid: str) -> list[Happening] | None:
        """What happened since the pod was popped, oldest first; None if that is not known any more."""
        began_at = self._began_at.get(uid)
        if began_at is None or began_at < self._dropped:
            return None
        return list(islice(self._events, began_at - self._dropped, None))

    def happenings(self) -> Iterable[Happening]:
        """Everything that is kept, oldest first."""
        return self._events

    def check(self) -> None:
        """Asserts the invariants."""
        begun = list(self._began_at.values())
        assert begun == sorted(begun), "who began later stands before who began earlier"
        assert len(self._events) <= self._events_max
        assert begun or not self._events, "events are kept although nobody is in flight"
        assert not begun or begun[0] <= self._dropped or not self._events, (
            f"events from {self._dropped} on are kept, but the oldest pod began at {begun[0]}"
        )
