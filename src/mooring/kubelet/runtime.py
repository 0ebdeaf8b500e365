"""The runtime: who really has the containers. A small promise, so that there can be several keepers.

Comes in   from workers: start this container, stop that one, give it other amounts, forget the pod
Goes out   to a listener: what became of it, as a `ContainerState`; and what it wrote, run by run

                 start                                   stop, or by itself
    (nobody) ──────────> Waiting ──> ... ──> Running ───────────────────────> Exited ── start ──> Waiting ...
                             └────────────────────────── it never ran ──────────^

 1. `start` and `stop` never wait. What comes of them is told to the listener, later or at once, with the attempt that
    it belongs to.
 2. Starting, stopping and giving amounts is all that a runtime does: which container is to run, when it is started
    again and what is told of it, others decide.
 3. Readiness is the runtime's to tell, because it asks the container (by probes, or because its life says so).
 4. After `forget` nothing is told of a pod any more, and nothing of it is left.
 5. It works while it is `opened`; when that ends, everything that it runs has ended.

`simulated` keeps it without any process, `processes` with commands of this machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from mooring.api.views.base import RawQuantity
from mooring.client.interface import Client
from mooring.kit.clock import Clock, parse_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kubelet.timers import Alarms
from mooring.kubelet.views import KubeletContainer, KubeletPod

START_ERROR = "StartError"
"""The reason of an end without a beginning: it could not be started."""


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


class Selection:
    """Which lines are young enough, and how many bytes there is room for."""

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
        """As much of it as is wanted."""
        if self._bytes_left is not None:
            written = written[: self._bytes_left]
            self._bytes_left -= len(written)
        return written


def _since_s(request: LogRequest, clock: Clock) -> float:
    if request.since_s is not None:
        return clock.wall_s() - request.since_s
    return parse_rfc3339(request.since_time) if request.since_time else 0.0


class Runtime(Protocol):
    """Whoever has the containers of the pods of this process."""

    @property
    def is_real(self) -> bool:
        """Whether its containers are processes of this machine: they have its address, and only its nodes are ours."""
        ...

    @property
    def pod_view(self) -> type[KubeletPod]:
        """As what it wants to be shown pods."""
        ...

    @property
    def lacking(self) -> str:
        """What it cannot do on this machine although pods may ask for it, in words; known once it is opened."""
        ...

    def opened(self) -> AbstractAsyncContextManager[None]:
        """From here on it works; at the end of the block everything has ended."""
        ...

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

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        """Let a run go on with the amounts that the container has now. Says why that cannot be."""
        ...

    def forget(self, pod_uid: str) -> None:
        """The pod is gone: whatever is left of it goes as well."""
        ...

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """These pods are there; whatever an earlier kubelet left of others goes."""
        ...

    def logs(self, pod_uid: str, container: str, attempt: int, request: LogRequest) -> AsyncIterator[bytes]:
        """What it wrote in one of its runs; nothing, if that is not known any more."""
        ...


@dataclass(frozen=True, slots=True)
class Needs:
    """What a fleet gives to its runtime."""

    client: Client
    clock: Clock
    entropy: Entropy
    alarms: Alarms
    listener: Listener
    tell_event: Callable[[KubeletPod, bool, str, str], None]
    """Something happened to a pod: is it a warning, its reason and message."""
    allocatable: Mapping[str, RawQuantity]
    """What a node of the fleet has for pods."""


RuntimeMaker: TypeAlias = Callable[[Needs], Runtime]
