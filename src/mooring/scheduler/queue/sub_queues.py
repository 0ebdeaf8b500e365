"""The sub-queues (activeQ, backoffQ, unschedulable pods, in-flight pods) and the transitions between them.

Inputs   transitions that `queue` decides; cluster events
Outputs  the same transitions, checked against `TRANSITIONS`, recorded in the entry and reported to `on_incoming`; the
         pods that an event may help

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

Unschedulable and gated pods are indexed by the events that can help them, because a cluster may have thousands of them
and thousands of events per second, nearly all of which help none of these pods. Pods that were rejected by the same
plugins form a group. Whether the plugins of a group have registered an event is computed once. Within a group, a hint
that reads only the signature is called once per signature.

 8. An event that no group registered costs one lookup, whatever the number of pods.
 9. A gated pod is moved only by events that its gating plugin registered, and by wildcard events.
10. `first_leftover` returns a pod that has been unschedulable for `unschedulable_s_max` since its last attempt or its
    last timeout. The timeout limits the effect of a missing hint. kube-scheduler checks every 30 seconds; this queue
    has an exact timer.
11. The cost of an event grows with the number of signatures (of pods, for hints that read the pod) in the groups that
    registered it: about a microsecond plus the hint itself for each. Pods with a label of their own, such as those of a
    StatefulSet, each have their own signature: with ten thousand of them, rejected by a plugin that registers assigned
    pods, such events are expensive. These events repeat, however. If an event of a pod with some signature moved no
    pod, and the hints read only the two signatures, the next one moves no pod either, until an unschedulable pod with
    a new signature is added.
12. The order of the results is fixed: groups, signatures and pods in insertion order.

A pod may be rejected by a decision that was made before an event that helps it. The queue therefore replays to a
requeued pod all events since it was popped. The events are stored once, in one list; each pod stores the position at
which it was popped.

13. Events are stored only while a pod is in flight. Events older than the oldest in-flight pod are dropped.
14. At most `events_max` events are stored. Beyond that the oldest are dropped, and `events_since_pop` returns None for
    a pod that was popped before them. The queue then assumes that one of the events helps.
15. Every operation on in-flight pods takes constant time on average.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.framework.events import ClusterEvent, has_node_or_nomination
from mooring.scheduler.queue.queued_pod import (
    BACKOFF_STATES,
    NEVER_S,
    TRANSITIONS,
    UNSCHEDULABLE_STATES,
    GroupKey,
    InFlightEvent,
    QueuedPod,
    QueuedPodStatus,
    QueueState,
    RejectionGroup,
    TransitionCause,
    check_transition,
)
from mooring.scheduler.queue.queueing_hints import EventHints, QueueingHintMap, QueueingStrategy, run_hints

IN_FLIGHT_EVENTS_MAX: Final = 10_000
"""A few seconds of a busy cluster. A pod that is in flight longer, such as one waiting for Permit, is retried."""
GROUPS_MAX: Final = 1_000
"""Beyond this number, empty groups are removed. They are created again when needed."""
SKIPPED_EVENTS_MAX: Final = 1_000
BACKOFF_WINDOW_S: Final = 1.0
QueueKey = tuple[float, ...]
"""What a QueueSort plugin returns. Smaller keys come first."""


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
        self._dropped_by_limit = 0

    def __len__(self) -> int:
        return len(self._popped_at)

    def __contains__(self, uid: object) -> bool:
        return uid in self._popped_at

    @property
    def event_count(self) -> int:
        return len(self._events)

    @property
    def events_dropped(self) -> int:
        """How many events the limit dropped while a pod still needed them."""
        return self._dropped_by_limit

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
            self._dropped_by_limit += 1

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


class UnschedulablePods:
    """All unschedulable and gated pods."""

    def __init__(self, hint_map: QueueingHintMap, unschedulable_s_max: float) -> None:
        self._hint_map = hint_map
        self._unschedulable_s_max = unschedulable_s_max
        self._groups: dict[GroupKey, RejectionGroup] = {}
        self._groups_by_event: dict[ClusterEvent, tuple[tuple[RejectionGroup, EventHints], ...]] = {}
        self._by_timeout: KeyedHeap[str, QueuedPod] = KeyedHeap.ordered_by(self.timeout_s)
        self._gated_count = 0
        self._skipped_events: set[tuple[ClusterEvent, PodSignature]] = set()
        """Events of pods with a signature that moved none of the current pods."""

    def __len__(self) -> int:
        return len(self._by_timeout)

    @property
    def gated_count(self) -> int:
        return self._gated_count

    def __contains__(self, uid: object) -> bool:
        return uid in self._by_timeout

    def add(self, entry: QueuedPod) -> None:
        assert entry.group is None, f"{entry} is among the unschedulable pods already"
        group = self.group(entry, entry.gating_plugin)
        siblings = group.by_signature.get(entry.pod.signature)
        if siblings is None:
            siblings = group.by_signature[entry.pod.signature] = {}
            self._skipped_events.clear()  # an event that moved no other pod may move this one
        siblings[entry.pod.uid] = entry
        entry.group = group
        self._by_timeout.push(entry.pod.uid, entry)
        self._gated_count += entry.gating_plugin is not None

    def remove(self, entry: QueuedPod) -> None:
        group, signature = entry.group, entry.pod.signature
        assert group is not None, f"{entry} is not among the unschedulable pods"
        siblings = group.by_signature[signature]
        del siblings[entry.pod.uid]
        if not siblings:
            del group.by_signature[signature]
        entry.group = None
        self._by_timeout.delete(entry.pod.uid)
        self._gated_count -= group.key[3] is not None

    def group(self, entry: QueuedPod, gating_plugin: str | None) -> RejectionGroup:
        """The group for the pod's rejecting plugins and the given gating plugin."""
        key = (entry.scheduler_name, entry.unschedulable_plugins, entry.pending_plugins, gating_plugin)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= GROUPS_MAX:
                self._groups = {key: group for key, group in self._groups.items() if group.by_signature}
            group = self._groups[key] = RejectionGroup(key, self._hint_map)
            self._groups_by_event.clear()
        return group

    def pods_to_move(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: Callable[[PodInfo], bool] | None
    ) -> list[tuple[QueuedPod, QueueingStrategy]]:
        """The pods that an event may help, each with its strategy."""
        found: list[tuple[QueuedPod, QueueingStrategy]] = []
        registered = self._registered_groups(event)
        if not registered:
            return found
        repeated = (event, new.signature) if isinstance(new, PodInfo) and has_node_or_nomination(new) else None
        if repeated in self._skipped_events:
            return found
        for group, hints in registered:
            per_pod = hints.per_pod
            for siblings in group.by_signature.values():
                first = next(iter(siblings.values()))
                for_signature = run_hints(hints.per_signature, hints.without_hint, first.pod, old, new)
                if for_signature is QueueingStrategy.SKIP and not per_pod:
                    continue
                for entry in siblings.values():
                    if pre_check is not None and not pre_check(entry.pod):
                        continue
                    strategy = run_hints(per_pod, for_signature, entry.pod, old, new) if per_pod else for_signature
                    if strategy is not QueueingStrategy.SKIP:
                        found.append((entry, strategy))
        if (
            repeated is not None
            and not found
            and pre_check is None
            and all(hints.is_per_signature_pair for _, hints in registered)
        ):
            if len(self._skipped_events) >= SKIPPED_EVENTS_MAX:
                self._skipped_events.clear()
            self._skipped_events.add(repeated)
        return found

    def _registered_groups(self, event: ClusterEvent) -> tuple[tuple[RejectionGroup, EventHints], ...]:
        registered = self._groups_by_event.get(event)
        if registered is None:
            registered = self._groups_by_event[event] = tuple(
                (group, hints) for group in self._groups.values() if (hints := group.hints(event)) is not None
            )
        return registered

    def first_leftover(self, now_s: float) -> QueuedPod | None:
        """The pod with the earliest timeout, if that is over. The pod is not removed."""
        first = self._by_timeout.peek()
        return first[1] if first is not None and self.timeout_s(first[1]) <= now_s else None

    def next_timeout_s(self) -> float:
        first = self._by_timeout.peek()
        return float("inf") if first is None else self.timeout_s(first[1])

    def timeout_s(self, entry: QueuedPod) -> float:
        """When the pod is retried at the latest."""
        return max(entry.queued_s, entry.flushed_s) + self._unschedulable_s_max

    def entries(self) -> Iterator[QueuedPod]:
        """All pods, by group and signature."""
        for group in self._groups.values():
            for siblings in group.by_signature.values():
                yield from siblings.values()


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Number of pods by state. The first four are the label values of kube-scheduler's `pending_pods`."""

    active: int
    backoff: int
    """After a rejection or an error."""
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: int
    in_flight_events_dropped: int


class BackoffQueue:
    """backoffQ: one heap for rejected pods, one for pods whose attempt ended with an error."""

    def __init__(self, initial_s: float, max_s: float, queue_key: Callable[[QueuedPod], QueueKey]) -> None:
        self._backoff = Backoff(initial_s, max_s) if max_s else None

        def by_window_then_key(entry: QueuedPod) -> tuple[float, QueueKey]:
            return entry.backoff_window_s, queue_key(entry)

        def by_window(entry: QueuedPod) -> float:
            return entry.backoff_window_s

        self.rejected: KeyedHeap[str, QueuedPod] = KeyedHeap.ordered_by(by_window_then_key)
        self.after_error: KeyedHeap[str, QueuedPod] = KeyedHeap.ordered_by(by_window)
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
            in_flight_events=self.in_flight.event_count,
            in_flight_events_dropped=self.in_flight.events_dropped,
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
