"""The scheduling queue: where a pod waits until it is its turn.

Comes in   pods and events from `intake`; outcomes from the scheduling and binding cycles
Goes out   the best ready pod, to the scheduler's loop; who came into which queue and why, to metrics

A pod is in exactly one room (`moves` draws them). Everything here is synchronous, except waiting.

 1. Only `pop` takes a pod in flight; it is there until `done` or `give_back`.
 2. An event seen while a pod is in flight is replayed to it before it may sleep.
 3. A pod asleep for longer than `asleep_s_max` is woken whatever the hints say.
 4. Only the gates (PreEnqueue) let a pod into active or backoff. Who comes from backoff has passed them.
 5. A pod backs off for its full time. Exceptions: nobody is active, and then the first of the refused is popped (never
    one whose attempt failed); a plugin that the pod was pending on is satisfied; a plugin activates it.
 6. A pod that is deleted in flight does not come back.

Why `update` is told the events and does not find them out: what counts as a change is known to `framework`, and the
same list wakes others.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    FORCE_ACTIVATE,
    PENDING_POD_ADD,
    PENDING_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
)
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.queue.backoff import BackoffRooms, Rank, end_s, room_for
from mooring.scheduler.queue.entry import NOBODY, Happening, QueuedPod, Whereabouts
from mooring.scheduler.queue.gates import Gates
from mooring.scheduler.queue.hearing import Ears, Verdict
from mooring.scheduler.queue.in_flight import IN_FLIGHT_EVENTS_MAX, InFlight
from mooring.scheduler.queue.moves import ASLEEP, BACKING_OFF, Cause, Label, Room
from mooring.scheduler.queue.rooms import QueueStatistics, Rooms
from mooring.scheduler.queue.sleepers import Sleepers

logger = logging.getLogger(__name__)

POD_POPPED: Final = "PodPopped"
"""What kube-scheduler calls a pod in flight among the events."""
_CAME: Final = PENDING_POD_ADD.label
_CHANGED: Final = PENDING_POD_UPDATE.label
OWN_EVENTS_MAX: Final = 100
"""Changes of one pod that are remembered while it is in flight; beyond that, one of them surely helps."""


class SchedulingQueue:
    """The pods without a node, in the order in which they should be tried."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        clock: Clock,
        backoff_initial_s: float = 1.0,
        backoff_max_s: float = 10.0,
        asleep_s_max: float = 300.0,
        in_flight_events_max: int = IN_FLIGHT_EVENTS_MAX,
        with_extenders: bool = False,
        moved: Callable[[str, str], None] | None = None,
    ) -> None:
        assert asleep_s_max > 0, f"pods would be woken {asleep_s_max} s after they fell asleep, again and again"
        self._clock = clock
        self._queue_sort = next(iter(profiles.values())).queue_sort  # the configuration sees to it that all are alike
        self._gates = Gates(profiles)
        self._ears = Ears(profiles, with_extenders=with_extenders)
        self._rooms = Rooms(
            clock,
            KeyedHeap.ordered_by(self._rank),
            BackoffRooms(backoff_initial_s, backoff_max_s, self._rank),
            Sleepers(self._ears, asleep_s_max),
            InFlight(in_flight_events_max),
            moved,
        )
        self._entries = self._rooms.entries
        self._sleepers = self._rooms.sleepers
        self._in_flight = self._rooms.in_flight

    # What the watch tells

    def add(self, pod: PodInfo) -> None:
        """A pod without a node was created."""
        if pod.uid in self._entries:
            self.update(pod, pod, ())
        else:
            self._come(pod, Cause.ADDED, _CAME)

    def update(self, old: PodInfo, new: PodInfo, events: Sequence[ClusterEvent]) -> None:
        """A pod without a node was changed; `events` are what the change is called (subject PENDING_POD)."""
        entry = self._entries.get(new.uid)
        if entry is None:
            self._come(new, Cause.UPDATED, _CHANGED)
        elif entry.room is Room.IN_FLIGHT:
            entry.newer, entry.is_gone = new, False
            self._remember(entry, *(Happening(event, old, new) for event in events))
        else:
            self._rooms.renew(entry, new)
            if entry.room in ASLEEP:
                self._wake_by_own_change(entry, old, events)

    def delete(self, uid: str) -> bool:
        """A pod was deleted, or has a node now; whether it was in the queue."""
        entry = self._entries.get(uid)
        if entry is None:
            return False
        if entry.room is Room.IN_FLIGHT:
            entry.is_gone = True
        else:
            self._rooms.move(entry, Room.OUTSIDE, Cause.DELETED)
        return True

    @property
    def is_listening(self) -> bool:
        """Whether there is anybody whom an event could help."""
        return bool(self._sleepers or self._in_flight)

    def wake(
        self, event: ClusterEvent, old: Any = None, new: Any = None, only: Callable[[PodInfo], bool] | None = None
    ) -> int:
        """Something happened: tries those again whom it may help, `only` those if given. Returns how many.

        Pods in flight are told when they come back, whatever `only` says.
        """
        if not (self._sleepers or self._in_flight) or not self._ears.is_heard(event):
            return 0
        woken = self._sleepers.woken_by(event, old, new, only) if len(self._sleepers) else ()
        for entry, verdict in woken:
            self._try_again(entry, verdict, Cause.WOKEN, event.label)
        if len(self._in_flight):
            self._in_flight.record(Happening(event, old, new))
        return len(woken)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """A plugin wants these to be tried now; those in flight will be tried again if they come back."""
        for pod in pods:
            entry = self._entries.get(pod.uid)
            if entry is None:
                continue
            if entry.room is Room.IN_FLIGHT:
                self._remember(entry, Happening(FORCE_ACTIVATE, None, None))
            elif entry.room in ASLEEP:
                self._try_again(entry, Verdict.AT_ONCE, Cause.ACTIVATED, FORCE_ACTIVATE.label)
            elif entry.room in BACKING_OFF:
                self._rooms.move(entry, Room.ACTIVE, Cause.ACTIVATED, FORCE_ACTIVATE.label)

    # What the scheduler's loop does

    def pop(self) -> QueuedPod | None:
        """Takes the best ready pod in flight; None if nobody is ready."""
        self.tick()
        if (first := self._rooms.active.peek()) is not None:
            cause, label = Cause.POPPED, ""
        elif (first := self._rooms.backoff.refused.peek()) is not None:
            cause, label = Cause.POPPED_EARLY, Label.POP_FROM_BACKOFF
        else:
            return None
        entry = first[1]
        entry.attempts += 1
        entry.popped = entry.pod
        self._rooms.move(entry, Room.IN_FLIGHT, cause, label)
        return entry

    async def wait_until_ready(self) -> None:
        """Comes back when `pop` has a pod to give."""
        rooms = self._rooms
        while True:
            self.tick()
            if rooms.is_somebody_ready:
                return
            rooms.bell.clear()
            alarm = None
            if rooms.alarm_s < math.inf:
                delay_s = max(0.0, rooms.alarm_s - self._clock.now_s())
                alarm = asyncio.get_running_loop().call_later(delay_s, rooms.bell.set)
            try:
                await rooms.bell.wait()
            finally:
                if alarm is not None:
                    alarm.cancel()

    def done(self, uid: str) -> None:
        """The pod is placed, or nobody's business any more. It may still be given back, if its binding fails."""
        entry = self._entries.get(uid)
        if entry is not None and entry.room is Room.IN_FLIGHT:
            self._rooms.move(entry, Room.OUTSIDE, Cause.DELETED if entry.is_gone else Cause.DONE)

    def give_back(
        self,
        entry: QueuedPod,
        rejectors: frozenset[str] = NOBODY,
        pending: frozenset[str] = NOBODY,
        *,
        is_error: bool = False,
    ) -> Room:
        """The attempt was in vain: refused by plugins, or, if none is named, failed. Returns where the pod goes."""
        uid = entry.pod.uid
        known = self._entries.get(uid)
        if known is not None and (known is not entry or entry.room is not Room.IN_FLIGHT):
            logger.error("pod %s was given back, but is in the queue: %s", entry.pod.key, known)
            return known.room
        if entry.is_gone:
            self.done(uid)
            return Room.OUTSIDE
        self._note_outcome(entry, NOBODY if is_error else rejectors, NOBODY if is_error else pending)
        verdict = self._verdict_on_return(entry)
        entry.own_events.clear()
        if verdict is Verdict.SLEEP:
            return self._rooms.move(entry, Room.UNSCHEDULABLE, Cause.REFUSED, Label.ATTEMPT_FAILURE)
        cause = Cause.HELPED_IN_FLIGHT if _was_refused(entry) else Cause.FAILED
        return self._try_again(entry, verdict, cause, Label.ATTEMPT_FAILURE)

    # Time

    def tick(self) -> None:
        """Moves everybody whose time has come. `pop` and `wait_until_ready` do so themselves."""
        now_s = self._clock.now_s()
        if now_s < self._rooms.alarm_s:
            return
        while (entry := self._rooms.backoff.first_over(now_s)) is not None:
            self._rooms.move(entry, Room.ACTIVE, Cause.BACKED_OFF, Label.BACKOFF_COMPLETE)
        is_somebody_overslept = False
        while (entry := self._sleepers.first_overslept(now_s)) is not None:
            is_somebody_overslept = entry.was_flushed = True
            entry.flushed_s = now_s
            self._try_again(entry, Verdict.AFTER_BACKOFF, Cause.ASLEEP_TOO_LONG, UNSCHEDULABLE_TIMEOUT.label)
        if is_somebody_overslept:
            self._in_flight.record(Happening(UNSCHEDULABLE_TIMEOUT, None, None))
        self._rooms.set_alarm()

    def next_alarm_s(self) -> float | None:
        """When `tick` may have something to do; None: never, as things are."""
        return self._rooms.alarm_s if self._rooms.alarm_s < math.inf else None

    # Questions

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> QueuedPod | None:
        return self._entries.get(uid)

    def entries(self) -> Iterable[QueuedPod]:
        """Everybody, in the order in which they came."""
        return self._entries.values()

    def statistics(self) -> QueueStatistics:
        return self._rooms.statistics()

    def refused_by(self) -> dict[tuple[str, str], int]:
        """How many pods each plugin of each profile has refused: (plugin, profile), as in `unschedulable_pods`."""
        counts: dict[tuple[str, str], int] = {}
        for entry in self._entries.values():
            if entry.room is not Room.IN_FLIGHT:
                for plugin in sorted(entry.rejectors | entry.pending):
                    key = (plugin, entry.scheduler_name)
                    counts[key] = counts.get(key, 0) + 1
        return counts

    def in_flight_events(self) -> dict[str, int]:
        """What is remembered for pods in flight, and how many those are: by event, as in `inflight_events`."""
        counts = {POD_POPPED: len(self._in_flight)} if len(self._in_flight) else {}
        own = (happening for entry in self._entries.values() for happening in entry.own_events)
        for event, _, _ in chain(self._in_flight.happenings(), own):
            counts[event.label] = counts.get(event.label, 0) + 1
        return counts

    def whereabouts(self, uid: str) -> Whereabouts | None:
        """Where a pod is, and why; None if it is not in the queue."""
        entry = self._entries.get(uid)
        return None if entry is None else self._rooms.whereabouts(entry)

    def check(self) -> None:
        """Asserts the invariants. O(pods)."""
        self._rooms.check()

    # What becomes of a pod

    def _come(self, pod: PodInfo, cause: Cause, label: str) -> None:
        entry = QueuedPod(pod, self._clock.now_s())
        assert entry.scheduler_name in self._gates, f"{pod} asks for {entry.scheduler_name}, which is no profile here"
        self._try_again(entry, Verdict.AT_ONCE, cause, label)

    def _try_again(self, entry: QueuedPod, verdict: Verdict, cause: Cause, label: str) -> Room:
        """Takes a pod that comes, sleeps or comes back towards active: as far as the gates and its backoff let it."""
        if not self._gates.let_in(entry):
            entry.was_flushed = False
            return self._rooms.move(entry, Room.GATED, cause, label)
        if verdict is Verdict.AFTER_BACKOFF and self._clock.now_s() < end_s(entry):
            return self._rooms.move(entry, room_for(entry), cause, label)
        return self._rooms.move(entry, Room.ACTIVE, cause, label)

    def _wake_by_own_change(self, entry: QueuedPod, old: PodInfo, events: Sequence[ClusterEvent]) -> None:
        for event in events:
            # Even if it is gated: its own change is looked at by all who refused it, whatever its gate hears.
            audience = self._sleepers.audience(entry, None)
            verdict = audience.verdict(entry.pod, event, old, entry.pod)
            if verdict is Verdict.SLEEP:
                continue
            if self._try_again(entry, verdict, Cause.UPDATED, event.label) not in ASLEEP:
                return

    def _remember(self, entry: QueuedPod, *happenings: Happening) -> None:
        entry.own_events.extend(happenings)
        if len(entry.own_events) > OWN_EVENTS_MAX:
            entry.own_events = [Happening(FORCE_ACTIVATE, None, None)]

    def _note_outcome(self, entry: QueuedPod, rejectors: frozenset[str], pending: frozenset[str]) -> None:
        if entry.newer is not None and entry.pod is entry.popped:  # whoever gives it back may know it better still
            entry.pod = entry.newer
        entry.newer = None
        entry.rejectors, entry.pending, entry.gated_by = rejectors, pending, None
        if rejectors or pending:
            entry.unschedulable_count += 1
            entry.errors_in_a_row = 0
        else:
            entry.errors_in_a_row += 1
        entry.queued_s = self._clock.now_s()
        entry.was_flushed = False
        self._rooms.backoff.count(entry)

    def _verdict_on_return(self, entry: QueuedPod) -> Verdict:
        """Whether something that happened in flight may have helped the pod."""
        if not _was_refused(entry):
            return Verdict.AFTER_BACKOFF
        happened = self._in_flight.since(entry.pod.uid)
        if happened is None:
            return Verdict.AFTER_BACKOFF
        best, best_possible = Verdict.SLEEP, Verdict.AT_ONCE if entry.pending else Verdict.AFTER_BACKOFF
        audience = self._sleepers.audience(entry, None)
        for event, old, new in chain(happened, entry.own_events):
            best = max(best, audience.verdict(entry.pod, event, old, new))
            if best is best_possible:
                break
        return best

    def _rank(self, entry: QueuedPod) -> Rank:
        try:
            return self._queue_sort.queue_key(entry.pod, entry.queued_s)
        except Exception:
            logger.exception("QueueSort plugin %s failed for %s, which goes last", self._queue_sort.name, entry.pod.key)
            return (math.inf,)


def _was_refused(entry: QueuedPod) -> bool:
    """Otherwise its attempt failed, or there was none."""
    return bool(entry.rejectors or entry.pending)
