"""One container, over all its runs: prepared, started, watched, stopped.

Comes in   start, stop, kill; what its shim reports; what probes find
Goes out   to `tell`: waiting, running, exited; events

    start ──> prepare ──> shim ──> Running ──> Exited        one task for each run
                 ^  └─ not ready: waits, tries again
    stop ──> preStop ──> SIGTERM ── grace ──> SIGKILL

 1. The next run begins after the last one is through with everything, its shim included.
 2. A container that is stopped before it runs is told no more.
 3. A run that ends in a way that nobody foresaw is told as one that could not be started; nothing is left waiting.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.full_views import FullContainer, FullPod, HTTPGetAction, LifecycleHandler
from mooring.kubelet.probes.handlers import (
    CommandError,
    CommandResult,
    CommandTimeout,
    ProbeError,
    ProbeOutcome,
    probe_http,
)
from mooring.kubelet.probes.health import Health, first_health
from mooring.kubelet.probes.prober import Prober, port_number
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.preparation import NotReadyError, Preparation, Prepared
from mooring.kubelet.processes.shim.client import Report, ShimProcess
from mooring.kubelet.runtime import START_ERROR, ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.timers import Timers
from mooring.kubelet.views import KubeletPod

MESSAGE_BYTES_MAX = 4096
LOG_BYTES_MAX = 2048
LOG_LINES_MAX = 80
_TAIL_BYTES = 64 * 1024
FALLBACK_POLICY = "FallbackToLogsOnError"
RETRY_S_MIN = 0.5
RETRY_S_MAX = 10.0
POST_START_S_MAX = 600.0
"""A hook may take its time, but not for ever."""
START_ERROR_CODE = 128
KILLED_CODE = 137

logger = logging.getLogger(__name__)


def termination_message(file: Path, log: Path, policy: str, code: int) -> str:
    """What the status tells of the end."""
    message = _head(file)
    if message or code == 0 or policy != FALLBACK_POLICY:
        return message.decode(errors="replace")
    return _log_tail(log).decode(errors="replace")


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MESSAGE_BYTES_MAX)
    except OSError:
        return b""


def _log_tail(log: Path) -> bytes:
    try:
        with log.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(max(0, size - _TAIL_BYTES))
            lines = opened.read().split(b"\n")
    except OSError:
        return b""
    # The first may be the rest of a line, and the last is empty.
    whole = lines[1 if size > _TAIL_BYTES else 0 : -1][-LOG_LINES_MAX:]
    texts = [line.split(b" ", 3) for line in whole]
    said = b"".join(parts[3] + (b"\n" if parts[2] == b"F" else b"") for parts in texts if len(parts) == 4)
    return said[-LOG_BYTES_MAX:]


class HookError(Exception):
    """It did not go well."""


RunCommand = Callable[[tuple[str, ...], float], Awaitable[CommandResult]]


async def run_hook(
    handler: LifecycleHandler,
    container: FullContainer,
    address: str,
    run_command: RunCommand,
    clock: Clock,
    s_max: float,
) -> None:
    """Do what it says, for `s_max` at most. Raises `HookError`."""
    if handler.exec is not None:
        await _run(handler.exec.command, run_command, s_max)
    elif handler.sleep is not None:
        await clock.wait(min(float(handler.sleep.seconds), s_max))
    elif handler.http_get is not None:
        await _get(handler.http_get, container, address, s_max)


async def _get(action: HTTPGetAction, container: FullContainer, address: str, s_max: float) -> None:
    try:
        answer = await probe_http(action, action.host or address, port_number(action.port, container), s_max)
    except ProbeError as fault:
        raise HookError(str(fault)) from None
    if answer.outcome is ProbeOutcome.FAILURE:
        raise HookError(answer.text)


async def _run(command: tuple[str, ...], run_command: RunCommand, s_max: float) -> None:
    try:
        result = await run_command(command, s_max)
    except CommandTimeout:
        raise HookError(f"the command took longer than {s_max:g} s") from None
    except CommandError as error:
        raise HookError(str(error)) from None
    if result.code:
        said = result.output.decode(errors="replace")
        raise HookError(f"command terminated with exit code {result.code}: {said}")


@dataclass(frozen=True, slots=True)
class ContainerContext:
    """What all containers of a kubelet use."""

    clock: Clock
    timers: Timers
    directories: PodDirectories
    preparation: Preparation
    prober: Prober
    group: TaskGroup
    address: str
    """Where the processes are reached."""
    tell: Callable[[str, str, int, ContainerState], None]
    record_event: Callable[[KubeletPod, bool, str, str], None]


class ProcessContainer:
    """One container of a pod."""

    def __init__(self, pod: FullPod, container: FullContainer, role: Role, context: ContainerContext) -> None:
        self.pod = pod
        self.container = container
        self._role = role
        self._context = context
        self._attempt = 0
        self._running: Running | None = None
        self._shim: ShimProcess | None = None
        self._pid = 0
        self._directory = ""
        self._is_stopping = False
        self._run: asyncio.Task[None] | None = None
        self._commands: dict[int, asyncio.Future[Report]] = {}
        self._commands_begun = 0

    # ------------------------------------------------------------------------------------------------ from outside

    def start(self, attempt: int) -> None:
        before = self._run
        self._attempt = attempt
        self._is_stopping = False
        name = f"{self.pod.key}/{self.container.name} {attempt}"
        self._run = self._context.group.start_background(self._run_once(attempt, before), name=name)

    def stop(self, grace_s: float) -> None:
        """Ask it to end, and end it after the grace; a second time only moves the end."""
        if self._run is None or self._run.done():
            return
        if self._running is None:
            self._is_stopping = True
            self._run.cancel()
            return
        self._context.timers.set(self._timer_key, grace_s, self.kill)
        if not self._is_stopping:
            self._is_stopping = True
            self._context.group.start_background(self._terminate_process(grace_s), name=f"{self.pod.key} stops")

    def kill(self) -> None:
        """At once."""
        self._is_stopping = True
        if self._shim is not None:
            self._shim.kill()
        elif self._run is not None:
            self._run.cancel()

    def is_running(self, attempt: int) -> bool:
        return attempt == self._attempt and self._running is not None

    async def wait_ended(self) -> None:
        """Until nothing of it is left."""
        if self._run is not None:
            await asyncio.wait([self._run])

    def health_changed(self, attempt: int, health: Health) -> None:
        if self._running is not None and attempt == self._attempt:
            self._running = Running(self._running.started_s, health.is_ready, health.is_started)
            self._tell(self._running)

    async def run_command(self, argv: tuple[str, ...], timeout_s: float) -> CommandResult:
        """A command beside its process. Raises `CommandTimeout` and `CommandError`."""
        if self._shim is None or not self._pid:
            raise CommandError("the container does not run")
        number = self._commands_begun = self._commands_begun + 1
        future = self._commands[number] = asyncio.get_running_loop().create_future()
        self._shim.run(number, self._context.preparation.beside(argv, self._directory, self._pid), timeout_s)
        try:
            report = await future
        finally:
            self._commands.pop(number, None)
        if report.is_timed_out:
            raise CommandTimeout
        if report.refusal:
            raise CommandError(report.refusal)
        return CommandResult(report.code, report.output.encode())

    # --------------------------------------------------------------------------------------------------- one run

    async def _run_once(self, attempt: int, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            prepared = await self._prepare(attempt)
            if prepared is not None:
                await self._run_process(prepared)
        except Exception as error:
            logger.exception("container %s of pod %s cannot be run", self.container.name, self.pod.key)
            self._report_start_error(f"{type(error).__name__}: {error}", self._context.clock.wall_s())
        finally:
            self._forget_run()

    async def _prepare(self, attempt: int) -> Prepared | None:
        """None: it will never be ready."""
        retry_s, told = RETRY_S_MIN, ""
        while True:
            try:
                return await self._context.preparation.prepare(self.pod, self.container, attempt)
            except NotReadyError as error:
                if str(error) != told:
                    told = str(error)
                    self._report_not_ready(error)
                if not error.can_help_to_retry:
                    return None
            await self._context.clock.wait(retry_s)
            retry_s = min(2 * retry_s, RETRY_S_MAX)

    async def _run_process(self, prepared: Prepared) -> None:
        if prepared.warning:
            self._context.record_event(self.pod, True, "MountsUnavailable", prepared.warning)
        self._directory = prepared.directory
        shim = self._shim = await ShimProcess.start(prepared.wanted)
        has_ended = False
        try:
            async for report in shim.reports():
                has_ended = self._read_control(report) or has_ended
        finally:
            await shim.close()
        if not has_ended:
            message = "the process that watches over it has ended, and it was killed"
            self._report_exited(Report(exited=KILLED_CODE, at=self._context.clock.wall_s()), message)

    def _read_control(self, report: Report) -> bool:
        """Says whether that was the end."""
        if report.running:
            self._report_running(report)
        elif report.ran is not None:
            waiting = self._commands.get(report.ran)
            if waiting is not None and not waiting.done():
                waiting.set_result(report)
        elif report.failed:
            self._report_start_error(f"failed to start the process: {report.failed}", report.at)
            return True
        elif report.exited is not None:
            self._report_exited(report, "")
            return True
        return False

    def _forget_run(self) -> None:
        self._context.timers.cancel(self._timer_key)
        self._context.prober.end(self.pod.metadata.uid, self.container.name)
        self._running, self._shim, self._pid = None, None, 0
        for waiting in self._commands.values():
            if not waiting.done():
                waiting.set_result(Report(refusal="the container has ended"))

    # ------------------------------------------------------------------------------------------------------ stopping

    async def _terminate_process(self, grace_s: float) -> None:
        lifecycle, shim = self.container.lifecycle, self._shim
        if lifecycle is not None and lifecycle.pre_stop is not None:
            await self._hook("FailedPreStopHook", "PreStopHook", lifecycle.pre_stop, grace_s)
        if shim is not None and shim is self._shim:
            shim.signal(_signal_of(lifecycle.stop_signal if lifecycle is not None else ""))

    async def _hook(self, reason: str, what: str, handler: LifecycleHandler, s_max: float) -> bool:
        try:
            await run_hook(handler, self.container, self._context.address, self.run_command, self._context.clock, s_max)
        except HookError as error:
            self._context.record_event(self.pod, True, reason, f"{what} failed: {error}")
            return False
        return True

    async def _after_start(self, handler: LifecycleHandler) -> None:
        if not await self._hook("FailedPostStartHook", "PostStartHook", handler, POST_START_S_MAX):
            self.stop(float(self.pod.spec.termination_grace_period_seconds or 0))

    # ------------------------------------------------------------------------------------------------------- telling

    def _report_not_ready(self, error: NotReadyError) -> None:
        if error.event:
            self._context.record_event(self.pod, True, error.event, str(error))
        else:
            logger.warning("container %s of pod %s has to wait: %s", self.container.name, self.pod.key, error)
        creating = Waiting("PodInitializing" if self.pod.spec.init_containers else "ContainerCreating")
        self._tell(error.waiting if error.waiting is not None else creating)

    def _report_running(self, report: Report) -> None:
        context, health = self._context, first_health(self.container)
        self._pid = report.running
        self._running = Running(report.at, health.is_ready, health.is_started)
        self._tell(self._running)
        context.prober.begin(self.pod, self.container, self._role, self._attempt, report.at, context.address)
        lifecycle = self.container.lifecycle
        if lifecycle is not None and lifecycle.post_start is not None:
            context.group.start_background(self._after_start(lifecycle.post_start), name=f"{self.pod.key} postStart")

    def _report_start_error(self, message: str, wall_s: float) -> None:
        """As a kubelet with containerd: it was started at the beginning of all times, and ended now."""
        self._context.record_event(self.pod, True, "Failed", f"Error: {message}")
        self._end(Exited(START_ERROR_CODE, 0.0, wall_s, START_ERROR, message))

    def _report_exited(self, report: Report, message: str) -> None:
        assert report.exited is not None
        uid, name, directories = self.pod.metadata.uid, self.container.name, self._context.directories
        policy = self.container.termination_message_policy
        file, log = directories.termination_log(uid, name), directories.log(uid, name, self._attempt)
        message = message or termination_message(file, log, policy, report.exited)
        reason = "OOMKilled" if report.is_out_of_memory else "Error" if report.exited else "Completed"
        started_s = self._running.started_s if self._running is not None else report.at
        self._end(Exited(report.exited, started_s, report.at, reason, message))

    def _end(self, state: Exited) -> None:
        self._running = None
        self._context.prober.end(self.pod.metadata.uid, self.container.name)
        self._context.timers.cancel(self._timer_key)
        self._tell(state)

    def _tell(self, state: ContainerState) -> None:
        self._context.tell(self.pod.metadata.uid, self.container.name, self._attempt, state)

    @property
    def _timer_key(self) -> tuple[str, str, str]:
        return ("kill", self.pod.metadata.uid, self.container.name)


def _signal_of(name: str) -> int:
    """The signal that asks it to end."""
    with suppress(KeyError):
        return signal.Signals[name] if name else signal.SIGTERM
    return signal.SIGTERM
