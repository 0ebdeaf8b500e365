"""Backing off: how long a pod stays away after an attempt, and in which order pods come back.

Comes in   pods that were refused, with something that may help; pods whose attempt failed
Goes out   those whose time is over; and early, the first of the refused

The wait doubles with every refusal, or with every error in a row if the last attempt was one, from `initial_s` up to
`max_s` (0: nobody backs off). It is rounded to windows of one second: a pod stays through the second in which its
wait ends. So pods whose waits end together come back together, the most important first.

 1. Refused pods are ordered by window, then as the QueueSort plugin says; failed ones by window, then by arrival.
 2. The windows are whole seconds of the given clock. In kube-scheduler they are those of the calendar; where a second
    begins is chance in both.
 3. Whoever is refused without backing off at all has window `NEVER_S`, which is always over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from mooring.kit.backoff import Backoff
from mooring.kit.heap import KeyedHeap
from mooring.scheduler.queue.entry import NEVER_S, QueuedPod
from mooring.scheduler.queue.moves import Room

WINDOW_S: Final = 1.0

Rank = tuple[float, ...]


class BackoffRooms:
    """The two rooms, and the rule of waiting."""

    __slots__ = ("_backoff", "_rooms", "failed", "refused")

    def __init__(self, initial_s: float, max_s: float, rank: Callable[[QueuedPod], Rank]) -> None:
        self._backoff = Backoff(initial_s, max_s) if max_s else None

        def by_window_then_rank(entry: QueuedPod) -> tuple[float, Rank]:
            return entry.backoff_window_s, rank(entry)

        def by_window(entry: QueuedPod) -> float:
            return entry.backoff_window_s

        self.refused: KeyedHeap[str, QueuedPod] = KeyedHeap.ordered_by(by_window_then_rank)
        self.failed: KeyedHeap[str, QueuedPod] = KeyedHeap.ordered_by(by_window)
        self._rooms = {Room.BACKOFF: self.refused, Room.ERROR_BACKOFF: self.failed}

    def count(self, entry: QueuedPod) -> None:
        """Computes the window of a pod that was just given back."""
        failures = entry.errors_in_a_row or entry.unschedulable_count
        if self._backoff is None or not failures:
            entry.backoff_window_s = NEVER_S
        else:
            ends_s = entry.queued_s + self._backoff.delay_s(failures)
            entry.backoff_window_s = math.floor(ends_s / WINDOW_S) * WINDOW_S

    def room_of(self, room: Room) -> KeyedHeap[str, QueuedPod]:
        return self._rooms[room]

    def first_over(self, now_s: float) -> QueuedPod | None:
        """The next whose backoff is over, still in its room: the refused first, each sort in its order."""
        for heap in (self.refused, self.failed):
            if (first := heap.peek()) is not None and end_s(first[1]) <= now_s:
                return first[1]
        return None

    def next_end_s(self) -> float:
        ends = [end_s(first[1]) for heap in (self.refused, self.failed) if (first := heap.peek()) is not None]
        return min(ends, default=math.inf)


def end_s(entry: QueuedPod) -> float:
    """When the pod's backoff is over."""
    return entry.backoff_window_s + WINDOW_S


def room_for(entry: QueuedPod) -> Room:
    """Pods without anybody who refused them come from an error."""
    return Room.BACKOFF if entry.rejectors or entry.pending else Room.ERROR_BACKOFF
