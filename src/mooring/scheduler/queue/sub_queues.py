"""The sub-queues (activeQ, backoffQ, unschedulable pods, in-flight pods) and the transitions between them.

Inputs   transitions that `queue` decides; cluster events
Outputs  the same transitions, checked against `TRANSITIONS`, recorded in the entry and reported to `on_incoming`

The backoff doubles with each rejection, or with each consecutive error if the last attempt ended with one, from
`initial_s` to `max_s` (0: no backoff). It is aligned to windows of one second: a pod stays in backoffQ to the end of
the window in which its backoff ends. Pods whose backoffs end in one window return together, ordered by QueueSort.

 1. Every pod of `entries` is in the sub-queue of its state and in no other. The sub-queues contain no other pods.
 2. `transition` is the only function that changes a state. A transition that is not allowed is an assertion error.
 3. `deadline_s` is not later than the earliest end of a backoff or of an unschedulable timeout.
 4. `changed` is set when a pod may have become ready and when `deadline_s` becomes earlier. A waiting task then checks
    again.
 5. In backoffQ rejected pods are ordered by window and QueueSort key, pods after an error by window and insertion.
 6. Windows are whole seconds of the injected clock. kube-scheduler uses calendar seconds. Their start is arbitrary in
    both.
 7. A pod without backoff has the window `NEVER_S`, which is always over.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.queue.in_flight import InFlightPods
from mooring.scheduler.queue.queued_pod import (
    BACKOFF_STATES,
    NEVER_S,
    TRANSITIONS,
    UNSCHEDULABLE_STATES,
    QueuedPod,
    QueuedPodStatus,
    QueueState,
    TransitionCause,
    check_transition,
)
from mooring.scheduler.queue.unschedulable import UnschedulablePods

BACKOFF_WINDOW_S: Final = 1.0
QueueKey = tuple[float, ...]
"""What a QueueSort plugin returns. Smaller keys come first."""


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Number of pods by state. The first four are the label values of kube-scheduler's `pending_pods`."""

    active: int
    backoff: int
    """After a rejection or an error."""
    unschedulable: int
    gated: int
    in_flight: int


class BackoffQueue:
    """backoffQ: one heap for rejected pods, one for pods whose attempt ended with an error."""

    def __init__(self, initial_s: float, max_s: float, queue_key: Callable[[QueuedPod], QueueKey]) -> None:
        self._backoff = Backoff(initial_s, max_s) if max_s else None

        def by_window_then_key(entry: QueuedPod) -> tuple[float, QueueKey]:
            return entry.backoff_window_s, queue_key(entry)

        def by_window(entry: QueuedPod) -> float:
            return entry.backoff_window_s

        self.rejected: KeyedHeap[str, QueuedPod] = KeyedHeap(by_window_then_key)
        self.after_error: KeyedHeap[str, QueuedPod] = KeyedHeap(by_window)
        self._heaps = {QueueState.BACKOFF: self.rejected, QueueState.ERROR_BACKOFF: self.after_error}

    def __len__(self) -> int:
        return len(self.rejected) + len(self.after_error)

    def set_window(self, entry: QueuedPod) -> None:
        """Computes the backoff of a pod that is being requeued."""
        failures = entry.consecutive_errors or entry.unschedulable_count
        if self._backoff is None or not failures:
            entry.backoff_window_s = NEVER_S
        else:
            end_s = entry.queued_s + self._backoff.delay_s(failures)
            entry.backoff_window_s = math.floor(end_s / BACKOFF_WINDOW_S) * BACKOFF_WINDOW_S

    def heap(self, state: QueueState) -> KeyedHeap[str, QueuedPod]:
        return self._heaps[state]

    def first_completed(self, now_s: float) -> QueuedPod | None:
        """A pod whose backoff is over, rejected pods first. The pod is not removed."""
        for heap in (self.rejected, self.after_error):
            if (first := heap.peek()) is not None and backoff_end_s(first[1]) <= now_s:
                return first[1]
        return None

    def next_end_s(self) -> float:
        heaps = (self.rejected, self.after_error)
        return min((backoff_end_s(first[1]) for heap in heaps if (first := heap.peek()) is not None), default=math.inf)


def backoff_end_s(entry: QueuedPod) -> float:
    return entry.backoff_window_s + BACKOFF_WINDOW_S


def backoff_state(entry: QueuedPod) -> QueueState:
    return QueueState.BACKOFF if entry.was_rejected else QueueState.ERROR_BACKOFF


