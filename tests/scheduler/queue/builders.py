"""A queue for tests: pods have names, plugins return what the test sets, and time is virtual.

harness = QueueHarness(rejecting_plugin("Fit", ClusterEventWithHint(EventResource.NODE, ActionType.ADD)))
harness.make_unschedulable("p", by="Fit")
harness.move_all(NODE_ADD)
assert harness.state("p") is QueueState.BACKOFF

The harness checks all invariants of the queue after every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mooring.api.views.pod import Pod
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.pods import PodInfo, PodSignature, signature_key
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from mooring.scheduler.framework.plugin import Filter, Plugin, PreEnqueue, QueueSort, Skip
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Status
from mooring.scheduler.plugins.priority_sort import PrioritySort
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod, QueueState
from tests.builders import pod as pod_view

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
CLAIM_ADD = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
POD_LABEL = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
GATES_GONE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)

_signatures: dict[bytes, PodSignature] = {}


def record(view: Pod) -> PodInfo:
    """A record as the cache makes it: equal pods share their signature."""
    key = signature_key(view)
    return PodInfo(view, _signatures.setdefault(key, PodSignature(key, view)))


class RejectingPlugin(Filter[None]):
    """A plugin that can reject pods."""

    def __init__(self, events: Sequence[ClusterEventWithHint]) -> None:
        self._events = events

    def pre_filter(self, pod: PodInfo) -> Skip:
        raise AssertionError("not called in these tests")

    def filter(self, state: None, rows: Rows) -> Int64s:
        raise AssertionError("not called in these tests")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self._events


class GatingPlugin(PreEnqueue):
    """Rejects every pod while it is closed, except those in `admitted`."""

    def __init__(self, events: Sequence[ClusterEventWithHint]) -> None:
        self._events = events
        self.is_closed = False
        self.admitted: set[str] = set()
        self.opens_after = 1_000_000
        self.called_for: list[str] = []
        self.error: Exception | None = None

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self.called_for.append(pod.name)
        if self.error is not None:
            raise self.error
        if len(self.called_for) >= self.opens_after:
            self.is_closed = False
        return Status.unresolvable("the gate is closed") if self.is_closed and pod.name not in self.admitted else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self._events


def rejecting_plugin(name: str, *events: ClusterEventWithHint) -> RejectingPlugin:
    plugin = type(name, (RejectingPlugin,), {"name": name})(events)
    assert isinstance(plugin, RejectingPlugin)
    return plugin


def gate(name: str = "Gate", *events: ClusterEventWithHint, is_closed: bool = False) -> GatingPlugin:
    plugin = type(name, (GatingPlugin,), {"name": name})(events)
    assert isinstance(plugin, GatingPlugin)
    plugin.is_closed = is_closed
    return plugin


class RecordingHint:
    """A hint that returns a given result or raises it, and records its calls."""

    def __init__(self, result: bool | Exception = True) -> None:
        self.result = result
        self.called_for: list[str] = []
        self.changes: list[tuple[Any, Any]] = []

    def __call__(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        self.called_for.append(pod.name)
        self.changes.append((old, new))
        if isinstance(self.result, Exception):
            raise self.result
        return queue_if(self.result)


def profile(*plugins: Plugin, scheduler_name: str = "default-scheduler", sort: QueueSort | None = None) -> Profile:
    queue_sort = sort or PrioritySort()
    return Profile(
        scheduler_name=scheduler_name,
        plugins={plugin.name: plugin for plugin in (*plugins, queue_sort)},
        pre_enqueue=tuple(plugin for plugin in plugins if isinstance(plugin, PreEnqueue)),
        queue_sort=queue_sort,
        pre_filters=(),
        filters=(),
        post_filters=(),
        scores=(),
        reserves=(),
        permits=(),
        pre_binds=(),
        binds=(),
        post_binds=(),
    )


class QueueHarness:
    """A queue, its clock, and its pods by name."""

    def __init__(self, *plugins: Plugin, profiles: Iterable[Profile] = (), **options: Any) -> None:
        self.clock = VirtualClock()
        self.incoming: list[tuple[str, str]] = []
        served = {one.scheduler_name: one for one in (profiles or (profile(*plugins),))}
        self.queue = SchedulingQueue(
            served, clock=self.clock, on_incoming=lambda queue, label: self.incoming.append((queue, label)), **options
        )
        self.in_flight: dict[str, QueuedPod] = {}
        self._plugins = plugins

    @property
    def gate(self) -> GatingPlugin:
        return next(plugin for plugin in self._plugins if isinstance(plugin, GatingPlugin))

    def add(self, *names: str, **what: Any) -> None:
        for name in names:
            self.queue.add(self.pod(name, **what))
            self.queue.check()

    def pod(self, name: str, **what: Any) -> PodInfo:
        return record(pod_view(name, uid=name, **what))

    def pop(self) -> str | None:
        entry = self.queue.pop()
        self.queue.check()
        if entry is None:
            return None
        self.in_flight[entry.pod.name] = entry
        return entry.pod.name

    def pop_all(self) -> list[str]:
        names = []
        while (name := self.pop()) is not None:
            names.append(name)
        return names

    def reject(self, name: str, by: str | Iterable[str] = "Fit", pending: Iterable[str] = ()) -> QueueState:
        plugins = frozenset((by,) if isinstance(by, str) else by)
        state = self.queue.requeue(self.in_flight.pop(name), plugins, frozenset(pending))
        self.queue.check()
        return state

    def fail(self, name: str) -> QueueState:
        state = self.queue.requeue(self.in_flight.pop(name), is_error=True)
        self.queue.check()
        return state

    def make_unschedulable(
        self, *names: str, by: str | Iterable[str] = "Fit", pending: Iterable[str] = (), **what: Any
    ) -> None:
        """Adds pods, pops them and rejects them."""
        for name in names:
            self.add(name, **what)
            while self.pop() != name:
                pass
            assert self.reject(name, by, pending) is QueueState.UNSCHEDULABLE

    def move_all(self, event: ClusterEvent, old: Any = None, new: Any = None) -> int:
        moved = self.queue.move_all_to_active_or_backoff(event, old, new)
        self.queue.check()
        return moved

    def update(self, name: str, *events: ClusterEvent, **what: Any) -> None:
        entry = self.queue.get(name)
        old = entry.pod if entry is not None else self.pod(name)
        self.queue.update(old, self.pod(name, **what), events)
        self.queue.check()

    def wait_s(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now_s() + seconds)
        self.queue.flush()
        self.queue.check()

    def state(self, name: str) -> QueueState:
        entry = self.queue.get(name)
        return QueueState.NOT_QUEUED if entry is None else entry.state

    def entry(self, name: str) -> QueuedPod:
        entry = self.queue.get(name)
        assert entry is not None, f"{name} is not in the queue"
        return entry

    def counted(self) -> list[tuple[str, str]]:
        """The increments of `queue_incoming_pods_total`: (queue, event)."""
        return self.incoming
