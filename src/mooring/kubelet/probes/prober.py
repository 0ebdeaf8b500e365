"""The prober: runs the probes of all containers periodically.

Input: containers that start and end. Output: changes of health and containers to kill, to a listener; events.

One task for each probe of a running container:

    start ── period ── probe ── period ── probe ...       readiness is probed at the start, and again at once when the
                                                          container has started

 1. Results count in `RunHealth`. A probe that cannot run counts neither way, after `TRIES_MAX` tries.
 2. A probe that takes longer than its period skips the missed periods.
 3. After `end` nothing is reported for that run.
 4. While a pod is stopped, only readiness is probed.

The health of one run of a container: what follows from probe results.

Input: results in order. Output: whether the container is started and ready; whether to kill it.

    startup    other probes wait until it succeeds; `failureThreshold` failures in a row kill the container
    readiness  ready after `successThreshold` successes in a row, not ready after `failureThreshold` failures
    liveness   `failureThreshold` failures in a row kill the container

 1. Without a startup probe a container is started at once; without a readiness probe it is ready once started.
 2. After a probe killed the container, that probe is not run again in this run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from mooring.api.views.meta import IntOrString
from mooring.client.events import EventType
from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.probes.handlers import (
    CommandRunner,
    ProbeError,
    ProbeOutcome,
    ProbeResult,
    probe_exec,
    probe_grpc,
    probe_http,
    probe_tcp,
)
from mooring.kubelet.runtime import Role
from mooring.kubelet.views import FullContainer, FullPod, FullProbe, KubeletPod

TRIES_MAX = 3

logger = logging.getLogger(__name__)


RunProbe: TypeAlias = Callable[[FullPod, FullContainer, FullProbe, str], Awaitable[ProbeResult]]
"""Runs one probe of a container, at the address of its pod. Raises `ProbeError`."""


async def run_probe(
    runner: CommandRunner, pod: FullPod, container: FullContainer, probe: FullProbe, pod_ip: str
) -> ProbeResult:
    """Run one probe of a real container. Raises `ProbeError`."""
    timeout_s = float(probe.timeout_seconds)
    if probe.exec is not None:
        return await probe_exec(runner, pod.metadata.uid, container, probe.exec, timeout_s)
    if probe.http_get is not None:
        return await probe_http(probe.http_get, pod_ip, port_number(probe.http_get.port, container), timeout_s)
    if probe.tcp_socket is not None:
        port = port_number(probe.tcp_socket.port, container)
        return await probe_tcp(probe.tcp_socket.host or pod_ip, port, timeout_s)
    if probe.grpc is not None:
        return await probe_grpc(pod_ip, probe.grpc.port, probe.grpc.service, timeout_s)
    metadata = pod.metadata
    who = f"{metadata.name}_{metadata.namespace}({metadata.uid}):{container.name}"
    raise ProbeError(f"missing probe handler for {who}")


def port_number(port: IntOrString, container: FullContainer) -> int:
    """A port by number or name. Raises `ProbeError`."""
    if isinstance(port, str):
        named = {own.name: own.container_port for own in container.ports if own.name}
        if port not in named and not port.isdecimal():
            raise ProbeError(f'strconv.Atoi: parsing "{port}": invalid syntax')
        port = named[port] if port in named else int(port)
    if not 0 < port < 65536:
        raise ProbeError(f"invalid port number: {port}")
    return port


class ProbeListener(Protocol):
    """Receives the health of containers."""

    def health_changed(self, pod_uid: str, container: str, attempt: int, health: ContainerHealth) -> None: ...

    def container_unhealthy(self, pod_uid: str, container: str, attempt: int, grace_s: float) -> None:
        """The container is to be killed, with this grace period."""
        ...

    def record_event(self, pod: KubeletPod, type: EventType, reason: str, message: str) -> None: ...


@dataclass(slots=True)
class _ProbeRun:
    pod: FullPod
    container: FullContainer
    role: Role
    attempt: int
    started_s: float
    pod_ip: str
    health: RunHealth
    is_over: bool = False
    has_started: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Prober:
    """Probes all containers of a kubelet."""

    def __init__(self, clock: Clock, run_probe: RunProbe, listener: ProbeListener) -> None:
        self._clock = clock
        self._run_probe = run_probe
        self._listener = listener
        self._group: TaskGroup | None = None
        self._runs: dict[tuple[str, str], _ProbeRun] = {}

    def start(self, group: TaskGroup) -> None:
        """Run probes as tasks of this group."""
        self._group = group

    def begin(
        self, pod: FullPod, container: FullContainer, role: Role, attempt: int, started_s: float, pod_ip: str
    ) -> None:
        """A container started at `started_s` (wall clock)."""
        assert self._group is not None, "the prober was not started"
        self.end(pod.metadata.uid, container.name)
        if role not in (Role.CONTAINER, Role.SIDECAR):
            return
        run = _ProbeRun(pod, container, role, attempt, started_s, pod_ip, RunHealth(container))
        self._runs[pod.metadata.uid, container.name] = run
        for kind, probe in probes_of(container).items():
            name = f"{kind.value} of {pod.key}/{container.name}"
            run.tasks.append(self._group.start_background(self._probe_periodically(run, kind, probe), name=name))

    def pod_stops(self, pod_uid: str) -> None:
        """Stop liveness and startup probes of a pod."""
        for run in self._runs_of(pod_uid):
            for kind in (ProbeKind.STARTUP, ProbeKind.LIVENESS):
                run.health.stop(kind)

    def end(self, pod_uid: str, container: str) -> None:
        """A container ended."""
        run = self._runs.pop((pod_uid, container), None)
        if run is not None:
            run.is_over = True
            for task in run.tasks:
                task.cancel()

    def forget(self, pod_uid: str) -> None:
        """A pod was deleted."""
        for run in list(self._runs_of(pod_uid)):
            self.end(pod_uid, run.container.name)

    def _runs_of(self, pod_uid: str) -> Iterator[_ProbeRun]:
        return (run for (uid, _), run in self._runs.items() if uid == pod_uid)

    # One probe

    async def _probe_periodically(self, run: _ProbeRun, kind: ProbeKind, probe: FullProbe) -> None:
        period_s = float(probe.period_seconds)
        next_s = self._clock.now_s() + (0.0 if kind is ProbeKind.READINESS else period_s)
        while True:
            if await self._wait_turn(run, kind, next_s):
                next_s = self._clock.now_s()
            if run.health.is_due(kind, self._clock.wall_s() - run.started_s):
                try:
                    await self._probe(run, kind, probe)
                except Exception:
                    logger.exception("the %s probe of %s/%s raised", kind.value, run.pod.key, run.container.name)
            next_s = max(next_s + period_s, self._clock.now_s())

    async def _wait_turn(self, run: _ProbeRun, kind: ProbeKind, next_s: float) -> bool:
        """Wait for the next probe; for readiness at most until the container has started. Returns whether it has just
        started."""
        delay_s = next_s - self._clock.now_s()
        if kind is not ProbeKind.READINESS or run.health.health.is_started:
            await self._clock.wait(delay_s)
            return False
        try:
            async with asyncio.timeout(delay_s):
                await run.has_started.wait()
        except TimeoutError:
            return False
        return True

    async def _probe(self, run: _ProbeRun, kind: ProbeKind, probe: FullProbe) -> None:
        try:
            answer = await self._probe_with_retries(run, probe)
        except ProbeError as error:
            self._notify(run, "Unhealthy", f"{kind.value} probe errored and resulted in unknown state: {error}")
            return
        if run.is_over:
            return
        if answer.outcome is ProbeOutcome.FAILURE:
            self._notify(run, "Unhealthy", f"{kind.value} probe failed: {answer.text}")
        elif answer.outcome is ProbeOutcome.WARNING:
            self._notify(run, "ProbeWarning", f"{kind.value} probe warning: {answer.text}")
        self._count(run, kind, probe, is_success=answer.outcome is not ProbeOutcome.FAILURE)

    async def _probe_with_retries(self, run: _ProbeRun, probe: FullProbe) -> ProbeResult:
        for _ in range(TRIES_MAX - 1):
            try:
                return await self._run_probe(run.pod, run.container, probe, run.pod_ip)
            except ProbeError:
                continue
        return await self._run_probe(run.pod, run.container, probe, run.pod_ip)

    def _count(self, run: _ProbeRun, kind: ProbeKind, probe: FullProbe, *, is_success: bool) -> None:
        uid, name, before = run.pod.metadata.uid, run.container.name, run.health.health
        is_to_be_killed = run.health.count(kind, is_success=is_success)
        health = run.health.health
        if health != before:
            self._listener.health_changed(uid, name, run.attempt, health)
        if health.is_started:
            run.has_started.set()
        if is_to_be_killed:
            message = kill_message(run.pod, run.container, kind, is_sidecar=run.role is Role.SIDECAR)
            self._listener.record_event(run.pod, "Normal", "Killing", message)
            self._listener.container_unhealthy(uid, name, run.attempt, kill_grace_s(run.pod, probe))

    def _notify(self, run: _ProbeRun, reason: str, message: str) -> None:
        if not run.is_over:
            self._listener.record_event(run.pod, "Warning", reason, message)


# --- health ---------------------------------------------------------------------------------------------------


GRACE_S = 30.0
"""The default grace period; the API server sets it on every pod."""


class ProbeKind(Enum):
    """The value is part of events."""

    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


@dataclass(frozen=True, slots=True)
class ContainerHealth:
    is_ready: bool
    is_started: bool


@dataclass(slots=True)
class _Count:
    was_success: bool | None = None
    times: int = 0


class RunHealth:
    """One run of a container."""

    def __init__(self, container: FullContainer) -> None:
        self._probes = probes_of(container)
        self._counts = {kind: _Count() for kind in self._probes}
        self._stopped: set[ProbeKind] = set()
        self._is_started = ProbeKind.STARTUP not in self._probes
        self._is_ready = ProbeKind.READINESS not in self._probes

    @property
    def health(self) -> ContainerHealth:
        return ContainerHealth(self._is_started and self._is_ready, self._is_started)

    def is_due(self, kind: ProbeKind, elapsed_s: float) -> bool:
        """Whether to run the probe now, `elapsed_s` after the start."""
        if kind in self._stopped or int(elapsed_s) < self._probes[kind].initial_delay_seconds:
            return False
        return self._is_started is (kind is not ProbeKind.STARTUP)

    def stop(self, kind: ProbeKind) -> None:
        """Stop this probe."""
        self._stopped.add(kind)

    def count(self, kind: ProbeKind, *, is_success: bool) -> bool:
        """Count a result. Returns whether to kill the container."""
        probe, count = self._probes[kind], self._counts[kind]
        count.times = count.times + 1 if count.was_success is is_success else 1
        count.was_success = is_success
        if count.times < (probe.success_threshold if is_success else probe.failure_threshold):
            return False
        match kind:
            case ProbeKind.READINESS:
                self._is_ready = is_success
            case ProbeKind.STARTUP:
                self._is_started = is_success
                self.stop(kind)
            case ProbeKind.LIVENESS if not is_success:
                self.stop(kind)
        return not is_success and kind is not ProbeKind.READINESS


def first_health(container: FullContainer) -> ContainerHealth:
    """The health of a container that just started."""
    return RunHealth(container).health


def probes_of(container: FullContainer) -> dict[ProbeKind, FullProbe]:
    every = {
        ProbeKind.STARTUP: container.startup_probe,
        ProbeKind.READINESS: container.readiness_probe,
        ProbeKind.LIVENESS: container.liveness_probe,
    }
    return {kind: probe for kind, probe in every.items() if probe is not None}


def kill_message(pod: FullPod, container: FullContainer, kind: ProbeKind, *, is_sidecar: bool) -> str:
    """The message of the event Killing."""
    why = f"failed {kind.value.lower()} probe"
    if is_sidecar:
        return f"Init container {container.name} {why}"
    policy = container.restart_policy or pod.spec.restart_policy
    return f"Container {container.name} {why}{'' if policy == 'Never' else ', will be restarted'}"


def kill_grace_s(pod: FullPod, probe: FullProbe) -> float:
    """The grace period of a container that a probe kills."""
    own, of_pod = probe.termination_grace_period_seconds, pod.spec.termination_grace_period_seconds
    if own is not None:
        return float(own)
    return float(of_pod) if of_pod is not None else GRACE_S
