"""The prober: when each container is asked, and who hears what came of it.

Comes in   containers that started, and that ended
Goes out   to a listener: another health, a container to be killed; events

One task for each probe of a running container:

    start ── period ── ask ── period ── ask ...           readiness is asked at the start, and again at once when the
                                                          container has come up: somebody waits for it

 1. Answers count in `health`; a question that could not be put counts neither way, after `TRIES_MAX` tries.
 2. A probe that takes longer than its period skips what it missed.
 3. After `end` nothing is told of that run any more.
 4. A pod that is being stopped is not asked whether it lives or has started, only whether it is ready.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from mooring.api.views.base import IntOrString
from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.full_views import WholeContainer, WholePod, WholeProbe
from mooring.kubelet.probes.grpc import ask_grpc
from mooring.kubelet.probes.handlers import (
    Answer,
    CommandRunner,
    Outcome,
    ProbeFault,
    ask_command,
    ask_http,
    ask_socket,
)
from mooring.kubelet.probes.health import Health, ProbeKind, RunHealth, kill_grace_s, kill_message, probes_of
from mooring.kubelet.runtime import Role
from mooring.kubelet.views import KubeletPod

TRIES_MAX = 3

logger = logging.getLogger(__name__)


class ProbeAsker:
    """Asks real containers."""

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner

    async def ask(self, pod: WholePod, container: WholeContainer, probe: WholeProbe, pod_ip: str) -> Answer:
        """Raises `ProbeFault`."""
        timeout_s = float(probe.timeout_seconds)
        if probe.exec is not None:
            return await ask_command(self._runner, pod.metadata.uid, container, probe.exec, timeout_s)
        if probe.http_get is not None:
            return await ask_http(probe.http_get, pod_ip, port_number(probe.http_get.port, container), timeout_s)
        if probe.tcp_socket is not None:
            port = port_number(probe.tcp_socket.port, container)
            return await ask_socket(probe.tcp_socket.host or pod_ip, port, timeout_s)
        if probe.grpc is not None:
            return await ask_grpc(pod_ip, probe.grpc.port, probe.grpc.service, timeout_s)
        metadata = pod.metadata
        who = f"{metadata.name}_{metadata.namespace}({metadata.uid}):{container.name}"
        raise ProbeFault(f"missing probe handler for {who}")


def port_number(port: IntOrString, container: WholeContainer) -> int:
    """A port by its number or by its name. Raises `ProbeFault`."""
    if isinstance(port, str):
        named = {own.name: own.container_port for own in container.ports if own.name}
        if port not in named and not port.isdecimal():
            raise ProbeFault(f'strconv.Atoi: parsing "{port}": invalid syntax')
        port = named[port] if port in named else int(port)
    if not 0 < port < 65536:
        raise ProbeFault(f"invalid port number: {port}")
    return port


class Asker(Protocol):
    """Who asks containers."""

    async def ask(self, pod: WholePod, container: WholeContainer, probe: WholeProbe, pod_ip: str) -> Answer:
        """Raises `ProbeFault`."""
        ...


class ProbeListener(Protocol):
    """Who hears of containers' health."""

    def health_changed(self, pod_uid: str, container: str, attempt: int, health: Health) -> None: ...

    def container_unhealthy(self, pod_uid: str, container: str, attempt: int, grace_s: float) -> None:
        """It is to be killed, and may take so long to end."""
        ...

    def tell_event(self, pod: KubeletPod, is_warning: bool, reason: str, message: str) -> None: ...


