"""The scheduling queue as plainly as it can be said: no index, no heap, everybody is asked about everything.

It is what the real queue is compared with. Pods are told apart by name, and each has its own priority, so that the
order of popping is never left open.

The plugins of this little world: `Nodes` hears nodes that are added, and says yes to pods that the node is meant for;
`Claims` hears claims that are added, and says yes to a label (so it can be asked by shape); `Own` hears the pod's own
change; `Deaf` hears nothing. `Gate` hears labels of nodes, and lets in whom it lets in.
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
ASLEEP_S_MAX = 30.0
SLEEP, AFTER_BACKOFF, AT_ONCE = 0, 1, 2


@dataclass
class PlainPod:
    name: str
    priority: int
    app: str
    queued_s: float
    room: str = ""
    attempts: int = 0
    refusals: int = 0
    errors: int = 0
    rejectors: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gated: bool = False
    flushed_s: float = -math.inf
    was_flushed: bool = False
    told: list[tuple[ClusterEvent, object]] = field(default_factory=list)
    newer_app: str | None = None
    is_gone: bool = False

    @property
    def backoff_end_s(self) -> float:
        failures = self.errors or self.refusals
        return math.floor(self.queued_s + min(10.0, 2.0 ** (failures - 1))) + 1 if failures else -math.inf


class PlainQueue:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.pods: dict[str, PlainPod] = {}
        self.let_in: set[str] = set()

    def add(self, name: str, priority: int, app: str) -> None:
        pod = self.pods[name] = PlainPod(name, priority, app, self.now_s)
        self._try(pod, AT_ONCE)

    def update(self, name: str, app: str) -> None:
        pod = self.pods[name]
        if pod.room == IN_FLIGHT:
            pod.newer_app, pod.is_gone = app, False
            pod.told.append((POD_LABEL, name))
            return
        pod.app = app
        if pod.room in (UNSCHEDULABLE, GATED) and (verdict := self._verdict(pod, POD_LABEL, name)):
            self._try(pod, verdict)

    def delete(self, name: str) -> None:
        if self.pods[name].room == IN_FLIGHT:
            self.pods[name].is_gone = True
        else:
            del self.pods[name]

    def wake(self, event: ClusterEvent, about: object) -> None:
        for pod in self.pods.values():
            if pod.room == IN_FLIGHT:
                pod.told.append((event, about))
                continue
            is_listening = pod.room == UNSCHEDULABLE or (pod.room == GATED and event == NODE_LABEL)
            if is_listening and (verdict := self._verdict(pod, event, about)):
                self._try(pod, verdict)

    def activate(self, name: str) -> None:
        pod = self.pods[name]
        if pod.room == IN_FLIGHT:
            pod.told.append((UNSCHEDULABLE_TIMEOUT, None))
        elif pod.room in (BACKOFF, ERROR_BACKOFF):
            pod.room = ACTIVE
        elif pod.room in (UNSCHEDULABLE, GATED):
            self._try(pod, AT_ONCE)

    def pop(self) -> str | None:
        self.tick()
        ready = sorted((pod for pod in self.pods.values() if pod.room == ACTIVE), key=lambda pod: -pod.priority)
        ready += sorted(
            (pod for pod in self.pods.values() if pod.room == BACKOFF),
            key=lambda pod: (pod.backoff_end_s, -pod.priority),
        )
        if not ready:
            return None
        ready[0].room = IN_FLIGHT
        ready[0].attempts += 1
        ready[0].told = []
        return ready[0].name

    def done(self, name: str) -> None:
        del self.pods[name]

    def give_back(self, name: str, rejectors: set[str], pending: set[str]) -> None:
        pod = self.pods[name]
        if pod.is_gone:
            del self.pods[name]
            return
        pod.app, pod.newer_app = pod.newer_app or pod.app, None
        pod.rejectors, pod.pending, pod.gated = set(rejectors), set(pending), False
        pod.was_flushed, pod.flushed_s, pod.queued_s = False, -math.inf, self.now_s
        if not rejectors and not pending:
            pod.errors += 1
            self._try(pod, AFTER_BACKOFF)
            return
        pod.refusals += 1
        pod.errors = 0
        verdict = max((self._verdict(pod, event, about) for event, about in pod.told), default=SLEEP)
        if verdict == SLEEP:
            pod.room = UNSCHEDULABLE
        else:
            self._try(pod, verdict)

    def advance_to(self, now_s: float) -> None:
        self.now_s = now_s

    def tick(self) -> None:
        for pod in self.pods.values():
            if pod.room in (BACKOFF, ERROR_BACKOFF) and pod.backoff_end_s <= self.now_s:
                pod.room = ACTIVE
        overslept = [
            pod
            for pod in self.pods.values()
            if pod.room in (UNSCHEDULABLE, GATED) and self.now_s - max(pod.queued_s, pod.flushed_s) >= ASLEEP_S_MAX
        ]
        for pod in overslept:
            pod.was_flushed, pod.flushed_s = True, self.now_s
            self._try(pod, AFTER_BACKOFF)
        if overslept:
            for pod in self.pods.values():
                if pod.room == IN_FLIGHT:
                    pod.told.append((UNSCHEDULABLE_TIMEOUT, None))

    def _try(self, pod: PlainPod, verdict: int) -> None:
        pod.gated = pod.name not in self.let_in
        if pod.gated:
            pod.rejectors.add("Gate")
            pod.was_flushed = False
            pod.room = GATED
        elif verdict == AFTER_BACKOFF and self.now_s < pod.backoff_end_s:
            pod.room = BACKOFF if pod.rejectors or pod.pending else ERROR_BACKOFF
        else:
            pod.room = ACTIVE

    def _verdict(self, pod: PlainPod, event: ClusterEvent, about: object) -> int:
        if event == UNSCHEDULABLE_TIMEOUT:
            return AFTER_BACKOFF
        helpers = {
            plugin
            for plugin, helps in {
                "Nodes": event == NODE_ADD and about == pod.name,
                "Claims": event == CLAIM_ADD and about == pod.app,
                "Own": event == POD_LABEL and about == pod.name,
                "Gate": event == NODE_LABEL,
            }.items()
            if helps
        }
        return AT_ONCE if helpers & pod.pending else AFTER_BACKOFF if helpers & pod.rejectors else SLEEP
