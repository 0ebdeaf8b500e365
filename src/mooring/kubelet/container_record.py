"""Container records: what a pod worker knows of each container of its pod.

Input: container states from the runtime, or container statuses that an earlier kubelet wrote. Output: values that
`pod_actions` and `pod_status` read.

 1. `attempt` is the number of the current or the last run; -1 before the first one.
 2. `last` is the end of the run before that; `state` may itself be an end.
"""

from __future__ import annotations

from mooring.kit.clock import parse_rfc3339
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import (
    KubeletContainer,
    KubeletContainerStatus,
    KubeletPod,
    KubeletPodSpec,
    TerminatedState,
)

NEVER = -1

_HAVING_RUN = (Running, Exited)
_UNDER_WAY = (Running, Waiting)


class ContainerRecord:
    """One container of a pod."""

    __slots__ = (
        "attempt",
        "backoff_s",
        "backoff_since_s",
        "container",
        "image",
        "is_restart_wanted",
        "is_starting",
        "last",
        "role",
        "state",
        "waiting",
    )

    def __init__(self, container: KubeletContainer, role: Role) -> None:
        self.container = container
        self.role = role
        self.attempt = NEVER
        self.image = container.image
        """The image that the current run was started with."""
        self.state: ContainerState | None = None
        self.last: Exited | None = None
        self.waiting: Waiting | None = None
        """The waiting state to report while the start is delayed."""
        self.is_starting = False
        self.is_restart_wanted = False
        """Whether it was stopped to be started again."""
        self.backoff_s = 0.0
        self.backoff_since_s = 0.0

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
