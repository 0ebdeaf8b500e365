"""The worker: one pod on its node, from the first sight of it to its end.

Comes in   the pod, whenever the API tells it; what the runtime tells of its containers; alarms
Goes out   to the runtime: start, stop; to the outbox: "my status changed"

             admitted              all containers through, deleted, too late
    new ────────────────> running ───────────────────────────────────────────> stopping ──> over
     └── turned away, or over already ────────────────────────────────────────────────────────^

 1. What runs and why is decided by `plan`; what is told, by `statuses`. The worker only carries it out.
 2. A pod that is over never runs again. Its room on the node is free from that moment.
 3. A pod is deleted from the API only after its end has been written there, and only this very pod (by uid).
 4. Containers are stopped before the sidecars that serve them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mooring.api.document import Document
from mooring.api.resources import fit_filter_requests
from mooring.kit.clock import Clock, format_rfc3339, parse_rfc3339
from mooring.kubelet.container_record import Slot, containers_of, recall, slots_of
from mooring.kubelet.node_state import FleetNode
from mooring.kubelet.pod_actions import count_restart, never_ran, plan_of
from mooring.kubelet.pod_status import (
    FAILED,
    OVER,
    PodFacts,
    phase_of,
    rejected_status,
    revision_number,
    stamp_conditions,
    status_of,
)
from mooring.kubelet.resize import Resizing
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Runtime, Waiting
from mooring.kubelet.timers import Alarms
from mooring.kubelet.views import KubeletPod

DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
GRACE_S = 30.0
UNKNOWN_END = Exited(
    137, 0.0, 0.0, "ContainerStatusUnknown", "The container could not be located when the pod was terminated"
)
_BEFORE_SANDBOX = ("ContainerCreating", "PodInitializing")


class Step(Enum):
    """How far a pod has come."""

    RUNNING = "running"
    STOPPING = "stopping"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Services:
    """What every worker of a fleet uses."""

    runtime: Runtime
    clock: Clock
    alarms: Alarms
    tell_changed: Callable[[str], None]
    """The status of the pod with that uid is another now."""
    tell_event: Callable[[KubeletPod, bool, str, str], None]
    """Something happened to a pod: is it a warning, its reason and message."""
    tell_released: Callable[[FleetNode], None]
    """There is more room on a node."""


class PodWorker:
    """One pod."""

    def __init__(self, pod: KubeletPod, node: FleetNode, services: Services) -> None:
        self.pod = pod
        self.node = node
        self.uid = pod.metadata.uid
        self.step = Step.RUNNING
        self.written = b""
        """The status that was written last, at `written_revision`. As JSON: as dictionaries, those of 10,000 pods would
        keep the garbage collector busy."""
        self.written_revision = 0
        self.is_let_go = False
        """Whether the API was told that it can let go of the pod; others (finalizers) may still hold it there."""
        self._services = services
        self._slots = slots_of(pod.spec)
        self._resizing = Resizing(services.runtime, services.tell_event)
        self._address = ""
        self._start_time = ""
        self._phase = pod.status.phase or "Pending"
        self._why = ("", "")
        self._is_rejected = False
        self._asked_to_stop: frozenset[str] = frozenset()
        self._ends_s = 0.0
        self._is_looking = False
        self._is_look_wanted = False
        self._transitions = {
            condition.type: (condition.status, condition.last_transition_time or "")
            for condition in pod.status.conditions
        }

    # --------------------------------------------------------------------------------------- what the API says

    def begin(self) -> None:
        """The pod is seen for the first time."""
        pod, now_s = self.pod, self._services.clock.wall_s()
        self._start_time = pod.status.start_time or format_rfc3339(now_s)
        if pod.status.phase in OVER:
            self._why = (pod.status.reason, pod.status.message)
            self.step = Step.OVER
            self._tell_if_to_be_deleted()
            return
        requests = fit_filter_requests(pod)
        refusal = self.node.refusal(pod, requests) if not pod.status.start_time else None
        if refusal is not None:
            self._reject(refusal.reason, refusal.message)
            return
        self.node.take(pod, requests)
        self._resizing.grant(pod)
        self._address = self.node.host_ip if self._shares_host else pod.status.pod_ip or self.node.new_address()
        self._take_over()
        if not self._ends(pod):
            self.sync()
            if pod.status.start_time:
                # Somebody may have said otherwise while nobody was here; and only who has written sees what comes.
                self._services.tell_changed(self.uid)

    @property
    def _shares_host(self) -> bool:
        """Whether it has no network of its own."""
        return self.pod.spec.host_network or self._services.runtime.is_real

    def update(self, pod: KubeletPod) -> None:
        """The pod as the API tells it now."""
        before, self.pod = self.pod, pod
        if self.step is Step.OVER:
            self._tell_if_to_be_deleted()
            return
        if self._ends(pod):
            return
        if pod.metadata.generation != before.metadata.generation:
            self._adjust()
            self._services.tell_changed(self.uid)
            self.sync()
        elif self._is_told_otherwise():
            self._services.tell_changed(self.uid)

    def _ends(self, pod: KubeletPod) -> bool:
        """Whether the API wants it to end, or takes it for ended; then it is being stopped."""
        if pod.metadata.deletion_timestamp is not None:
            self._terminate(float(pod.metadata.deletion_grace_period_seconds or 0))
            return True
        if pod.status.phase in OVER:
            # Somebody else says that it is over, and that is never taken back.
            self._why = (pod.status.reason, pod.status.message)
            self._terminate(GRACE_S)
            return True
        return False

    def vanish(self) -> None:
        """The API has it no more."""
        self._leave_node()
        self.step = Step.OVER
        self._services.runtime.forget(self.uid)
        self._services.alarms.cancel(("worker", self.uid))

    def container_changed(self, name: str, attempt: int, state: ContainerState) -> None:
        """The runtime tells of a container."""
        slot = self._slots.get(name)
        if slot is None or attempt != slot.attempt or self.step is Step.OVER:
            return
        if isinstance(slot.state, Exited):
            slot.last = slot.state
        if slot.is_starting and isinstance(state, Running):
            self._services.tell_event(self.pod, False, "Started", "Container started")
        slot.state, slot.is_starting = state, False
        slot.hold = never_ran(slot, self.pod) if isinstance(state, Exited) else None
        self._services.tell_changed(self.uid)
        if not self._is_what_is_wanted(slot):
            self.sync()

    def _is_what_is_wanted(self, slot: Slot) -> bool:
        """Whether a container has come up for which nobody waits: nothing follows from that."""
        is_up = slot.role is Role.CONTAINER and slot.is_running
        return is_up and self.step is Step.RUNNING and self.pod.spec.active_deadline_seconds is None

    def consider_resize(self) -> None:
        """There is more room on the node."""
        if self._resizing.pending is not None and self.step is Step.RUNNING:
            self._resize()
            self._services.tell_changed(self.uid)

    # ------------------------------------------------------------------------------------------- what follows

    def sync(self) -> None:
        """Do what is to be done now, and set the alarm for what is to be done later."""
        # A runtime may tell at once what came of a start: that is looked at when this look is over.
        self._is_look_wanted = True
        if self._is_looking:
            return
        self._is_looking = True
        while self._is_look_wanted:
            self._is_look_wanted = False
            if self.step is Step.STOPPING:
                self._go_on_stopping()
            elif self.step is Step.RUNNING:
                self._look()
        self._is_looking = False

    def _look(self) -> None:
        now_s = self._services.clock.wall_s()
        deadline_s = self._deadline_s()
        if deadline_s is not None and now_s >= deadline_s:
            self._why = (DEADLINE_REASON, DEADLINE_MESSAGE)
            self._services.tell_event(self.pod, False, DEADLINE_REASON, DEADLINE_MESSAGE)
            self._terminate(self._grace_s())
            return
        plan = plan_of(self.pod, self._slots.values(), now_s)
        for held in plan.held:
            self._hold(held.slot, held.shown)
        due_s = min((held.until_s for held in plan.held), default=deadline_s)
        if due_s is not None:
            due_s = min(due_s, deadline_s) if deadline_s is not None else due_s
            self._services.alarms.set(("worker", self.uid), due_s - now_s, self.sync)
        for slot in plan.start:
            self._start(slot, now_s)
        if plan.is_through:
            self._terminate(self._grace_s())

    def _start(self, slot: Slot, now_s: float) -> None:
        if isinstance(slot.state, Exited):
            count_restart(slot, now_s)
        slot.attempt += 1
        slot.hold = None
        slot.is_starting, slot.is_restart_wanted = True, False
        slot.image = slot.container.image
        self._services.tell_event(self.pod, False, "Created", "Container created")
        self._services.runtime.start(self.pod, slot.container, slot.role, slot.attempt)

    def _hold(self, slot: Slot, shown: Waiting | None) -> None:
        if shown is None or slot.hold == shown:
            return
        slot.hold = shown
        metadata = self.pod.metadata
        who = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
        message = f"Back-off restarting failed container {slot.container.name} in pod {who}"
        self._services.tell_event(self.pod, True, "BackOff", message)
        self._services.tell_changed(self.uid)

    def _adjust(self) -> None:
        """The spec is another: new containers, other images, other amounts."""
        for container, role in containers_of(self.pod.spec):
            slot = self._slots.get(container.name)
            if slot is None:
                self._slots[container.name] = Slot(container, role)
                continue
            slot.container = container
            if container.image != slot.image and slot.is_running and role in (Role.CONTAINER, Role.SIDECAR):
                self._start_again(slot)
        self._resize()

    def _resize(self) -> None:
        for slot in self._resizing.consider(self.pod, self.node, self._slots.values()):
            self._start_again(slot)

    def _start_again(self, slot: Slot) -> None:
        slot.is_restart_wanted = True
        self._services.runtime.stop(self.uid, slot.container.name, self._grace_s())

    def _take_over(self) -> None:
        """Go on with what an earlier kubelet began."""
        if not recall(self._slots, self.pod):
            return
        for slot in self._slots.values():
            if slot.state is not None:
                self._services.runtime.adopt(self.pod, slot.container, slot.role, slot.attempt, slot.state)

    # ------------------------------------------------------------------------------------------------ the end

    def _terminate(self, grace_s: float) -> None:
        now_s = self._services.clock.now_s()
        is_sooner = now_s + grace_s < self._ends_s
        if self.step is Step.STOPPING and not is_sooner:
            return
        self.step = Step.STOPPING
        self._ends_s = now_s + grace_s
        self._asked_to_stop = frozenset()
        self._services.alarms.cancel(("worker", self.uid))
        self.sync()

    def _go_on_stopping(self) -> None:
        slots = list(self._slots.values())
        for slot in slots:
            if slot.is_starting:
                slot.is_starting = False
                self._ask_to_stop(slot)
        running = [slot for slot in slots if slot.is_running]
        if not running:
            self._end()
            return
        for slot in [slot for slot in running if slot.role is not Role.SIDECAR] or running:
            self._ask_to_stop(slot)

    def _ask_to_stop(self, slot: Slot) -> None:
        name = slot.container.name
        if name in self._asked_to_stop:
            return
        self._asked_to_stop |= {name}
        if slot.is_running:
            self._services.tell_event(self.pod, False, "Killing", f"Stopping container {name}")
        grace_s = max(0.0, self._ends_s - self._services.clock.now_s())
        self._services.runtime.stop(self.uid, name, grace_s)

    def _end(self) -> None:
        self.step = Step.OVER
        has_started = not self.pod.spec.init_containers or any(
            slot.has_run for slot in self._slots.values() if slot.role is Role.CONTAINER
        )
        for slot in self._slots.values():
            if has_started and slot.role is Role.CONTAINER and not isinstance(slot.state, Exited):
                slot.state = UNKNOWN_END
        self._leave_node()
        self._services.tell_changed(self.uid)

    def _reject(self, reason: str, message: str) -> None:
        self._is_rejected = True
        self._why = (reason, message)
        self.step = Step.OVER
        self._services.tell_event(self.pod, True, reason, message)
        self._services.tell_changed(self.uid)

    def _leave_node(self) -> None:
        self._services.alarms.cancel(("worker", self.uid))
        if self.node.release(self.uid):
            if self._address and not self._shares_host:
                self.node.give_back(self._address)
            self._services.tell_released(self.node)

    # ------------------------------------------------------------------------------------------ what is told

    @property
    def is_to_be_deleted(self) -> bool:
        """Whether the API is to be told that it can let go of it."""
        return self.step is Step.OVER and self.pod.metadata.deletion_timestamp is not None and not self.is_let_go

    def status(self) -> Document:
        """The status to be written now."""
        now = format_rfc3339(self._services.clock.wall_s())
        if self._is_rejected:
            return rejected_status(self.pod, *self._why, self._start_time)
        slots = list(self._slots.values())
        self._phase = self._phase_now(slots)
        why = self._why if self._phase in OVER else ("", "")
        has_sandbox = self._has_sandbox(slots)
        address = self._address if has_sandbox or self.pod.spec.host_network else ""
        has_sandbox = has_sandbox and self.step is not Step.OVER
        place = (self.node.host_ip, address, self._start_time)
        facts = PodFacts(self._phase, *place, has_sandbox, *why, resize=self._resizing.conditions)
        status = status_of(self.pod, slots, facts, self._resizing.allocated)
        self._transitions = stamp_conditions(status, self._transitions, now)
        return status

    def _phase_now(self, slots: list[Slot]) -> str:
        if self._phase in OVER:
            return self._phase
        is_over = self.step is Step.OVER
        phase = phase_of(self.pod.spec, slots, is_ending=is_over)
        if not is_over:
            # It may have failed for good, but what still runs is first to end.
            return self._phase if phase in OVER else phase
        if self.pod.status.phase in OVER:
            return self.pod.status.phase
        return FAILED if phase not in OVER or self._why[0] else phase

    def _has_sandbox(self, slots: list[Slot]) -> bool:
        for slot in slots:
            if slot.has_run or (isinstance(slot.state, Waiting) and slot.state.reason not in _BEFORE_SANDBOX):
                return True
        return False

    def _is_told_otherwise(self) -> bool:
        """Whether somebody else changed a condition of ours: a node that came back was taken for lost."""
        if not self.written or revision_number(self.pod.metadata.resource_version) < self.written_revision:
            return False
        told = {condition.type: condition.status for condition in self.pod.status.conditions}
        is_otherwise = any(told.get(type) != status for type, (status, _) in self._transitions.items())
        gates = self.pod.spec.readiness_gates
        if is_otherwise:
            self.written = b""
        return is_otherwise or bool(gates)

    def _tell_if_to_be_deleted(self) -> None:
        if self.is_to_be_deleted:
            self._services.tell_changed(self.uid)

    def _deadline_s(self) -> float | None:
        seconds = self.pod.spec.active_deadline_seconds
        return parse_rfc3339(self._start_time) + seconds if seconds is not None else None

    def _grace_s(self) -> float:
        grace_s = self.pod.spec.termination_grace_period_seconds
        return GRACE_S if grace_s is None else float(grace_s)
