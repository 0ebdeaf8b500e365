"""Whatever happens in whatever order, the queue does what a plain one does: nobody lost, nobody twice, nobody stranded.

The plain queue (`plain_queue`) asks everybody about everything. After every step both must agree on where every pod is;
so an event that can help is never slept through, neither asleep nor in flight, and a backoff is kept.
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
from tests.scheduler.queue.plain_queue import ASLEEP_S_MAX, IN_FLIGHT, PlainQueue

NAMES = tuple(f"p{number}" for number in range(6))
APPS = ("web", "db")
REJECTORS = ("Nodes", "Claims", "Own", "Deaf")

names = st.sampled_from(NAMES)
apps = st.sampled_from(APPS)
some_rejectors = st.sets(st.sampled_from(REJECTORS), max_size=3)


def is_meant_for(pod: PodInfo, old: object, new: object) -> QueueingHint:
    return queue_if(pod.name == new)


def is_for_app(pod: PodInfo, old: object, new: object) -> QueueingHint:
    return queue_if(pod.signature.labels["app"] == new)


def is_itself(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return queue_if(pod.uid == new.uid)


class QueueMachine(RuleBasedStateMachine):
    queue: SchedulingQueue
    plain: PlainQueue
    the_gate: GatingPlugin

    @initialize(run_pre_enqueue=st.sets(names), is_pending_used=st.booleans())
    def open(self, run_pre_enqueue: set[str], is_pending_used: bool) -> None:
        self.clock = VirtualClock()
        self.plain = PlainQueue()
        self.plain.run_pre_enqueue = set(NAMES) if is_pending_used else set(run_pre_enqueue)
        self.the_gate = gate(
            "Gate", ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_LABEL), is_closed=True
        )
        self.the_gate.admitted = self.plain.run_pre_enqueue
        plugins = (
            rejecting_plugin("Nodes", ClusterEventWithHint(EventResource.NODE, ActionType.ADD, is_meant_for)),
            rejecting_plugin(
                "Claims",
                ClusterEventWithHint(
                    EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, is_for_app, per_signature=True
                ),
            ),
            rejecting_plugin(
                "Own", ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, is_itself)
            ),
            rejecting_plugin("Deaf"),
            self.the_gate,
        )
        served = {"default-scheduler": profile(*plugins)}
        self.queue = SchedulingQueue(served, clock=self.clock, unschedulable_s_max=ASLEEP_S_MAX)
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
    @rule(data=st.data(), unschedulable_plugins=some_rejectors, pending=some_rejectors)
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
    def a_node_comes(self, name: str) -> None:
        self._wake(NODE_ADD, name)

    @rule(app=apps)
    def a_claim_comes(self, app: str) -> None:
        self._wake(CLAIM_ADD, app)

    @rule(name=names)
    def the_gate_turns_for(self, name: str) -> None:
        self.plain.run_pre_enqueue ^= {name}
        self._wake(NODE_LABEL, None)

    def _wake(self, event: ClusterEvent, about: object) -> None:
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
        # Not beyond the next alarm: whoever waits wakes up there, and what happens meanwhile depends on it.
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
            self._nobody_is_stranded()

    def _nobody_is_stranded(self) -> None:
        """If all gates open and all in flight come back, everybody is popped within the longest sleep and backoff."""
        self.plain.run_pre_enqueue |= set(NAMES)
        for flying in self.in_flight.values():
            self.queue.requeue(flying, frozenset(("Deaf",)))
        waiting = {waiter.pod.name for waiter in self.queue.entries()}
        self.clock.advance_to(self.clock.now_s() + ASLEEP_S_MAX + 11)
        popped = set()
        while (entry := self.queue.pop()) is not None:
            popped.add(entry.pod.name)
        assert popped == waiting


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
