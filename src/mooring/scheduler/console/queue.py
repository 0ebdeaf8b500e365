"""The queue of the console: a window of all pods that wait, filtered and sorted.

1. Rows are those of /debug/queue, with the reason of the last attempt. A pod that waits for Permit has that state.
2. An order of all pods is used again for a while (`reuse`). The rows of a window are always as of now; a pod that has
   left since is marked.
3. A window has at most `WINDOW_MAX` rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.binding.cycle import Binding
from mooring.scheduler.console.nodes import Document
from mooring.scheduler.console.reuse import Reused
from mooring.scheduler.pages import BINDING, binding_row, queue_counts, queued_pod_row, wall_time
from mooring.scheduler.queue.queued_pod import BACKOFF_STATES, QueuedPod, QueueState
from mooring.scheduler.queue.sub_queues import backoff_end_s
from mooring.scheduler.reporting.decision_records import BOUND, DecisionRecord
from mooring.scheduler.scheduler import Scheduler

WINDOW_MAX = 500
"""Maximum number of rows in one answer."""
ORDERS_MAX = 8
"""Number of orders that are held: pages with other filters or other columns to sort by."""

WAITING = "waiting for Permit"
LEFT = "left the queue"
_STATE_TEXTS = {state: state.text for state in QueueState} | {QueueState.ERROR_BACKOFF: QueueState.BACKOFF.text}

Waiter: TypeAlias = QueuedPod | Binding
Records: TypeAlias = Mapping[str, DecisionRecord]
"""The latest decision about each pod, by uid."""


class QueueWindows:
    """Answers requests for parts of the queue."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._orders = Reused[list[Waiter]](clock, ORDERS_MAX)
        """By filter, state, column and direction."""
        self._sort_keys: dict[str, Callable[[Waiter, Records], Any]] = {
            "pod": lambda waiter, _: waiter.pod.key,
            "state": lambda waiter, _: self._state(waiter),
            "waits": lambda waiter, _: -waits_since_s(waiter),
            "attempts": lambda waiter, _: (waiter.entry if isinstance(waiter, Binding) else waiter).attempts,
            "priority": lambda waiter, _: waiter.pod.priority,
            "next": lambda waiter, _: _next_attempt(waiter),
            "reason": lambda waiter, records: reason_of(waiter, records.get(waiter.pod.uid)),
            "helps": lambda waiter, _: (
                " ".join(sorted(waiter.unschedulable_plugins)) if isinstance(waiter, QueuedPod) else ""
            ),
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns by which rows can be sorted."""
        return tuple(self._sort_keys)

    def window(
        self,
        text: str,
        state: str,
        records: Records,
        *,
        offset: int,
        limit: int,
        sort: str,
        descending: bool,
    ) -> Document:
        """Rows from `offset` on of the pods whose keys contain the text, in the given state or any."""
        order = self._order(text, state, records, sort, descending)
        shown = order[offset : offset + min(limit, WINDOW_MAX)]
        return {
            "counts": self.counts(),
            "total": len(order),
            "offset": offset,
            "limit": WINDOW_MAX,
            "now": format_rfc3339_micro(self._clock.wall_s()),
            "pods": [self._row(waiter, records) for waiter in shown],
        }

    def counts(self) -> dict[str, int]:
        """Number of pods by state."""
        scheduler = self._scheduler
        counts = queue_counts(scheduler.queue, scheduler.bindings.running)
        waiting, in_flight = 0, 0
        for waiting_pod in scheduler.waiting_pods:
            waiting += 1
            in_flight += scheduler.queue.get(waiting_pod.pod.uid) is not None
        counts["inFlight"] -= in_flight
        counts["binding"] -= waiting - in_flight
        return counts | {"waitingForPermit": waiting}

    def _order(self, text: str, state: str, records: Records, sort: str, descending: bool) -> list[Waiter]:
        def compute() -> list[Waiter]:
            order = self._waiters(text, state)
            sort_key = self._sort_keys.get(sort)
            if sort_key is not None:
                order.sort(key=lambda waiter: sort_key(waiter, records), reverse=descending)
            elif descending:
                order.reverse()
            return order

        return self._orders.get((text, state, sort, descending), compute)

    def _waiters(self, text: str, state: str) -> list[Waiter]:
        """All pods that wait, in the order of arrival; those that have left the queue and are being bound come last."""
        queue = self._scheduler.queue
        found: list[Waiter] = list(queue.entries())
        found += [waiter for uid, waiter in self._scheduler.bindings.running.items() if queue.get(uid) is None]
        if text:
            found = [waiter for waiter in found if text in waiter.pod.key]
        return [waiter for waiter in found if self._state(waiter) == state] if state else found

    def _state(self, waiter: Waiter) -> str:
        if self._scheduler.waiting_pods.get(waiter.pod.uid) is not None:
            return WAITING
        if isinstance(waiter, Binding):
            return BINDING
        return _STATE_TEXTS[waiter.state]

    def _row(self, waiter: Waiter, records: Records) -> Document:
        scheduler, clock = self._scheduler, self._clock
        uid, bindings = waiter.pod.uid, scheduler.bindings.running
        if isinstance(waiter, Binding) and uid in bindings:
            row = binding_row(waiter, scheduler.waiting_pods, clock)
        elif isinstance(waiter, QueuedPod) and scheduler.queue.get(uid) is waiter:
            row = queued_pod_row(scheduler.queue, waiter, bindings.get(uid), scheduler.waiting_pods, clock)
        else:
            return {"pod": waiter.pod.key, "uid": uid, "state": LEFT}
        row |= {"state": self._state(waiter), "waitsSince": wall_time(waits_since_s(waiter), clock)}
        record = records.get(uid)
        if record is not None and record.node is None:
            row["reason"] = record.message or record.error
        return row


def waits_since_s(waiter: Waiter) -> float:
    """When the pod first became active. A pod that is gated since its creation waits since it was queued."""
    entry = waiter.entry if isinstance(waiter, Binding) else waiter
    return entry.first_attempt_s if entry.first_attempt_s is not None else entry.queued_s


def _next_attempt(waiter: Waiter) -> tuple[int, float]:
    """A key that sorts pods by their next attempt: those that are tried now, in backoff, and waiting for an event."""
    if isinstance(waiter, Binding) or waiter.state in (QueueState.ACTIVE, QueueState.IN_FLIGHT):
        return (0, 0.0)
    return (1, backoff_end_s(waiter)) if waiter.state in BACKOFF_STATES else (2, waiter.since_s)


NO_ATTEMPT = "not tried yet"


def reason_of(waiter: Waiter, record: DecisionRecord | None) -> str:
    """Why a pod waits: the reason of the most nodes in its last attempt, or the plugins that reject it."""
    if isinstance(waiter, Binding):
        return BINDING
    if waiter.state is QueueState.GATED:
        return f"gated by {waiter.gating_plugin}"
    if record is not None and record.node is not None and record.binding not in ("", BOUND):
        return record.binding
    if record is not None and record.node is None and record.rejections:
        largest = max(record.rejections, key=lambda rejection: rejection.nodes)
        return largest.reason or largest.plugin
    if waiter.was_rejected:
        return f"rejected by {', '.join(sorted(waiter.unschedulable_plugins | waiter.pending_plugins))}"
    return "failed, see its attempts" if record is not None and record.error else NO_ATTEMPT
