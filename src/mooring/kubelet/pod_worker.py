"""The pod worker: one pod on its node, from admission to termination.

Input: the Pod object when it changes; container states from the runtime; timers. Output: calls of the runtime (start,
stop); "the status changed" to the write queue; events.

             admitted              all containers complete, deleted, deadline exceeded
    new ────────────────> RUNNING ────────────────────────────────────────────────────> TERMINATING ──> TERMINATED
     └── rejected, or already terminal ────────────────────────────────────────────────────────────────────^

 1. `pod_actions` decides what to start, `pod_status` what to report. The worker acts.
 2. A terminated pod never runs again. Its resources are free from then on.
 3. A pod is deleted from the API only after its final status was written, and by its uid.
 4. Containers are stopped before the sidecars that serve them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mooring.api.document import Document
from mooring.api.resources import fit_filter_requests
from mooring.api.well_known import FAILED, PENDING, TERMINAL_PHASES
from mooring.kit.clock import Clock, format_rfc3339, parse_rfc3339
from mooring.kubelet.node_state import NodeState
from mooring.kubelet.pod_actions import (
    ContainerRecord,
    compute_pod_actions,
    container_records,
    containers_of,
    count_restart,
    restore_records,
    start_error_waiting,
)
from mooring.kubelet.pod_status import (
    PodFacts,
    phase_of,
    rejected_status,
    revision_number,
    stamp_conditions,
    status_of,
)
from mooring.kubelet.resize import PodResize
from mooring.kubelet.runtime import START_ERROR, ContainerState, Exited, RecordEvent, Role, Runtime, Waiting
from mooring.kubelet.timers import Timers
from mooring.kubelet.views import KubeletPod

DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
GRACE_S = 30.0
UNKNOWN_END = Exited(
    137, 0.0, 0.0, "ContainerStatusUnknown", "The container could not be located when the pod was terminated"
)
_BEFORE_SANDBOX = ("ContainerCreating", "PodInitializing")


class WorkerState(Enum):
    """The stage of a pod in its life cycle."""

    RUNNING = "running"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What all pod workers share."""

    runtime: Runtime
    clock: Clock
    timers: Timers
    status_changed: Callable[[str], None]
    """Called with the uid of a pod whose status changed."""
    record_event: RecordEvent
    resources_released: Callable[[NodeState], None]
    """Called when a pod released resources of a node."""