class SubQueues:
    """All pods of the queue, by state."""

    def __init__(
        self,
        clock: Clock,
        active: KeyedHeap[str, QueuedPod],
        backoff: BackoffQueue,
        unschedulable: UnschedulablePods,
        in_flight: InFlightPods,
        on_incoming: Callable[[str, str], None] | None,
    ) -> None:
        self._clock = clock
        self._on_incoming = on_incoming
        self.entries: dict[str, QueuedPod] = {}
        self.active = active
        self.backoff = backoff
        self.unschedulable = unschedulable
        self.in_flight = in_flight
        self.changed = asyncio.Event()
        self.deadline_s = math.inf

    def transition(
        self, entry: QueuedPod, target: QueueState, cause: TransitionCause, event_label: str = ""
    ) -> QueueState:
        """Moves a pod to the target state, which is returned."""
        origin, now_s = entry.state, self._clock.now_s()
        incoming = TRANSITIONS.get((origin, target, cause))
        if incoming is None:
            check_transition(origin, target, cause, entry)
        self._remove(entry)
        if origin in UNSCHEDULABLE_STATES:
            entry.requeued_by = event_label
        entry.state, entry.since_s, entry.cause, entry.event_label = target, now_s, cause, event_label
        self._insert(entry, now_s)
        if incoming and self._on_incoming is not None:
            self._on_incoming(incoming, event_label)
        return target

    def update_pod(self, entry: QueuedPod, pod: PodInfo) -> None:
        """Replaces the record of a waiting pod. Its order or its signature may change."""
        if entry.state in UNSCHEDULABLE_STATES:
            self.unschedulable.remove(entry)
            entry.pod = pod
            self.unschedulable.add(entry)
        else:
            entry.pod = pod
            self._heap(entry.state).update(pod.uid, entry)

    @property
    def has_ready_pod(self) -> bool:
        return len(self.active) > 0 or len(self.backoff.rejected) > 0

    def update_deadline(self) -> None:
        self.deadline_s = min(self.backoff.next_end_s(), self.unschedulable.next_timeout_s())

    def _remove(self, entry: QueuedPod) -> None:
        state, uid = entry.state, entry.pod.uid
        if state is QueueState.NOT_QUEUED:
            self.entries[uid] = entry
        elif state is QueueState.IN_FLIGHT:
            self.in_flight.remove(uid)
        elif state in UNSCHEDULABLE_STATES:
            self.unschedulable.remove(entry)
        else:
            self._heap(state).delete(uid)

    def _insert(self, entry: QueuedPod, now_s: float) -> None:
        state, uid = entry.state, entry.pod.uid
        if state is QueueState.ACTIVE:
            if entry.first_attempt_s is None:
                entry.first_attempt_s = now_s
            self.active.push(uid, entry)
            self.changed.set()
        elif state is QueueState.IN_FLIGHT:
            self.in_flight.add(uid)
        elif state is QueueState.NOT_QUEUED:
            del self.entries[uid]
        elif state in UNSCHEDULABLE_STATES:
            self.unschedulable.add(entry)
            self._lower_deadline(self.unschedulable.timeout_s(entry))
        else:
            self._heap(state).push(uid, entry)
            self.changed.set()
            self._lower_deadline(backoff_end_s(entry))

    def _heap(self, state: QueueState) -> KeyedHeap[str, QueuedPod]:
        return self.active if state is QueueState.ACTIVE else self.backoff.heap(state)

    def _lower_deadline(self, deadline_s: float) -> None:
        if deadline_s < self.deadline_s:
            self.deadline_s = deadline_s
            self.changed.set()

    # Read access

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            active=len(self.active),
            backoff=len(self.backoff),
            unschedulable=len(self.unschedulable) - self.unschedulable.gated_count,
            gated=self.unschedulable.gated_count,
            in_flight=len(self.in_flight),
        )

    def status(self, entry: QueuedPod) -> QueuedPodStatus:
        return QueuedPodStatus(
            state=entry.state,
            since_s=entry.since_s,
            cause=entry.cause,
            event_label=entry.event_label,
            attempts=entry.attempts,
            unschedulable_plugins=tuple(sorted(entry.unschedulable_plugins)),
            pending_plugins=tuple(sorted(entry.pending_plugins)),
            gating_plugin=entry.gating_plugin,
            backoff_end_s=backoff_end_s(entry) if entry.state in BACKOFF_STATES else None,
            timeout_s=self.unschedulable.timeout_s(entry) if entry.state in UNSCHEDULABLE_STATES else None,
        )

    def check(self) -> None:
        """Asserts the invariants, those of the entries included. O(pods)."""
        grouped = {entry.pod.uid for entry in self.unschedulable.entries()}
        for uid, entry in self.entries.items():
            is_unschedulable = uid in grouped and uid in self.unschedulable
            found = {
                QueueState.ACTIVE: uid in self.active,
                QueueState.BACKOFF: uid in self.backoff.rejected,
                QueueState.ERROR_BACKOFF: uid in self.backoff.after_error,
                QueueState.UNSCHEDULABLE: is_unschedulable and entry.gating_plugin is None,
                QueueState.GATED: is_unschedulable and entry.gating_plugin in entry.unschedulable_plugins,
                QueueState.IN_FLIGHT: uid in self.in_flight,
            }
            is_gated = entry.state is QueueState.GATED
            assert entry.pod.uid == uid, f"{entry} has the key {uid}"
            assert [state for state, is_found in found.items() if is_found] == [entry.state], f"{entry} is in {found}"
            assert (entry.gating_plugin is not None) == is_gated, f"{entry} is gated by {entry.gating_plugin}"
            assert (entry.group is not None) == (entry.state in UNSCHEDULABLE_STATES), f"{entry} has a wrong group"
            assert not entry.is_deleted or entry.state is QueueState.IN_FLIGHT, f"{entry} was deleted"
            assert entry.state is not QueueState.BACKOFF or entry.was_rejected, f"{entry} was not rejected"
            assert entry.state is not QueueState.ERROR_BACKOFF or not entry.was_rejected, f"{entry} was rejected"
        numbers = self.statistics()
        assert len(grouped) == len(self.unschedulable), f"{len(grouped)} in groups, {len(self.unschedulable)} in all"
        assert len(self.entries) == numbers.active + numbers.backoff + len(grouped) + numbers.in_flight, f"{numbers}"
        assert numbers.gated == sum(entry.state is QueueState.GATED for entry in self.entries.values()), f"{numbers}"
        next_s = min(self.backoff.next_end_s(), self.unschedulable.next_timeout_s())
        assert self.deadline_s <= next_s, f"the deadline {self.deadline_s} is later than {next_s}"
        self.in_flight.check()
