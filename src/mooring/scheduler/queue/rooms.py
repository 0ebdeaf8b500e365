"""The rooms themselves: who is where, and the one way from room to room.

Comes in   moves that `queue` decided on
Goes out   the same moves, checked against the table, noted in the entry and told to whoever listens

 1. Every pod of `entries` is in the room that its entry says, in no other, and the rooms hold nobody else.
 2. `move` is the only function that changes where a pod is; it refuses what the table does not allow.
 3. `alarm_s` is never later than the first time at which somebody's backoff or sleep ends.
 4. The bell rings whenever a pod may have become ready, or the alarm was set earlier: whoever waits must look again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.queue.backoff import BackoffRooms, end_s
from mooring.scheduler.queue.entry import QueuedPod, Whereabouts
from mooring.scheduler.queue.in_flight import InFlight
from mooring.scheduler.queue.moves import ASLEEP, BACKING_OFF, LAWFUL, Cause, Room, check_move
from mooring.scheduler.queue.sleepers import Sleepers


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """How many pods are where; the first four are the labels of kube-scheduler's `pending_pods`."""

    active: int
    backoff: int
    """Both sorts."""
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: int
    in_flight_events_dropped: int


class Rooms:
    """All rooms of the queue."""

    __slots__ = ("_clock", "_moved", "active", "alarm_s", "backoff", "bell", "entries", "in_flight", "sleepers")

    def __init__(
        self,
        clock: Clock,
        active: KeyedHeap[str, QueuedPod],
        backoff: BackoffRooms,
        sleepers: Sleepers,
        in_flight: InFlight,
        moved: Callable[[str, str], None] | None,
    ) -> None:
        self._clock = clock
        self._moved = moved
        self.entries: dict[str, QueuedPod] = {}
        self.active = active
        self.backoff = backoff
        self.sleepers = sleepers
        self.in_flight = in_flight
        self.bell = asyncio.Event()
        self.alarm_s = math.inf

    def move(self, entry: QueuedPod, to: Room, cause: Cause, label: str = "") -> Room:
        """Takes a pod out of the room where it is, and into another. Returns which."""
        come_from, now_s = entry.room, self._clock.now_s()
        queue = LAWFUL.get((come_from, to, cause))
        if queue is None:
            check_move(come_from, to, cause, entry)
        self._take_out(entry)
        entry.room, entry.since_s, entry.cause, entry.label = to, now_s, cause, label
        self._put_in(entry, now_s)
        if queue and self._moved is not None:
            self._moved(queue, label)
        return to

    def renew(self, entry: QueuedPod, pod: PodInfo) -> None:
        """Replaces the pod's record where it waits: its order or its signature may be another."""
        if entry.room in ASLEEP:
            self.sleepers.remove(entry)
            entry.pod = pod
            self.sleepers.add(entry)
        else:
            entry.pod = pod
            self._heap_of(entry.room).update(pod.uid, entry)

    @property
    def is_somebody_ready(self) -> bool:
        return len(self.active) > 0 or len(self.backoff.refused) > 0

    def set_alarm(self) -> None:
        """To the first end of a backoff or a sleep."""
        self.alarm_s = min(self.backoff.next_end_s(), self.sleepers.next_end_s())

    def _take_out(self, entry: QueuedPod) -> None:
        room, uid = entry.room, entry.pod.uid
        if room is Room.OUTSIDE:
            self.entries[uid] = entry
        elif room is Room.IN_FLIGHT:
            self.in_flight.end(uid)
        elif room in ASLEEP:
            self.sleepers.remove(entry)
        else:
            self._heap_of(room).delete(uid)

    def _put_in(self, entry: QueuedPod, now_s: float) -> None:
        room, uid = entry.room, entry.pod.uid
        if room is Room.ACTIVE:
            if entry.first_attempt_s is None:
                entry.first_attempt_s = now_s
            self.active.push(uid, entry)
            self.bell.set()
        elif room is Room.IN_FLIGHT:
            self.in_flight.begin(uid)
        elif room is Room.OUTSIDE:
            del self.entries[uid]
        elif room in ASLEEP:
            self.sleepers.add(entry)
            self._ring_at(self.sleepers.end_s(entry))
        else:
            self._heap_of(room).push(uid, entry)
            self.bell.set()
            self._ring_at(end_s(entry))

    def _heap_of(self, room: Room) -> KeyedHeap[str, QueuedPod]:
        return self.active if room is Room.ACTIVE else self.backoff.room_of(room)

    def _ring_at(self, alarm_s: float) -> None:
        if alarm_s < self.alarm_s:
            self.alarm_s = alarm_s
            self.bell.set()

    # Questions

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            active=len(self.active),
            backoff=len(self.backoff.refused) + len(self.backoff.failed),
            unschedulable=len(self.sleepers) - self.sleepers.gated,
            gated=self.sleepers.gated,
            in_flight=len(self.in_flight),
            in_flight_events=self.in_flight.events,
            in_flight_events_dropped=self.in_flight.events_dropped,
        )

    def whereabouts(self, entry: QueuedPod) -> Whereabouts:
        return Whereabouts(
            room=entry.room,
            since_s=entry.since_s,
            cause=entry.cause,
            label=entry.label,
            attempts=entry.attempts,
            rejectors=tuple(sorted(entry.rejectors)),
            pending=tuple(sorted(entry.pending)),
            gated_by=entry.gated_by,
            backoff_end_s=end_s(entry) if entry.room in BACKING_OFF else None,
            asleep_until_s=self.sleepers.end_s(entry) if entry.room in ASLEEP else None,
        )

    def check(self) -> None:
        """Asserts the invariants, of the entries too. O(pods)."""
        beds = {entry.pod.uid for entry in self.sleepers.entries()}
        for uid, entry in self.entries.items():
            is_asleep = uid in beds and uid in self.sleepers
            places = {
                Room.ACTIVE: uid in self.active,
                Room.BACKOFF: uid in self.backoff.refused,
                Room.ERROR_BACKOFF: uid in self.backoff.failed,
                Room.UNSCHEDULABLE: is_asleep and entry.gated_by is None,
                Room.GATED: is_asleep and entry.gated_by in entry.rejectors,
                Room.IN_FLIGHT: uid in self.in_flight,
            }
            assert entry.pod.uid == uid, f"{entry} stands under {uid}"
            assert [room for room, is_there in places.items() if is_there] == [entry.room], f"{entry} is in {places}"
            assert (entry.gated_by is not None) == (entry.room is Room.GATED), f"{entry} is gated by {entry.gated_by}"
            assert (entry.audience is not None) == (entry.room in ASLEEP), f"{entry} and its bed"
            assert not entry.is_gone or entry.room is Room.IN_FLIGHT, f"{entry} was deleted"
            was_refused = bool(entry.rejectors or entry.pending)
            assert entry.room is not Room.BACKOFF or was_refused, f"{entry} was not refused"
            assert entry.room is not Room.ERROR_BACKOFF or not was_refused, f"{entry} was refused"
        numbers = self.statistics()
        assert len(beds) == len(self.sleepers), f"{len(beds)} beds for {len(self.sleepers)} sleepers"
        assert len(self.entries) == numbers.active + numbers.backoff + len(beds) + numbers.in_flight, f"{numbers}"
        assert numbers.gated == sum(entry.room is Room.GATED for entry in self.entries.values()), f"{numbers}"
        assert self.alarm_s <= min(self.backoff.next_end_s(), self.sleepers.next_end_s()), "an alarm is missing"
        self.in_flight.check()
