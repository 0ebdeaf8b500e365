"""The runtime: who really has the containers. A small promise, so that there can be several keepers.

Comes in   from workers: start this container, stop that one, forget the pod
Goes out   to a listener: what became of it, as a `ContainerState`; and what it wrote

                 start                                   stop, or by itself
    (nobody) ──────────> Waiting ──> ... ──> Running ───────────────────────> Exited ── start ──> Waiting ...
                             └────────────────────────── it never ran ──────────^

 1. `start` and `stop` never wait. What comes of them is told to the listener, later or at once, with the attempt that
    it belongs to.
 2. Starting and stopping is all that a runtime does: which container is to run, when it is started again and what is
    told of it, others decide.
 3. Readiness is the runtime's to tell, because it asks the container (by probes, or because its life says so).
 4. After `forget` nothing is told of a pod any more, and nothing of it is left.

`simulated` keeps it without any process. One that runs real processes needs no more than this.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from mooring.kubelet.views import KubeletContainer, KubeletPod


class Role(Enum):
    """What a container is to its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    CONTAINER = "container"
    EPHEMERAL = "ephemeral"


@dataclass(frozen=True, slots=True)
class Waiting:
    """It was to be started, and does not run yet."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    started_s: float
    """By the wall clock."""
    is_ready: bool = True
    is_started: bool = True
    """Whether it has come up, as far as a startup probe says."""


@dataclass(frozen=True, slots=True)
class Exited:
    code: int
    started_s: float
    finished_s: float
    reason: str = ""
    message: str = ""
    signal: int = 0


ContainerState: TypeAlias = Waiting | Running | Exited


class Listener(Protocol):
    """Who wants to hear of containers."""

    def container_changed(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None: ...


class LogRequest(Protocol):
    """Which part of a log, as Kubernetes asks for it."""

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


class Runtime(Protocol):
    """Whoever has the containers of the pods of this process."""

    def start(self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int) -> None:
        """Run it. `attempt` counts its runs from 0."""
        ...

    def adopt(
        self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int, state: ContainerState
    ) -> None:
        """It was started by an earlier kubelet, and this is what was last told of it."""
        ...

    def stop(self, pod_uid: str, container: str, grace_s: float) -> None:
        """Ask it to end, and end it after `grace_s`."""
        ...

    def forget(self, pod_uid: str) -> None:
        """The pod is gone: whatever is left of it goes as well."""
        ...

    def logs(self, pod_uid: str, container: str, request: LogRequest) -> AsyncIterator[bytes]:
        """What it wrote. Raises `BadRequestError` if there is nothing to read yet."""
        ...
