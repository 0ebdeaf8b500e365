"""Slots: what a worker knows of each container of its pod.

Comes in   what the runtime tells
Goes out   values that `plan` decides by, and `container_status` tells

 1. `attempt` is the number of the run that goes on, or that went last; -1 if there was none.
 2. `last` is how the run before this one ended; `state` may itself be an end.
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


class Slot:
    """One container of a pod."""

    __slots__ = (
        "attempt",
        "backoff_s",
        "backoff_since_s",
        "container",
        "hold",
        "image",
        "is_restart_wanted",
        "is_starting",
        "last",
        "role",
        "state",
    )

    def __init__(self, container: KubeletContainer, role: Role) -> None:
        self.container = container
        self.role = role
        self.attempt = NEVER
        self.image = container.image
        """With which it was started."""
        self.state: ContainerState | None = None
        self.last: Exited | None = None
        self.hold: Waiting | None = None
        """Why it is not started again just now."""
        self.is_starting = False
        self.is_restart_wanted = False
        """Whether it was ended only to be started anew."""
        self.backoff_s = 0.0
        self.backoff_since_s = 0.0

    @property
    def has_run(self) -> bool:
        return isinstance(self.state, _HAVING_RUN) or self.last is not None

    @property
    def told_attempt(self) -> int:
        """Which run is told of: one that is only being started is not, but the one before it."""
        is_new = not isinstance(self.state, Running) and (self.is_starting or not isinstance(self.state, Exited))
        return max(0, self.attempt - 1 if is_new else self.attempt)

    @property
    def is_under_way(self) -> bool:
        """Whether it runs, or was told to."""
        return self.is_starting or isinstance(self.state, _UNDER_WAY)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever done about it."""
        return self.state is None and not self.is_starting

    @property
    def is_running(self) -> bool:
        return isinstance(self.state, Running)


def slots_of(spec: KubeletPodSpec) -> dict[str, Slot]:
    """Empty slots for all containers of a pod, those that go first in front."""
    return {container.name: Slot(container, role) for container, role in containers_of(spec)}


def containers_of(spec: KubeletPodSpec) -> list[tuple[KubeletContainer, Role]]:
    containers = [(container, Role.CONTAINER) for container in spec.containers]
    if not spec.init_containers and not spec.ephemeral_containers:
        return containers
    first = [
        (container, Role.SIDECAR if container.restart_policy == "Always" else Role.INIT)
        for container in spec.init_containers
    ]
    return [*first, *containers, *((container, Role.EPHEMERAL) for container in spec.ephemeral_containers)]


def recall(slots: dict[str, Slot], pod: KubeletPod) -> bool:
    """Fill the slots with what an earlier kubelet told of the containers. Says whether there was such a kubelet."""
    status = pod.status
    everything = (
        *status.init_container_statuses,
        *status.container_statuses,
        *status.ephemeral_container_statuses,
    )
    for told in everything:
        slot = slots.get(told.name)
        if slot is not None:
            _recall(slot, told)
    return bool(everything)


def _recall(slot: Slot, told: KubeletContainerStatus) -> None:
    state, last = told.state, told.last_state.terminated
    slot.last = _exited(last) if last is not None else None
    if state.running is not None:
        slot.state = Running(_seconds(state.running.started_at), told.ready, told.started is not False)
        slot.attempt = told.restart_count
    elif state.terminated is not None:
        slot.state = _exited(state.terminated)
        slot.attempt = told.restart_count
    elif last is not None:
        # It waited to be started again: that its last run has ended is all that matters.
        slot.state, slot.last = _exited(last), None
        slot.attempt = told.restart_count


def _exited(told: TerminatedState) -> Exited:
    return Exited(
        told.exit_code,
        _seconds(told.started_at),
        _seconds(told.finished_at),
        told.reason,
        told.message,
        told.signal,
    )


def _seconds(stamp: str | None) -> float:
    return parse_rfc3339(stamp) if stamp else 0.0
