"""The queue equals a reference implementation for random sequences of operations.

The reference checks every pod at every event, without index and heap. After every step both must agree on the state of
every pod: no event that can help is missed, unschedulable or in flight, and backoffs are kept. At the end no pod is
stranded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod
from tests.builders import pod as pod_view
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    POD_LABEL,
    GatingPlugin,
    gate,
    profile,
    record,
    rejecting_plugin,
)

ACTIVE, BACKOFF, ERROR_BACKOFF, UNSCHEDULABLE, GATED, IN_FLIGHT = (
    "active",
    "backoff",
    "error backoff",
    "unschedulable",
    "gated",
    "in flight",
)
UNSCHEDULABLE_S_MAX = 30.0
SKIP, AFTER_BACKOFF, IMMEDIATELY = 0, 1, 2


@dataclass
class PlainPod:
    name: str
    priority: int
    app: str
    queued_s: float
    state: str = ""
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gated: bool = False
    flushed_s: float = -math.inf
    was_flushed: bool = False
    events: list[tuple[ClusterEvent, object]] = field(default_factory=list)
    updated_app: str | None = None
    is_deleted: bool = False

    @property
    def backoff_end_s(self) -> float:
        failures = self.errors or self.rejections
        return math.floor(self.queued_s + min(10.0, 2.0 ** (failures - 1))) + 1 if failures else -math.inf


class PlainQueue:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.pods: dict[str, PlainPod] = {}
        self.admitted: set[str] = set()

    def add(self, name: str, priority: int, app: str) -> None:
        pod = self.pods[name] = PlainPod(name, priority, app, self.now_s)
        self._move(pod, IMMEDIATELY)

    def update(self, name: str, app: str) -> None:
        pod = self.pods[name]
        if pod.state == IN_FLIGHT:
            pod.updated_app, pod.is_deleted = app, False
            pod.events.append((POD_LABEL, name))
            return
        pod.app = app
        if pod.state in (UNSCHEDULABLE, GATED) and (strategy := self._strategy(pod, POD_LABEL, name)):
            self._move(pod, strategy)

    def delete(self, name: str) -> None:
        if self.pods[name].state == IN_FLIGHT:
            self.pods[name].is_deleted = True
        else:
            del self.pods[name]

    def move_all(self, event: ClusterEvent, about: object) -> None:
        for pod in self.pods.values():
            if pod.state == IN_FLIGHT:
                pod.events.append((event, about))
                continue
            is_affected = pod.state == UNSCHEDULABLE or (pod.state == GATED and event == NODE_LABEL)
            if is_affected and (strategy := self._strategy(pod, event, about)):
                self._move(pod, strategy)

    def activate(self, name: str) -> None:
        pod = self.pods[name]
        if pod.state == IN_FLIGHT:
            pod.events.append((UNSCHEDULABLE_TIMEOUT, None))
        elif pod.state in (BACKOFF, ERROR_BACKOFF):
            pod.state = ACTIVE
        elif pod.state in (UNSCHEDULABLE, GATED):
            self._move(pod, IMMEDIATELY)

    def pop(self) -> str | None:
        self.flush()
        ready = sorted((pod for pod in self.pods.values() if pod.state == ACTIVE), key=lambda pod: -pod.priority)
        ready += sorted(
            (pod for pod in self.pods.values() if pod.state == BACKOFF),
            key=lambda pod: (pod.backoff_end_s, -pod.priority),
        )
        if not ready:
            return None
        ready[0].state = IN_FLIGHT
        ready[0].attempts += 1
        ready[0].events = []
        return ready[0].name

    def done(self, name: str) -> None:
        del self.pods[name]

    def requeue(self, name: str, unschedulable_plugins: set[str], pending: set[str]) -> None:
        pod = self.pods[name]
        if pod.is_deleted:
            del self.pods[name]
            return
        pod.app, pod.updated_app = pod.updated_app or pod.app, None
        pod.unschedulable_plugins, pod.pending_plugins, pod.gated = set(unschedulable_plugins), set(pending), False
        pod.was_flushed, pod.flushed_s, pod.queued_s = False, -math.inf, self.now_s
        if not unschedulable_plugins and not pending:
            pod.errors += 1
            self._move(pod, AFTER_BACKOFF)
            return
        pod.rejections += 1
        pod.errors = 0
        strategy = max((self._strategy(pod, event, about) for event, about in pod.events), default=SKIP)
        if strategy == SKIP:
            pod.state = UNSCHEDULABLE
        else:
            self._move(pod, strategy)

    def advance_to(self, now_s: float) -> None:
        self.now_s = now_s

    def flush(self) -> None:
        for pod in self.pods.values():
            if pod.state in (BACKOFF, ERROR_BACKOFF) and pod.backoff_end_s <= self.now_s:
                pod.state = ACTIVE
        leftover = [
            pod
            for pod in self.pods.values()
            if pod.state in (UNSCHEDULABLE, GATED)
            and self.now_s - max(pod.queued_s, pod.flushed_s) >= UNSCHEDULABLE_S_MAX
        ]
        for pod in leftover:
            pod.was_flushed, pod.flushed_s = True, self.now_s
            self._move(pod, AFTER_BACKOFF)
        if leftover:
            for pod in self.pods.values():
                if pod.state == IN_FLIGHT:
                    pod.events.append((UNSCHEDULABLE_TIMEOUT, None))

    def _move(self, pod: PlainPod, strategy: int) -> None:
        pod.gated = pod.name not in self.admitted
        if pod.gated:
            pod.unschedulable_plugins.add("Gate")
            pod.was_flushed = False
            pod.state = GATED
        elif strategy == AFTER_BACKOFF and self.now_s < pod.backoff_end_s:
            pod.state = BACKOFF if pod.unschedulable_plugins or pod.pending_plugins else ERROR_BACKOFF
        else:
            pod.state = ACTIVE

    def _strategy(self, pod: PlainPod, event: ClusterEvent, about: object) -> int:
        if event == UNSCHEDULABLE_TIMEOUT:
            return AFTER_BACKOFF
        queueing = {
            plugin
            for plugin, helps in {
                "Nodes": event == NODE_ADD and about == pod.name,
                "Claims": event == CLAIM_ADD and about == pod.app,
                "Own": event == POD_LABEL and about == pod.name,
                "Gate": event == NODE_LABEL,
            }.items()
            if helps
        }
        return (
            IMMEDIATELY
            if queueing & pod.pending_plugins
            else AFTER_BACKOFF
            if queueing & pod.unschedulable_plugins
            else SKIP
        )


NAMES = tuple(f"p{number}" for number in range(6))
APPS = ("web", "db")
PLUGINS = ("Nodes", "Claims", "Own", "Unregistered")

names = st.sampled_from(NAMES)
apps = st.sampled_from(APPS)
some_plugins = st.sets(st.sampled_from(PLUGINS), max_size=3)


def is_for_pod(pod: PodInfo, old: object, new: object) -> QueueingHint:
    return queue_if(pod.name == new)


def is_for_app(pod: PodInfo, old: object, new: object) -> QueueingHint:
    return queue_if(pod.signature.labels["app"] == new)


def is_own_update(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return queue_if(pod.uid == new.uid)


class QueueMachine(RuleBasedStateMachine):
    queue: SchedulingQueue
    plain: PlainQueue
    gating: GatingPlugin

    @initialize(admitted=st.sets(names), is_pending_used=st.booleans())
    def open(self, admitted: set[str], is_pending_used: bool) -> None:
        self.clock = VirtualClock()
        self.plain = PlainQueue()
        self.plain.admitted = set(NAMES) if is_pending_used else set(admitted)
        self.gating = gate(
            "Gate", ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_LABEL), is_closed=True
        )
        self.gating.admitted = self.plain.admitted
        plugins = (
            rejecting_plugin("Nodes", ClusterEventWithHint(EventResource.NODE, ActionType.ADD, is_for_pod)),
            rejecting_plugin(
                "Claims",
                ClusterEventWithHint(
                    EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, is_for_app, per_signature=True
                ),
            ),
            rejecting_plugin(
                "Own", ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, is_own_update)
            ),
            rejecting_plugin("Unregistered"),
            self.gating,
        )
        served = {"default-scheduler": profile(*plugins)}
        self.queue = SchedulingQueue(served, clock=self.clock, unschedulable_s_max=UNSCHEDULABLE_S_MAX)
        self.in_flight: dict[str, QueuedPod] = {}

    def record(self, name: str, app: str) -> PodInfo:
        return record(pod_view(name, uid=name, priority=NAMES.index(name), labels={"app": app}))

    @rule(name=names, app=apps)
    def add_or_update(self, name: str, app: str) -> None:
        if name in self.plain.pods:
            entry = self.queue.get(name)
            assert entry is not None
            self.queue.update(entry.pod, self.record(name, app), (POD_LABEL,))
            self.plain.update(name, app)
        else:
            self.queue.add(self.record(name, app))
            self.plain.add(name, NAMES.index(name), app)

    @rule(name=names)
    def delete(self, name: str) -> None:
        assert self.queue.delete(name) == (name in self.plain.pods)
        if name in self.plain.pods:
            self.plain.delete(name)

    @rule()
    def pop(self) -> None:
        entry = self.queue.pop()
        assert (None if entry is None else entry.pod.name) == self.plain.pop()
        if entry is not None:
            self.in_flight[entry.pod.name] = entry

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), unschedulable_plugins=some_plugins, pending=some_plugins)
    def requeue(self, data: st.DataObject, unschedulable_plugins: set[str], pending: set[str]) -> None:
        name = data.draw(st.sampled_from(sorted(self.in_flight)))
        self.queue.requeue(self.in_flight.pop(name), frozenset(unschedulable_plugins), frozenset(pending))
        self.plain.requeue(name, unschedulable_plugins, pending)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.in_flight)))
        del self.in_flight[name]
        self.queue.done(name)
        self.plain.done(name)

    @rule(name=names)
    def add_node(self, name: str) -> None:
        self._move_all(NODE_ADD, name)

    @rule(app=apps)
    def add_claim(self, app: str) -> None:
        self._move_all(CLAIM_ADD, app)

    @rule(name=names)
    def toggle_gate(self, name: str) -> None:
        self.plain.admitted ^= {name}
        self._move_all(NODE_LABEL, None)

    def _move_all(self, event: ClusterEvent, about: object) -> None:
        self.queue.move_all_to_active_or_backoff(event, None, about)
        self.plain.move_all(event, about)

    @rule(name=names)
    def activate(self, name: str) -> None:
        self.queue.activate([self.record(name, "web")])
        if name in self.plain.pods:
            self.plain.activate(name)

    @rule(quarters=st.sampled_from((1, 2, 3, 4, 8, 17, 40, 120)))
    def wait(self, quarters: int) -> None:
        now_s = self.clock.now_s() + quarters / 4
        # Not beyond the next deadline: a waiting task flushes the queue there.
        now_s = min(now_s, self.queue._sub_queues.deadline_s)
        self.clock.advance_to(now_s)
        self.plain.advance_to(now_s)
        self.queue.flush()
        self.plain.flush()

    @invariant()
    def both_agree(self) -> None:
        if not hasattr(self, "queue"):
            return
        self.queue.check()
        found = {entry.pod.name: self._seen(entry) for entry in self.queue.entries()}
        assert found == {
            name: (
                pod.state,
                pod.attempts,
                sorted(pod.unschedulable_plugins),
                sorted(pod.pending_plugins),
                pod.was_flushed,
            )
            for name, pod in self.plain.pods.items()
        }
        assert sorted(self.in_flight) == sorted(n for n, pod in self.plain.pods.items() if pod.state == IN_FLIGHT)

    def _seen(self, entry: QueuedPod) -> tuple[str, int, list[str], list[str], bool]:
        return (
            entry.state.text,
            entry.attempts,
            sorted(entry.unschedulable_plugins),
            sorted(entry.pending_plugins),
            entry.was_flushed,
        )

    def teardown(self) -> None:
        if hasattr(self, "queue"):
            self._check_no_pod_is_stranded()

    def _check_no_pod_is_stranded(self) -> None:
        """With open gates and requeued pods, every pod is popped within the longest timeout and backoff."""
        self.plain.admitted |= set(NAMES)
        for flying in self.in_flight.values():
            self.queue.requeue(flying, frozenset(("Unregistered",)))
        waiting = {waiter.pod.name for waiter in self.queue.entries()}
        self.clock.advance_to(self.clock.now_s() + UNSCHEDULABLE_S_MAX + 11)
        popped = set()
        while (entry := self.queue.pop()) is not None:
            popped.add(entry.pod.name)
        assert popped == waiting


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
