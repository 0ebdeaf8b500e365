"""The scheduling queue.

Inputs   pods and events from the event handlers; results of scheduling and binding cycles
Outputs  the next pod, for the scheduling loop; incoming pods by queue and event, for metrics

A pod is in exactly one state (see `queued_pod`). All functions are synchronous, except `wait_until_ready`.

 1. Only `pop` makes a pod in-flight. It stays in flight until `done` or `requeue`.
 2. Events that occur while a pod is in flight are replayed in order before the pod may become unschedulable.
 3. A pod that has been unschedulable for `unschedulable_s_max` is queued, whatever the hints return.
 4. A pod enters activeQ or backoffQ only if no PreEnqueue plugin rejects it. A pod that leaves backoffQ passed before.
 5. A pod backs off for its full time, with three exceptions: activeQ is empty, and `pop` takes the first rejected pod
    of backoffQ (never one after an error); an event resolves a pending plugin; a plugin activates the pod.
 6. A pod that is deleted in flight is not requeued.
 7. The plugin that gated a pod last runs first, because it is the most likely to reject the pod again.
 8. A gating plugin is one of the pod's unschedulable plugins, together with those of the last attempt: an event of any
    of them can help. It remains one after it admits the pod, until the next attempt ends.
 9. A PreEnqueue plugin that raises gates the pod, as in kube-scheduler.

`update` takes the events of the update as an argument, because `framework.events` computes them.
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
from mooring.kit.logs import ATTEMPTS, fields
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
    ClusterEvent,
)
from mooring.scheduler.framework.plugin import PreEnqueue
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code
from mooring.scheduler.queue.in_flight import IN_FLIGHT_EVENTS_MAX, InFlightPods
from mooring.scheduler.queue.queued_pod import (
    BACKOFF_STATES,
    NO_PLUGINS,
    UNSCHEDULABLE_STATES,
    EventLabel,
    InFlightEvent,
    QueuedPod,
    QueuedPodStatus,
    QueueState,
    TransitionCause,
)
from mooring.scheduler.queue.queueing_hints import QueueingHintMap, QueueingStrategy
from mooring.scheduler.queue.sub_queues import (
    BackoffQueue,
    QueueKey,
    QueueStatistics,
    SubQueues,
    backoff_end_s,
    backoff_state,
)
from mooring.scheduler.queue.unschedulable import UnschedulablePods

logger = logging.getLogger(__name__)

POD_POPPED: Final = "PodPopped"
"""kube-scheduler's label for an in-flight pod in `inflight_events`."""
_POD_ADD: Final = UNSCHEDULED_POD_ADD.label
_POD_UPDATE: Final = UNSCHEDULED_POD_UPDATE.label
OWN_EVENTS_MAX: Final = 100
"""Limit of own events of one in-flight pod. Beyond it the pod is requeued without calling hints."""