class PodWorker:
    """One pod."""

    def __init__(self, pod: KubeletPod, node: NodeState, context: WorkerContext) -> None:
        self.pod = pod
        self.node = node
        self.uid = pod.metadata.uid
        self.state = WorkerState.RUNNING
        self.last_status = b""
        """The status that was written last, at `last_status_revision`. As JSON: as dictionaries, the statuses of 10,000
        pods would slow the garbage collector down."""
        self.last_status_revision = 0
        self.is_deletion_sent = False
        """Whether the deletion was sent. Finalizers may keep the object."""
        self._context = context
        self._records = container_records(pod.spec)
        self._pod_resize = PodResize(context.runtime, context.record_event)
        self._address = ""
        self._start_time = ""
        self._phase = pod.status.phase or PENDING
        self._reason_and_message = ("", "")
        self._is_rejected = False
        self._stop_requested: frozenset[str] = frozenset()
        self._kill_deadline_s = 0.0
        self._is_syncing = False
        self._is_sync_requested = False
        self._transitions = {
            condition.type: (condition.status, condition.last_transition_time or "")
            for condition in pod.status.conditions
        }

    # Changes

    def begin(self) -> None:
        """Admit the pod, or continue what an earlier kubelet started."""
        pod, now_s = self.pod, self._context.clock.wall_s()
        self._start_time = pod.status.start_time or format_rfc3339(now_s)
        if pod.status.phase in TERMINAL_PHASES:
            self._reason_and_message = (pod.status.reason, pod.status.message)
            # The API server rejects a status in which a container of a finished pod has not ended.
            restore_records(self._records, pod)
            self.state = WorkerState.TERMINATED
            self._request_deletion()
            return
        requests = fit_filter_requests(pod)
        rejection = self.node.rejection(pod, requests) if not pod.status.start_time else None
        if rejection is not None:
            self._reject(rejection.reason, rejection.message)
            return
        self.node.reserve(pod, requests)
        self._pod_resize.grant(pod)
        self._address = self.node.host_ip if self._uses_host_network else pod.status.pod_ip or self.node.new_address()
        self._restore()
        if not self._check_termination(pod):
            self.sync()
            if pod.status.start_time:
                # Another client may have changed the status in the meantime.
                self._context.status_changed(self.uid)

    @property
    def _uses_host_network(self) -> bool:
        """Whether the pod has the address of the node."""
        return self.pod.spec.host_network or self._context.runtime.is_real

    def update(self, pod: KubeletPod) -> None:
        """The Pod object changed."""
        before, self.pod = self.pod, pod
        if self.state is WorkerState.TERMINATED:
            self._request_deletion()
            return
        if self._check_termination(pod):
            return
        if pod.metadata.generation != before.metadata.generation:
            self._apply_spec()
            self._context.status_changed(self.uid)
            self.sync()
        elif self._is_status_overwritten():
            self._context.status_changed(self.uid)

    def _check_termination(self, pod: KubeletPod) -> bool:
        """Start the termination of a deleted or terminal pod. Returns whether it terminates."""
        if pod.metadata.deletion_timestamp is not None:
            self._terminate(float(pod.metadata.deletion_grace_period_seconds or 0))
            return True
        if pod.status.phase in TERMINAL_PHASES:
            # Another client set a terminal phase, which is final.
            self._reason_and_message = (pod.status.reason, pod.status.message)
            self._terminate(GRACE_S)
            return True
        return False

    def remove(self) -> None:
        """The Pod object was deleted."""
        self._release_node()
        self.state = WorkerState.TERMINATED
        self._context.runtime.forget(self.uid)
        self._context.timers.cancel(("worker", self.uid))

    def container_changed(self, name: str, attempt: int, state: ContainerState) -> None:
        """The runtime reports the state of a container."""
        record = self._records.get(name)
        if record is None or attempt != record.attempt or self.state is WorkerState.TERMINATED:
            return
        if isinstance(record.state, Exited):
            record.last = record.state
        if record.is_starting:
            self._record_start(record, state)
        record.state, record.is_starting = state, False
        record.waiting = start_error_waiting(record, self.pod) if isinstance(state, Exited) else None
        self._context.status_changed(self.uid)
        if not self._needs_no_sync(record):
            self.sync()

    def _needs_no_sync(self, record: ContainerRecord) -> bool:
        """Whether a container has started and no action depends on it."""
        is_up = record.role is Role.CONTAINER and record.is_running
        return is_up and self.state is WorkerState.RUNNING and self.pod.spec.active_deadline_seconds is None

    def consider_resize(self) -> None:
        """Resources of the node were released: retry a pending resize."""
        if self._pod_resize.pending is not None and self.state is WorkerState.RUNNING:
            self._resize()
            self._context.status_changed(self.uid)

    # Sync

    def sync(self) -> None:
        """Do what is due now, and set the timer for the next action."""
        # A runtime may report a state during `start`: it is handled after the current pass.
        self._is_sync_requested = True
        if self._is_syncing:
            return
        self._is_syncing = True
        while self._is_sync_requested:
            self._is_sync_requested = False
            if self.state is WorkerState.TERMINATING:
                self._sync_terminating()
            elif self.state is WorkerState.RUNNING:
                self._sync_running()
        self._is_syncing = False

    def _sync_running(self) -> None:
        now_s = self._context.clock.wall_s()
        deadline_s = self._deadline_s()
        if deadline_s is not None and now_s >= deadline_s:
            self._reason_and_message = (DEADLINE_REASON, DEADLINE_MESSAGE)
            self._context.record_event(self.pod, "Normal", DEADLINE_REASON, DEADLINE_MESSAGE)
            self._terminate(self._grace_s())
            return
        actions = compute_pod_actions(self.pod, self._records.values(), now_s)
        for delayed in actions.delayed:
            self._delay_start(delayed.record, delayed.waiting)
        due_s = min((delayed.until_s for delayed in actions.delayed), default=deadline_s)
        if due_s is not None:
            due_s = min(due_s, deadline_s) if deadline_s is not None else due_s
            self._context.timers.set(("worker", self.uid), due_s - now_s, self.sync)
        for record in actions.start:
            self._start(record, now_s)
        if actions.is_complete:
            self._terminate(self._grace_s())

    def _start(self, record: ContainerRecord, now_s: float) -> None:
        if isinstance(record.state, Exited):
            count_restart(record, now_s)
        record.attempt += 1
        record.waiting = None
        record.is_starting, record.is_restart_wanted = True, False
        record.image = record.container.image
        self._context.runtime.start(self.pod, record.container, record.role, record.attempt)

    def _record_start(self, record: ContainerRecord, state: ContainerState) -> None:
        """The events of a container that has started. One that waits, for its image for example, was not created."""
        if isinstance(state, Waiting) or (isinstance(state, Exited) and state.reason == START_ERROR):
            return
        if not self._context.runtime.is_real:
            image = (
                f'Container image "{record.container.image}" already present on machine and can be accessed by the pod'
            )
            self._context.record_event(self.pod, "Normal", "Pulled", image)
        self._context.record_event(self.pod, "Normal", "Created", "Container created")
        self._context.record_event(self.pod, "Normal", "Started", "Container started")

    def _delay_start(self, record: ContainerRecord, waiting: Waiting | None) -> None:
        if waiting is None or record.waiting == waiting:
            return
        record.waiting = waiting
        metadata = self.pod.metadata
        pod_name = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
        message = f"Back-off restarting failed container {record.container.name} in pod {pod_name}"
        self._context.record_event(self.pod, "Warning", "BackOff", message)
        self._context.status_changed(self.uid)

    def _apply_spec(self) -> None:
        """The spec changed: new containers, other images, other resources."""
        for container, role in containers_of(self.pod.spec):
            record = self._records.get(container.name)
            if record is None:
                self._records[container.name] = ContainerRecord(container, role)
                continue
            record.container = container
            if container.image != record.image and record.is_running and role in (Role.CONTAINER, Role.SIDECAR):
                self._start_again(record)
        self._resize()

    def _resize(self) -> None:
        for record in self._pod_resize.consider(self.pod, self.node, self._records.values()):
            self._start_again(record)

    def _start_again(self, record: ContainerRecord) -> None:
        record.is_restart_wanted = True
        self._context.runtime.stop(self.uid, record.container.name, self._grace_s())

    def _restore(self) -> None:
        """Continue with containers that an earlier kubelet started."""
        if not restore_records(self._records, self.pod):
            return
        for record in self._records.values():
            if record.state is not None:
                self._context.runtime.adopt(self.pod, record.container, record.role, record.attempt, record.state)

    # Termination

    def _terminate(self, grace_s: float) -> None:
        now_s = self._context.clock.now_s()
        is_sooner = now_s + grace_s < self._kill_deadline_s
        if self.state is WorkerState.TERMINATING and not is_sooner:
            return
        self.state = WorkerState.TERMINATING
        self._kill_deadline_s = now_s + grace_s
        self._stop_requested = frozenset()
        self._context.timers.cancel(("worker", self.uid))
        self.sync()

    def _sync_terminating(self) -> None:
        records = list(self._records.values())
        for record in records:
            if record.is_starting:
                record.is_starting = False
                self._stop_container(record)
        running = [record for record in records if record.is_running]
        if not running:
            self._end()
            return
        for record in [record for record in running if record.role is not Role.SIDECAR] or running:
            self._stop_container(record)

    def _stop_container(self, record: ContainerRecord) -> None:
        name = record.container.name
        if name in self._stop_requested:
            return
        self._stop_requested |= {name}
        if record.is_running:
            self._context.record_event(self.pod, "Normal", "Killing", f"Stopping container {name}")
        grace_s = max(0.0, self._kill_deadline_s - self._context.clock.now_s())
        self._context.runtime.stop(self.uid, name, grace_s)

    def _end(self) -> None:
        self.state = WorkerState.TERMINATED
        has_started = not self.pod.spec.init_containers or any(
            record.has_run for record in self._records.values() if record.role is Role.CONTAINER
        )
        for record in self._records.values():
            if has_started and record.role is Role.CONTAINER and not isinstance(record.state, Exited):
                record.state = UNKNOWN_END
        self._release_node()
        self._context.status_changed(self.uid)

    def _reject(self, reason: str, message: str) -> None:
        self._is_rejected = True
        self._reason_and_message = (reason, message)
        self.state = WorkerState.TERMINATED
        self._context.record_event(self.pod, "Warning", reason, message)
        self._context.status_changed(self.uid)

    def _release_node(self) -> None:
        self._context.timers.cancel(("worker", self.uid))
        if self.node.release(self.uid):
            if self._address and not self._uses_host_network:
                self.node.release_address(self._address)
            self._context.resources_released(self.node)

    # Status

    @property
    def needs_deletion(self) -> bool:
        """Whether to delete the Pod object."""
        return (
            self.state is WorkerState.TERMINATED
            and self.pod.metadata.deletion_timestamp is not None
            and not self.is_deletion_sent
        )

    def status(self) -> Document:
        """The status to write now."""
        now = format_rfc3339(self._context.clock.wall_s())
        if self._is_rejected:
            return rejected_status(self.pod, *self._reason_and_message, self._start_time)
        records = list(self._records.values())
        self._phase = self._phase_now(records)
        reason, message = self._reason_and_message if self._phase in TERMINAL_PHASES else ("", "")
        has_sandbox = self._has_sandbox(records)
        address = self._address if has_sandbox or self.pod.spec.host_network else ""
        facts = PodFacts(
            self._phase,
            self.node.host_ip,
            address,
            self._start_time,
            has_sandbox and self.state is not WorkerState.TERMINATED,
            reason,
            message,
            self._pod_resize.conditions,
        )
        status = status_of(self.pod, records, facts, self._pod_resize.allocated)
        self._transitions = stamp_conditions(status, self._transitions, now)
        return status

    def _phase_now(self, records: list[ContainerRecord]) -> str:
        if self._phase in TERMINAL_PHASES:
            return self._phase
        is_over = self.state is WorkerState.TERMINATED
        phase = phase_of(self.pod.spec, records, is_ending=is_over)
        if not is_over:
            # A terminal phase is reported only when nothing runs any more.
            return self._phase if phase in TERMINAL_PHASES else phase
        if self.pod.status.phase in TERMINAL_PHASES:
            return self.pod.status.phase
        return FAILED if phase not in TERMINAL_PHASES or self._reason_and_message[0] else phase

    def _has_sandbox(self, records: list[ContainerRecord]) -> bool:
        for record in records:
            if record.has_run or (isinstance(record.state, Waiting) and record.state.reason not in _BEFORE_SANDBOX):
                return True
        return False

    def status_written(self, status: bytes, revision: int) -> None:
        """The API server has this status since a revision. The watch may have been faster than the answer, and may have
        delivered the change of another client in the meantime."""
        self.last_status, self.last_status_revision = status, revision
        if self.state is not WorkerState.TERMINATED and self._is_status_overwritten():
            self._context.status_changed(self.uid)

    def _is_status_overwritten(self) -> bool:
        """Whether another client changed a condition of the kubelet, as the node lifecycle controller does for a lost
        node."""
        if not self.last_status or revision_number(self.pod.metadata.resource_version) < self.last_status_revision:
            return False
        reported = {condition.type: condition.status for condition in self.pod.status.conditions}
        is_otherwise = any(reported.get(type) != status for type, (status, _) in self._transitions.items())
        gates = self.pod.spec.readiness_gates
        if is_otherwise:
            self.last_status = b""
        return is_otherwise or bool(gates)

    def _request_deletion(self) -> None:
        if self.needs_deletion:
            self._context.status_changed(self.uid)

    def _deadline_s(self) -> float | None:
        seconds = self.pod.spec.active_deadline_seconds
        return parse_rfc3339(self._start_time) + seconds if seconds is not None else None

    def _grace_s(self) -> float:
        grace_s = self.pod.spec.termination_grace_period_seconds
        return GRACE_S if grace_s is None else float(grace_s)
