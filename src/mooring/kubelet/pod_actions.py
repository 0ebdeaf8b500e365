"""Pod actions: which containers of a pod to start now, which starts to delay, and whether the pod is complete.

Input: a pod, its container records, the time. Output: `PodActions`. The counterpart of kubelet's computePodActions.

Init containers run one after another, each until it succeeds. Sidecars start in their turn; the next container waits
only until the sidecar has started. Then all containers start together.

 1. A pod whose containers have started never returns to its init containers.
 2. A failed container is restarted at once the first time. Then the back-off is 10 s, counted from its end, and
    doubles up to 300 s with each restart. A run of more than 600 s resets it. All as in the kubelet.
 3. A pod is complete when no container will run again: then its sidecars are stopped.
 4. Two common cases are decided without computing the rest: all containers run or are starting; none was ever started.

A container record is what a pod worker knows of a container. Input: container states from the runtime, or container
statuses that an earlier kubelet wrote.

 1. `attempt` is the number of the current or the last run; -1 before the first one.
 2. `last` is the end of the run before that; `state` may itself be an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mooring.api.durations import format_duration
from mooring.kit.clock import parse_rfc3339
from mooring.kubelet.runtime import START_ERROR, ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletContainer, KubeletContainerStatus, KubeletPod, KubeletPodSpec, TerminatedState

NEVER = -1

_HAVING_RUN = (Running, Exited)
_UNDER_WAY = (Running, Waiting)


@dataclass(slots=True, eq=False)
class ContainerRecord:
    """One container of a pod."""

    container: KubeletContainer
    role: Role
    attempt: int = NEVER
    image: str = field(init=False)
    """The image that the current run was started with."""
    state: ContainerState | None = None
    last: Exited | None = None
    waiting: Waiting | None = None
    """The waiting state to report while the start is delayed."""
    is_starting: bool = False
    is_restart_wanted: bool = False
    """Whether it was stopped to be started again."""
    backoff_s: float = 0.0
    backoff_since_s: float = 0.0

    def __post_init__(self) -> None:
        self.image = self.container.image

    @property
    def has_run(self) -> bool:
        return isinstance(self.state, _HAVING_RUN) or self.last is not None

    @property
    def reported_attempt(self) -> int:
        """The run to report: while a run is starting, the one before it."""
        is_new = not isinstance(self.state, Running) and (self.is_starting or not isinstance(self.state, Exited))
        return max(0, self.attempt - 1 if is_new else self.attempt)

    @property
    def is_active(self) -> bool:
        """Whether it runs or is starting."""
        return self.is_starting or isinstance(self.state, _UNDER_WAY)

    @property
    def is_new(self) -> bool:
        """Whether it was never started."""
        return self.state is None and not self.is_starting

    @property
    def is_running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def is_started(self) -> bool:
        """Whether it runs and its startup probe has succeeded."""
        return isinstance(self.state, Running) and self.state.is_started

    @property
    def is_ready(self) -> bool:
        return isinstance(self.state, Running) and self.state.is_ready and self.state.is_started


def container_records(spec: KubeletPodSpec) -> dict[str, ContainerRecord]:
    """New records for all containers of a pod, init containers first."""
    return {container.name: ContainerRecord(container, role) for container, role in containers_of(spec)}


def containers_of(spec: KubeletPodSpec) -> list[tuple[KubeletContainer, Role]]:
    containers = [(container, Role.CONTAINER) for container in spec.containers]
    if not spec.init_containers and not spec.ephemeral_containers:
        return containers
    first = [
        (container, Role.SIDECAR if container.restart_policy == "Always" else Role.INIT)
        for container in spec.init_containers
    ]
    return [*first, *containers, *((container, Role.EPHEMERAL) for container in spec.ephemeral_containers)]


def restore_records(records: dict[str, ContainerRecord], pod: KubeletPod) -> bool:
    """Fill records from the container statuses that an earlier kubelet wrote. Returns whether there were any."""
    status = pod.status
    everything = (
        *status.init_container_statuses,
        *status.container_statuses,
        *status.ephemeral_container_statuses,
    )
    for reported in everything:
        record = records.get(reported.name)
        if record is not None:
            _restore_record(record, reported)
    return bool(everything)


def _restore_record(record: ContainerRecord, reported: KubeletContainerStatus) -> None:
    state, last = reported.state, reported.last_state.terminated
    record.last = _exited(last) if last is not None else None
    if state.running is not None:
        record.state = Running(_seconds(state.running.started_at), reported.ready, reported.started is not False)
        record.attempt = reported.restart_count
    elif state.terminated is not None:
        record.state = _exited(state.terminated)
        record.attempt = reported.restart_count
    elif last is not None:
        # It waited for its restart: only the end of its last run matters.
        record.state, record.last = _exited(last), None
        record.attempt = reported.restart_count


def _exited(reported: TerminatedState) -> Exited:
    return Exited(
        reported.exit_code,
        _seconds(reported.started_at),
        _seconds(reported.finished_at),
        reported.reason,
        reported.message,
        reported.signal,
    )


def _seconds(stamp: str | None) -> float:
    return parse_rfc3339(stamp) if stamp else 0.0


BACKOFF_S_INITIAL = 10.0
BACKOFF_S_MAX = 300.0
BACKOFF_RESET_S = 2 * BACKOFF_S_MAX
RESTART_S = 1.0
"""The time until a kubelet notices that a container has ended: it relists containers every second."""

ROUNDING_S = 0.001
"""A timer may fire that much early, because wall clock and loop clock round differently."""


@dataclass(frozen=True, slots=True)
class DelayedStart:
    """A start that is delayed until `until_s` (wall clock), and the waiting state to report, if any."""

    record: ContainerRecord
    until_s: float
    waiting: Waiting | None = None


@dataclass(slots=True)
class PodActions:
    """What to do now."""

    start: list[ContainerRecord] = field(default_factory=list)
    delayed: list[DelayedStart] = field(default_factory=list)
    is_complete: bool = False
    """Whether no container will run again."""


NOTHING = PodActions()
"""Shared; never modified."""


def compute_pod_actions(pod: KubeletPod, records: Iterable[ContainerRecord], now_s: float) -> PodActions:
    """The actions for a pod that is not terminating."""
    spec, every = pod.spec, list(records)
    actions = _common_case(every)
    if actions is not None:
        return actions
    actions = PodActions()
    containers = [record for record in every if record.role is Role.CONTAINER]
    first = [record for record in every if record.role in (Role.INIT, Role.SIDECAR)]
    is_initialized = any(record.attempt >= 0 for record in containers)
    if not _plan_init_containers(actions, pod, first, now_s, is_initialized):
        return actions
    for record in containers:
        _plan_container(actions, pod, record, now_s)
    for record in every:
        if record.role is Role.EPHEMERAL and record.attempt < 0 and not record.is_starting:
            actions.start.append(record)
    actions.is_complete = all(_has_ended(spec, record) for record in containers)
    return actions


def should_restart(container: KubeletContainer, spec: KubeletPodSpec, code: int) -> bool:
    """Whether a container that ended with this exit code is restarted."""
    if container.restart_policy is not None:
        for rule in container.restart_policy_rules:
            codes = rule.exit_codes
            if codes is not None and (code in codes.values) is (codes.operator == "In"):
                return True
    policy = container.restart_policy or spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def restart_allowed_s(record: ContainerRecord, now_s: float) -> float:
    """The earliest time of a restart; it may be in the past."""
    assert isinstance(record.state, Exited), f"{record.container.name} has not ended"
    finished_s = record.state.finished_s
    if not record.backoff_s or finished_s - record.backoff_since_s > BACKOFF_RESET_S:
        return now_s
    return finished_s + record.backoff_s


def count_restart(record: ContainerRecord, now_s: float) -> None:
    """Count a restart: the next back-off is longer."""
    assert isinstance(record.state, Exited), f"{record.container.name} has not ended"
    is_first = not record.backoff_s or record.state.finished_s - record.backoff_since_s > BACKOFF_RESET_S
    record.backoff_s = BACKOFF_S_INITIAL if is_first else min(2 * record.backoff_s, BACKOFF_S_MAX)
    record.backoff_since_s = now_s


def crash_loop_waiting(record: ContainerRecord, pod: KubeletPod) -> Waiting:
    """The waiting state CrashLoopBackOff."""
    metadata = pod.metadata
    pod_name = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
    wait = format_duration(int(record.backoff_s))
    return Waiting(
        "CrashLoopBackOff", f"back-off {wait} restarting failed container={record.container.name} pod={pod_name}"
    )


def start_error_waiting(record: ContainerRecord, pod: KubeletPod) -> Waiting | None:
    """The waiting state of a container that failed to start and will be retried."""
    state = record.state
    if not isinstance(state, Exited) or state.reason != START_ERROR:
        return None
    return (
        Waiting("RunContainerError", state.message) if should_restart(record.container, pod.spec, state.code) else None
    )


def _common_case(every: list[ContainerRecord]) -> PodActions | None:
    are_under_way = are_untouched = bool(every)
    for record in every:
        if record.role is not Role.CONTAINER:
            return None
        are_under_way = are_under_way and record.is_active
        are_untouched = are_untouched and record.is_new
    if are_under_way:
        return NOTHING
    return PodActions(start=every) if are_untouched else None


def _plan_init_containers(
    actions: PodActions, pod: KubeletPod, first: Sequence[ContainerRecord], now_s: float, is_initialized: bool
) -> bool:
    """Init containers and sidecars, in order. Returns whether the containers may start."""
    for record in first:
        if record.role is Role.SIDECAR:
            _plan_container(actions, pod, record, now_s)
            if not is_initialized and not record.is_started:
                return False
        elif not is_initialized:
            if isinstance(record.state, Exited) and record.state.code == 0:
                continue
            if isinstance(record.state, Exited) and not should_restart(record.container, pod.spec, record.state.code):
                actions.is_complete = True
            else:
                _plan_container(actions, pod, record, now_s)
            return False
    return True


def _plan_container(actions: PodActions, pod: KubeletPod, record: ContainerRecord, now_s: float) -> None:
    if record.is_active:
        return
    if not isinstance(record.state, Exited):
        actions.start.append(record)
        return
    if _has_ended(pod.spec, record):
        return
    seen_s = record.state.finished_s + RESTART_S
    free_s = restart_allowed_s(record, now_s)
    if now_s < seen_s - ROUNDING_S:
        actions.delayed.append(DelayedStart(record, seen_s))
    elif now_s < free_s - ROUNDING_S:
        actions.delayed.append(DelayedStart(record, free_s, crash_loop_waiting(record, pod)))
    else:
        actions.start.append(record)


def _has_ended(spec: KubeletPodSpec, record: ContainerRecord) -> bool:
    if not isinstance(record.state, Exited) or record.is_starting or record.is_restart_wanted:
        return False
    return record.role is not Role.SIDECAR and not should_restart(record.container, spec, record.state.code)
