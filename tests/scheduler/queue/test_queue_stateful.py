"""The queue equals a reference implementation for random sequences of operations.

The reference (`plain_queue`) checks every pod at every event. After every step both must agree on the state of every
pod: no event that can help is missed, unschedulable or in flight, and backoffs are kept. At the end no pod is stranded.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
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
from tests.scheduler.queue.plain_queue import IN_FLIGHT, UNSCHEDULABLE_S_MAX, PlainQueue

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
        deadline_s = self.queue.next_deadline_s()
        now_s = now_s if deadline_s is None else min(now_s, deadline_s)
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
            entry.state.words,
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
