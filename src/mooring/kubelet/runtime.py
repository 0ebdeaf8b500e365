"""The interface of a container runtime.

Input: start, stop, resize and forget, from pod workers. Output: container states to a listener; logs.

                 start                                   stop, or by itself
    (nothing) ─────────> Waiting ──> ... ──> Running ───────────────────────> Exited ── start ──> Waiting ...
                             └────────────────────────── start error ───────────^

 1. `start` and `stop` never wait. The listener gets the outcome, at once or later, with the attempt that it belongs to.
 2. A runtime decides nothing: which container runs and when it restarts is the decision of the pod worker.
 3. The runtime determines readiness, by probes or by the stage of a simulated container.
 4. After `forget` the listener gets no more states of a pod, and nothing of the pod is left.
 5. A runtime works while it is `opened`; at the end of the block all containers have ended.

`simulated.runtime` implements it without processes, `processes.runtime` with processes of this machine.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from mooring.api.views.meta import RawQuantity
from mooring.client.events import EventType
from mooring.client.interface import Client
from mooring.kit.clock import Clock, parse_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kubelet.timers import Timers
from mooring.kubelet.views import KubeletContainer, KubeletPod

START_ERROR = "StartError"
"""The reason of a container that could not be started."""


class Role(Enum):
    """The kind of a container within its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    CONTAINER = "container"
    EPHEMERAL = "ephemeral"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The container is to be started and does not run yet."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    started_s: float
    """Wall clock."""
    is_ready: bool = True
    is_started: bool = True
    """Whether the startup probe has succeeded."""


@dataclass(frozen=True, slots=True)
class Exited:
    code: int
    started_s: float
    finished_s: float
    reason: str = ""
    message: str = ""
    signal: int = 0


ContainerState: TypeAlias = Waiting | Running | Exited

RecordEvent: TypeAlias = Callable[[KubeletPod, EventType, str, str], None]
"""Records an event about a pod: its type, reason and message."""


class ContainerListener(Protocol):
    """Receives container states."""

    def container_changed(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None: ...


class LogRequest(Protocol):
    """Which part of a log to read: the fields of PodLogOptions."""

    @property
    def follows(self) -> bool: ...

    @property
    def is_previous(self) -> bool: ...

    @property
    def since_s(self) -> int | None: ...

    @property
    def since_time(self) -> str | None: ...

    @property
    def has_timestamps(self) -> bool: ...

    @property
    def tail_lines(self) -> int | None: ...

    @property
    def limit_bytes(self) -> int | None: ...


class LogSelection:
    """Applies `since` and `limitBytes` of a request."""

    def __init__(self, request: LogRequest, clock: Clock) -> None:
        self._since_s = _since_s(request, clock)
        self._bytes_left = request.limit_bytes

    @property
    def is_exhausted(self) -> bool:
        return self._bytes_left == 0

    def is_too_old(self, wall_s: float) -> bool:
        return wall_s < self._since_s

    @property
    def has_since(self) -> bool:
        return self._since_s > 0.0

    def cut(self, written: bytes) -> bytes:
        """As much as `limitBytes` allows."""
        if self._bytes_left is not None:
            written = written[: self._bytes_left]
            self._bytes_left -= len(written)
        return written


def _since_s(request: LogRequest, clock: Clock) -> float:
    if request.since_s is not None:
        return clock.wall_s() - request.since_s
    return parse_rfc3339(request.since_time) if request.since_time else 0.0


class Runtime(Protocol):
    """Runs the containers of all pods of a process."""

    @property
    def is_real(self) -> bool:
        """Whether containers are processes of this machine: they have its address, and other nodes are not adopted."""
        ...

    @property
    def pod_view(self) -> type[KubeletPod]:
        """The class to decode pods as."""
        ...

    @property
    def limitations(self) -> str:
        """What the runtime cannot do on this machine, as a sentence; known once it is opened."""
        ...

    def opened(self) -> AbstractAsyncContextManager[None]:
        """The runtime works inside the block; at its end all containers have ended."""
        ...

    def start(self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int) -> None:
        """Start a container. `attempt` counts its runs from 0."""
        ...

    def adopt(
        self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int, state: ContainerState
    ) -> None:
        """Take over a container that an earlier kubelet started, in the state that was reported last."""
        ...

    def stop(self, pod_uid: str, container: str, grace_s: float) -> None:
        """Stop a container, and kill it after `grace_s`."""
        ...

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        """Apply the resources of the container to a run. Returns why that failed, or an empty text."""
        ...

    def forget(self, pod_uid: str) -> None:
        """The pod was deleted: remove what is left of it."""
        ...

    def remove_all_except(self, pod_uids: Collection[str]) -> None:
        """Remove what an earlier kubelet left of all other pods."""
        ...

    def logs(self, pod_uid: str, container: str, attempt: int, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """The log of one run; empty if it is not known any more."""
        ...


@dataclass(frozen=True, slots=True)
class RuntimeContext:
    """What a runtime gets from the kubelets."""

    client: Client
    clock: Clock
    entropy: Entropy
    timers: Timers
    listener: ContainerListener
    record_event: RecordEvent
    allocatable: Mapping[str, RawQuantity]
    """The allocatable resources of a node."""


RuntimeFactory: TypeAlias = Callable[[RuntimeContext], Runtime]