class SchedulingQueue:
    """The pods without a node, in the order in which the scheduler attempts them."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        clock: Clock,
        backoff_initial_s: float = 1.0,
        backoff_max_s: float = 10.0,
        unschedulable_s_max: float = 300.0,
        in_flight_events_max: int = IN_FLIGHT_EVENTS_MAX,
        with_extenders: bool = False,
        on_incoming: Callable[[str, str], None] | None = None,
    ) -> None:
        assert unschedulable_s_max > 0, f"unschedulable_s_max is {unschedulable_s_max}, must be positive"
        self._clock = clock
        self._queue_sort = next(iter(profiles.values())).queue_sort  # validation requires the same in all profiles
        self._pre_enqueue_plugins = {name: profile.pre_enqueue for name, profile in profiles.items()}
        self._hint_map = QueueingHintMap(profiles, with_extenders=with_extenders)
        self._sub_queues = SubQueues(
            clock,
            KeyedHeap(self._queue_key),
            BackoffQueue(backoff_initial_s, backoff_max_s, self._queue_key),
            UnschedulablePods(self._hint_map, unschedulable_s_max),
            InFlightPods(in_flight_events_max),
            on_incoming,
        )
        self._entries = self._sub_queues.entries
        self._unschedulable = self._sub_queues.unschedulable
        self._in_flight = self._sub_queues.in_flight

    # Event handlers

    def add(self, pod: PodInfo) -> None:
        """A pod without a node was created."""
        if pod.uid in self._entries:
            self.update(pod, pod, ())
        else:
            self._add(pod, TransitionCause.ADDED, _POD_ADD)

    def update(self, old: PodInfo, new: PodInfo, events: Sequence[ClusterEvent]) -> None:
        """A pod without a node was updated; `events` are the events of the update (UNSCHEDULABLE_POD)."""
        entry = self._entries.get(new.uid)
        if entry is None:
            self._add(new, TransitionCause.UPDATED, _POD_UPDATE)
        elif entry.state is QueueState.IN_FLIGHT:
            entry.updated_pod, entry.is_deleted = new, False
            self._record_own_events(entry, *(InFlightEvent(event, old, new) for event in events))
        else:
            self._sub_queues.update_pod(entry, new)
            if entry.state in UNSCHEDULABLE_STATES:
                self._move_on_own_update(entry, old, events)

    def delete(self, uid: str) -> bool:
        """A pod was deleted or bound. Returns whether it was in the queue."""
        entry = self._entries.get(uid)
        if entry is None:
            return False
        if entry.state is QueueState.IN_FLIGHT:
            entry.is_deleted = True
        else:
            self._sub_queues.transition(entry, QueueState.NOT_QUEUED, TransitionCause.DELETED)
        return True

    @property
    def has_pods_to_move(self) -> bool:
        """Whether there is a pod that an event could help: unschedulable, gated or in flight."""
        return bool(self._unschedulable or self._in_flight)

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: Any = None, new: Any = None, pre_check: Callable[[PodInfo], bool] | None = None
    ) -> int:
        """Queues the unschedulable pods that the event may help and that pass `pre_check`. Returns their number.

        The event is recorded for all in-flight pods; `pre_check` does not apply to them.
        """
        if not (self._unschedulable or self._in_flight) or not self._hint_map.is_event_of_interest(event):
            return 0
        found = self._unschedulable.pods_to_move(event, old, new, pre_check) if len(self._unschedulable) else ()
        for entry, strategy in found:
            self._move_to_active_or_backoff(entry, strategy, TransitionCause.EVENT, event.label)
        if len(self._in_flight):
            self._in_flight.record(InFlightEvent(event, old, new))
        return len(found)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """A plugin requests an attempt for these pods now. In-flight pods are retried if they are requeued."""
        for pod in pods:
            entry = self._entries.get(pod.uid)
            if entry is None:
                continue
            cause, label = TransitionCause.ACTIVATED, FORCE_ACTIVATE.label
            if entry.state is QueueState.IN_FLIGHT:
                self._record_own_events(entry, InFlightEvent(FORCE_ACTIVATE, None, None))
            elif entry.state in UNSCHEDULABLE_STATES:
                self._move_to_active_or_backoff(entry, QueueingStrategy.IMMEDIATELY, cause, label)
            elif entry.state in BACKOFF_STATES:
                self._sub_queues.transition(entry, QueueState.ACTIVE, cause, label)

    # Scheduling loop

    def pop(self) -> QueuedPod | None:
        """Takes the next pod, which is in flight then; None if no pod is ready."""
        self.flush()
        if (first := self._sub_queues.active.peek()) is not None:
            cause, label = TransitionCause.POPPED, ""
        elif (first := self._sub_queues.backoff.rejected.peek()) is not None:
            cause, label = TransitionCause.POPPED_FROM_BACKOFF, EventLabel.POP_FROM_BACKOFF
        else:
            return None
        entry = first[1]
        entry.attempts += 1
        entry.popped_pod = entry.pod
        self._sub_queues.transition(entry, QueueState.IN_FLIGHT, cause, label)
        return entry

    async def wait_until_ready(self) -> None:
        """Returns when `pop` has a pod."""
        sub_queues = self._sub_queues
        while True:
            self.flush()
            if sub_queues.has_ready_pod:
                return
            sub_queues.changed.clear()
            timer = None
            if sub_queues.deadline_s < math.inf:
                delay_s = max(0.0, sub_queues.deadline_s - self._clock.now_s())
                timer = asyncio.get_running_loop().call_later(delay_s, sub_queues.changed.set)
            try:
                await sub_queues.changed.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    def done(self, uid: str) -> None:
        """The attempt succeeded, or the pod needs no attempt. `requeue` is still allowed, if the binding fails."""
        entry = self._entries.get(uid)
        if entry is not None and entry.state is QueueState.IN_FLIGHT:
            cause = TransitionCause.DELETED if entry.is_deleted else TransitionCause.DONE
            self._sub_queues.transition(entry, QueueState.NOT_QUEUED, cause)

    def requeue(
        self,
        entry: QueuedPod,
        unschedulable_plugins: frozenset[str] = NO_PLUGINS,
        pending_plugins: frozenset[str] = NO_PLUGINS,
        *,
        is_error: bool = False,
    ) -> QueueState:
        """The attempt failed: the plugins rejected the pod, or, without plugins, it ended with an error."""
        uid = entry.pod.uid
        known = self._entries.get(uid)
        if known is not None and (known is not entry or entry.state is not QueueState.IN_FLIGHT):
            logger.error(
                "pod %s cannot be requeued, it is in the queue: %s",
                entry.pod.key,
                known,
                extra=fields(pod=entry.pod.key),
            )
            return known.state
        if entry.is_deleted:
            self.done(uid)
            return QueueState.NOT_QUEUED
        if is_error:
            unschedulable_plugins = pending_plugins = NO_PLUGINS
        self._record_attempt(entry, unschedulable_plugins, pending_plugins)
        strategy = self._strategy_after_attempt(entry)
        entry.own_events.clear()
        label = EventLabel.ATTEMPT_FAILURE
        if strategy is QueueingStrategy.SKIP:
            return self._sub_queues.transition(entry, QueueState.UNSCHEDULABLE, TransitionCause.REJECTED, label)
        cause = TransitionCause.EVENT_IN_FLIGHT if entry.was_rejected else TransitionCause.FAILED
        return self._move_to_active_or_backoff(entry, strategy, cause, label)

    # Timers

    def flush(self) -> None:
        """Moves pods whose backoff or unschedulable timeout is over. `pop` and `wait_until_ready` call it."""
        now_s = self._clock.now_s()
        if now_s < self._sub_queues.deadline_s:
            return
        while (entry := self._sub_queues.backoff.first_completed(now_s)) is not None:
            cause, label = TransitionCause.BACKOFF_COMPLETE, EventLabel.BACKOFF_COMPLETE
            self._sub_queues.transition(entry, QueueState.ACTIVE, cause, label)
        self._flush_leftover(now_s)
        self._sub_queues.update_deadline()

    def _flush_leftover(self, now_s: float) -> None:
        has_leftover = False
        while (entry := self._unschedulable.first_leftover(now_s)) is not None:
            has_leftover = entry.was_flushed = True
            entry.flushed_s = now_s
            cause, label = TransitionCause.UNSCHEDULABLE_TIMEOUT, UNSCHEDULABLE_TIMEOUT.label
            self._move_to_active_or_backoff(entry, QueueingStrategy.AFTER_BACKOFF, cause, label)
        if has_leftover:
            self._in_flight.record(InFlightEvent(UNSCHEDULABLE_TIMEOUT, None, None))

    # Read access

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> QueuedPod | None:
        return self._entries.get(uid)

    def entries(self) -> Iterable[QueuedPod]:
        """All pods, in insertion order."""
        return self._entries.values()

    def next_entries(self, count: int) -> list[QueuedPod]:
        """The first pods of activeQ. O(pods)."""
        return self._sub_queues.active.first(count)

    def statistics(self) -> QueueStatistics:
        return self._sub_queues.statistics()

    def unschedulable_counts(self) -> dict[tuple[str, str], int]:
        """Number of rejected pods by (plugin, profile), as in the metric `unschedulable_pods`."""
        counts: dict[tuple[str, str], int] = {}
        for entry in self._entries.values():
            if entry.state is not QueueState.IN_FLIGHT:
                for plugin in sorted(entry.unschedulable_plugins | entry.pending_plugins):
                    key = (plugin, entry.scheduler_name)
                    counts[key] = counts.get(key, 0) + 1
        return counts

    def in_flight_events(self) -> dict[str, int]:
        """Number of in-flight pods and of stored events, by label, as in the metric `inflight_events`."""
        counts = {POD_POPPED: len(self._in_flight)} if len(self._in_flight) else {}
        own_events = (event for entry in self._entries.values() for event in entry.own_events)
        for event, _, _ in chain(self._in_flight.events(), own_events):
            counts[event.label] = counts.get(event.label, 0) + 1
        return counts

    def awaited_events(self, entry: QueuedPod) -> tuple[str, ...]:
        """The labels of the events that may requeue a rejected pod."""
        plugins = entry.unschedulable_plugins | entry.pending_plugins
        return self._hint_map.labels(entry.scheduler_name, plugins) if plugins else ()

    def status(self, uid: str) -> QueuedPodStatus | None:
        """The state of a pod, and why; None if the pod is not in the queue."""
        entry = self._entries.get(uid)
        return None if entry is None else self._sub_queues.status(entry)

    def check(self) -> None:
        """Asserts the invariants. O(pods)."""
        self._sub_queues.check()

    # Decisions

    def _add(self, pod: PodInfo, cause: TransitionCause, label: str) -> None:
        entry = QueuedPod(pod, self._clock.now_s())
        assert entry.scheduler_name in self._pre_enqueue_plugins, f"no profile {entry.scheduler_name} for {pod}"
        self._move_to_active_or_backoff(entry, QueueingStrategy.IMMEDIATELY, cause, label)

    def _move_to_active_or_backoff(
        self, entry: QueuedPod, strategy: QueueingStrategy, cause: TransitionCause, label: str
    ) -> QueueState:
        """Moves the pod to activeQ, to backoffQ if its backoff is not over, or gates it."""
        if not self._run_pre_enqueue_plugins(entry):
            entry.was_flushed = False
            return self._sub_queues.transition(entry, QueueState.GATED, cause, label)
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._clock.now_s() < backoff_end_s(entry):
            return self._sub_queues.transition(entry, backoff_state(entry), cause, label)
        return self._sub_queues.transition(entry, QueueState.ACTIVE, cause, label)

    def _run_pre_enqueue_plugins(self, entry: QueuedPod) -> bool:
        """Whether all PreEnqueue plugins admit the pod. Otherwise sets its gating plugin."""
        plugins: Sequence[PreEnqueue] = self._pre_enqueue_plugins[entry.scheduler_name]
        last = entry.gating_plugin
        if last is not None:
            plugins = sorted(plugins, key=lambda plugin: plugin.name != last)  # stable: keeps the order of the others
        for plugin in plugins:
            if _is_rejected(plugin, entry.pod):
                entry.gating_plugin = plugin.name
                if plugin.name not in entry.unschedulable_plugins:
                    entry.unschedulable_plugins = entry.unschedulable_plugins | {plugin.name}
                return False
        entry.gating_plugin = None
        return True

    def _move_on_own_update(self, entry: QueuedPod, old: PodInfo, events: Sequence[ClusterEvent]) -> None:
        for event in events:
            # All rejecting plugins check the pod's own update, whether or not the gating plugin registered it.
            group = self._unschedulable.group(entry, None)
            strategy = group.strategy(entry.pod, event, old, entry.pod)
            if strategy is QueueingStrategy.SKIP:
                continue
            state = self._move_to_active_or_backoff(entry, strategy, TransitionCause.UPDATED, event.label)
            if state not in UNSCHEDULABLE_STATES:
                return

    def _record_own_events(self, entry: QueuedPod, *events: InFlightEvent) -> None:
        entry.own_events.extend(events)
        if len(entry.own_events) > OWN_EVENTS_MAX:
            entry.own_events = [InFlightEvent(FORCE_ACTIVATE, None, None)]

    def _record_attempt(
        self, entry: QueuedPod, unschedulable_plugins: frozenset[str], pending_plugins: frozenset[str]
    ) -> None:
        if entry.updated_pod is not None and entry.pod is entry.popped_pod:  # otherwise the caller set a newer record
            entry.pod = entry.updated_pod
        entry.updated_pod = None
        entry.unschedulable_plugins, entry.pending_plugins = unschedulable_plugins, pending_plugins
        entry.gating_plugin = None
        if entry.was_rejected:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
        else:
            entry.consecutive_errors += 1
        entry.queued_s = self._clock.now_s()
        entry.was_flushed = False
        self._sub_queues.backoff.set_window(entry)

    def _strategy_after_attempt(self, entry: QueuedPod) -> QueueingStrategy:
        """Replays the events of the attempt, and returns the best strategy."""
        if not entry.was_rejected:
            return QueueingStrategy.AFTER_BACKOFF
        events = self._in_flight.events_since_pop(entry.pod.uid)
        if events is None:
            return QueueingStrategy.AFTER_BACKOFF
        best = QueueingStrategy.SKIP
        limit = QueueingStrategy.IMMEDIATELY if entry.pending_plugins else QueueingStrategy.AFTER_BACKOFF
        group = self._unschedulable.group(entry, None)
        for event, old, new in chain(events, entry.own_events):
            best = max(best, group.strategy(entry.pod, event, old, new))
            if best is limit:
                break
        return best

    def _queue_key(self, entry: QueuedPod) -> QueueKey:
        try:
            return self._queue_sort.queue_key(entry.pod, entry.queued_s)
        except Exception:
            name, pod = self._queue_sort.name, entry.pod.key
            logger.exception(
                "QueueSort plugin %s failed for pod %s, which is sorted last",
                name,
                pod,
                extra=fields(pod=pod, plugin=name),
            )
            return (math.inf,)


def _is_rejected(plugin: PreEnqueue, pod: PodInfo) -> bool:
    try:
        status = plugin.pre_enqueue(pod)
    except Exception:
        logger.exception(
            "PreEnqueue plugin %s failed for pod %s, which is gated",
            plugin.name,
            pod.key,
            extra=fields(pod=pod.key, plugin=plugin.name),
        )
        return True
    if status is not None and status.code is Code.ERROR:
        about = fields(pod=pod.key, plugin=plugin.name, reason=status.message)
        logger.error("PreEnqueue plugin %s failed for pod %s: %s", plugin.name, pod.key, status.message, extra=about)
    elif status is not None and logger.isEnabledFor(ATTEMPTS):
        about = fields(pod=pod.key, plugin=plugin.name, reason=status.message)
        logger.log(ATTEMPTS, "pod %s is gated by %s: %s", pod.key, plugin.name, status.message, extra=about)
    return status is not None
