"""A reference implementation of the scheduling queue, without index and heap: every pod is checked at every event.

Pods are identified by name. Each has its own priority, so that the order of `pop` is unique.

The plugins: `Nodes` registers added nodes, and queues the pod that the node names; `Claims` registers added claims, and
queues pods by label (once per signature); `Own` registers updates of the pod itself; `Unregistered` registers nothing;
`Gate` registers node labels, and admits the pods of a set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mooring.scheduler.framework.events import UNSCHEDULABLE_TIMEOUT, ClusterEvent
from tests.scheduler.queue.builders import CLAIM_ADD, NODE_ADD, NODE_LABEL, POD_LABEL

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