@dataclass(slots=True)
class _Run:
    pod: WholePod
    container: WholeContainer
    role: Role
    attempt: int
    started_s: float
    pod_ip: str
    health: RunHealth
    is_over: bool = False
    has_come_up: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Prober:
    """Asks all containers of a kubelet."""

    def __init__(self, clock: Clock, asker: Asker, listener: ProbeListener) -> None:
        self._clock = clock
        self._asker = asker
        self._listener = listener
        self._group: TaskGroup | None = None
        self._runs: dict[tuple[str, str], _Run] = {}

    def start(self, group: TaskGroup) -> None:
        """Tasks live in that group from now on."""
        self._group = group

    def begin(
        self, pod: WholePod, container: WholeContainer, role: Role, attempt: int, started_s: float, pod_ip: str
    ) -> None:
        """A container runs, since `started_s` by the wall clock."""
        assert self._group is not None, "the prober was not started"
        self.end(pod.metadata.uid, container.name)
        if role not in (Role.CONTAINER, Role.SIDECAR):
            return
        run = _Run(pod, container, role, attempt, started_s, pod_ip, RunHealth(container))
        self._runs[pod.metadata.uid, container.name] = run
        for kind, probe in probes_of(container).items():
            name = f"{kind.value} of {pod.key}/{container.name}"
            run.tasks.append(self._group.start_background(self._ask_regularly(run, kind, probe), name=name))

    def pod_stops(self, pod_uid: str) -> None:
        """Nobody minds any more whether it lives."""
        for run in self._runs_of(pod_uid):
            for kind in (ProbeKind.STARTUP, ProbeKind.LIVENESS):
                run.health.hold(kind)

    def end(self, pod_uid: str, container: str) -> None:
        """A container runs no more."""
        run = self._runs.pop((pod_uid, container), None)
        if run is not None:
            run.is_over = True
            for task in run.tasks:
                task.cancel()

    def forget(self, pod_uid: str) -> None:
        """A pod is gone."""
        for run in list(self._runs_of(pod_uid)):
            self.end(pod_uid, run.container.name)

    def _runs_of(self, pod_uid: str) -> Iterator[_Run]:
        return (run for (uid, _), run in self._runs.items() if uid == pod_uid)

    # ------------------------------------------------------------------------------------------------ one probe

    async def _ask_regularly(self, run: _Run, kind: ProbeKind, probe: WholeProbe) -> None:
        period_s = float(probe.period_seconds)
        next_s = self._clock.now_s() + (0.0 if kind is ProbeKind.READINESS else period_s)
        while True:
            if await self._wait_turn(run, kind, next_s):
                next_s = self._clock.now_s()
            if run.health.wants(kind, self._clock.wall_s() - run.started_s):
                try:
                    await self._ask(run, kind, probe)
                except Exception:
                    logger.exception("the %s probe of %s/%s broke", kind.value, run.pod.key, run.container.name)
            next_s = max(next_s + period_s, self._clock.now_s())

    async def _wait_turn(self, run: _Run, kind: ProbeKind, next_s: float) -> bool:
        """Until it is time; for readiness, until the container has come up, if that is sooner. Says whether it was."""
        delay_s = next_s - self._clock.now_s()
        if kind is not ProbeKind.READINESS or run.health.health.is_started:
            await self._clock.wait(delay_s)
            return False
        try:
            async with asyncio.timeout(delay_s):
                await run.has_come_up.wait()
        except TimeoutError:
            return False
        return True

    async def _ask(self, run: _Run, kind: ProbeKind, probe: WholeProbe) -> None:
        try:
            answer = await self._answer(run, probe)
        except ProbeFault as fault:
            self._tell(run, "Unhealthy", f"{kind.value} probe errored and resulted in unknown state: {fault}")
            return
        if run.is_over:
            return
        if answer.outcome is Outcome.FAILURE:
            self._tell(run, "Unhealthy", f"{kind.value} probe failed: {answer.text}")
        elif answer.outcome is Outcome.WARNING:
            self._tell(run, "ProbeWarning", f"{kind.value} probe warning: {answer.text}")
        self._count(run, kind, probe, is_success=answer.outcome is not Outcome.FAILURE)

    async def _answer(self, run: _Run, probe: WholeProbe) -> Answer:
        for _ in range(TRIES_MAX - 1):
            try:
                return await self._asker.ask(run.pod, run.container, probe, run.pod_ip)
            except ProbeFault:
                continue
        return await self._asker.ask(run.pod, run.container, probe, run.pod_ip)

    def _count(self, run: _Run, kind: ProbeKind, probe: WholeProbe, *, is_success: bool) -> None:
        uid, name, before = run.pod.metadata.uid, run.container.name, run.health.health
        is_to_be_killed = run.health.count(kind, is_success=is_success)
        health = run.health.health
        if health != before:
            self._listener.health_changed(uid, name, run.attempt, health)
        if health.is_started:
            run.has_come_up.set()
        if is_to_be_killed:
            message = kill_message(run.pod, run.container, kind, is_sidecar=run.role is Role.SIDECAR)
            self._listener.tell_event(run.pod, False, "Killing", message)
            self._listener.container_unhealthy(uid, name, run.attempt, kill_grace_s(run.pod, probe))

    def _tell(self, run: _Run, reason: str, message: str) -> None:
        if not run.is_over:
            self._listener.tell_event(run.pod, True, reason, message)
