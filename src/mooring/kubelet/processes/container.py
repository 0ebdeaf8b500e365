"""One container of the process runtime, over all its runs: prepare, start, watch, stop.

Input: start, stop and kill; reports of its shim; probe results. Output: container states; events.

    start ──> prepare ──> shim ──> Running ──> Exited        one task for each run
                 ^  └─ not ready: wait and retry
    stop ──> preStop ──> SIGTERM ── grace ──> SIGKILL

 1. A run begins after the previous one has ended completely, including its shim.
 2. A container that is stopped before it runs reports nothing more.
 3. A run that fails in an unexpected way is reported as a start error.
 4. The termination message is the termination log, at most 4,096 bytes. With FallbackToLogsOnError a failed container
    without one gets the end of its log, at most 2,048 bytes or 80 lines.
 5. tcpSocket hooks are accepted and ignored, as in Kubernetes.
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
from mooring.kubelet.probes.handlers import (
    CommandError,
    CommandResult,
    CommandTimeout,
    ProbeError,
    ProbeOutcome,
    probe_http,
)
from mooring.kubelet.probes.prober import ContainerHealth, Prober, first_health, port_number
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.preparation import ContainerPreparer, NotReadyError, PreparedContainer
from mooring.kubelet.processes.shim.client import ShimProcess, ShimReport
from mooring.kubelet.runtime import START_ERROR, ContainerState, Exited, RecordEvent, Role, Running, Waiting
from mooring.kubelet.timers import Timers
from mooring.kubelet.views import FullContainer, FullPod, HTTPGetAction, LifecycleHandler

MESSAGE_BYTES_MAX = 4096
LOG_BYTES_MAX = 2048
LOG_LINES_MAX = 80
_TAIL_BYTES = 64 * 1024
FALLBACK_POLICY = "FallbackToLogsOnError"
RETRY_S_MIN = 0.5
RETRY_S_MAX = 10.0
POST_START_S_MAX = 600.0
"""The timeout of a postStart hook."""
START_ERROR_CODE = 128
KILLED_CODE = 137

logger = logging.getLogger(__name__)


def termination_message(file: Path, log: Path, policy: str, code: int) -> str:
    """The message of the terminated state."""
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
    # The first line may be cut, and the last one is empty.
    whole = lines[1 if size > _TAIL_BYTES else 0 : -1][-LOG_LINES_MAX:]
    texts = [line.split(b" ", 3) for line in whole]
    output = b"".join(parts[3] + (b"\n" if parts[2] == b"F" else b"") for parts in texts if len(parts) == 4)
    return output[-LOG_BYTES_MAX:]


class HookError(Exception):
    """A hook failed."""


RunCommand = Callable[[tuple[str, ...], float], Awaitable[CommandResult]]


async def run_hook(
    handler: LifecycleHandler,
    container: FullContainer,
    address: str,
    run_command: RunCommand,
    clock: Clock,
    s_max: float,
) -> None:
    """Run a hook, for at most `s_max`. Raises `HookError`."""
    if handler.exec is not None:
        await _run(handler.exec.command, run_command, s_max)
    elif handler.sleep is not None:
        await clock.wait(min(float(handler.sleep.seconds), s_max))
    elif handler.http_get is not None:
        await _get(handler.http_get, container, address, s_max)


async def _get(action: HTTPGetAction, container: FullContainer, address: str, s_max: float) -> None:
    try:
        answer = await probe_http(action, action.host or address, port_number(action.port, container), s_max)
    except ProbeError as error:
        raise HookError(str(error)) from None
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
        output = result.output.decode(errors="replace")
        raise HookError(f"command terminated with exit code {result.code}: {output}")


@dataclass(frozen=True, slots=True)
class ContainerContext:
    """What all containers of the kubelet share."""

    clock: Clock
    timers: Timers
    directories: PodDirectories
    preparation: ContainerPreparer
    prober: Prober
    group: TaskGroup
    address: str
    """The address of the processes."""
    report_state: Callable[[str, str, int, ContainerState], None]
    record_event: RecordEvent


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
        self._is_stopping = False
        self._run: asyncio.Task[None] | None = None
        self._commands: dict[int, asyncio.Future[ShimReport]] = {}
        self._commands_begun = 0

    # Runtime

    def start(self, attempt: int) -> None:
        before = self._run
        self._attempt = attempt
        self._is_stopping = False
        name = f"{self.pod.key}/{self.container.name} {attempt}"
        self._run = self._context.group.start_background(self._run_once(attempt, before), name=name)

    def stop(self, grace_s: float) -> None:
        """Stop it, and kill it after the grace period. A second call only moves the kill."""
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
        """Kill it at once."""
        self._is_stopping = True
        if self._shim is not None:
            self._shim.kill()
        elif self._run is not None:
            self._run.cancel()

    def is_running(self, attempt: int) -> bool:
        return attempt == self._attempt and self._running is not None

    async def wait_ended(self) -> None:
        """Wait until nothing of it is left."""
        if self._run is not None:
            await asyncio.wait([self._run])

    def health_changed(self, attempt: int, health: ContainerHealth) -> None:
        if self._running is not None and attempt == self._attempt:
            self._running = Running(self._running.started_s, health.is_ready, health.is_started)
            self._report_state(self._running)

    async def run_command(self, argv: tuple[str, ...], timeout_s: float) -> CommandResult:
        """Run a command in the container. Raises `CommandTimeout` and `CommandError`."""
        if self._shim is None or not self._pid:
            raise CommandError("the container does not run")
        number = self._commands_begun = self._commands_begun + 1
        future = self._commands[number] = asyncio.get_running_loop().create_future()
        self._shim.run(number, argv, timeout_s)
        try:
            report = await future
        finally:
            self._commands.pop(number, None)
        if report.is_timed_out:
            raise CommandTimeout
        if report.error:
            raise CommandError(report.error)
        return CommandResult(report.code, report.output.encode())

    # One run

    async def _run_once(self, attempt: int, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            prepared = await self._prepare(attempt)
            if prepared is not None:
                await self._run_process(prepared)
        except Exception as error:
            logger.exception("running container %s of pod %s failed", self.container.name, self.pod.key)
            self._report_start_error(f"{type(error).__name__}: {error}", self._context.clock.wall_s())
        finally:
            self._forget_run()

    async def _prepare(self, attempt: int) -> PreparedContainer | None:
        """None: a retry cannot help."""
        retry_s, reported = RETRY_S_MIN, ""
        while True:
            try:
                return await self._context.preparation.prepare(self.pod, self.container, attempt)
            except NotReadyError as error:
                if str(error) != reported:
                    reported = str(error)
                    self._report_not_ready(error)
                if not error.can_help_to_retry:
                    return None
            await self._context.clock.wait(retry_s)
            retry_s = min(2 * retry_s, RETRY_S_MAX)

    async def _run_process(self, prepared: PreparedContainer) -> None:
        if prepared.warning:
            self._context.record_event(self.pod, "Warning", "MountsUnavailable", prepared.warning)
        shim = self._shim = await ShimProcess.start(prepared.config)
        has_ended = False
        try:
            async for report in shim.reports():
                has_ended = self._handle_report(report) or has_ended
        finally:
            await shim.close()
        if not has_ended:
            message = "the shim ended, and the container was killed"
            self._report_exited(ShimReport(exited=KILLED_CODE, at=self._context.clock.wall_s()), message)

    def _handle_report(self, report: ShimReport) -> bool:
        """Handle a report. Returns whether the container has ended."""
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
                waiting.set_result(ShimReport(error="the container has ended"))

    # Stopping

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
            self._context.record_event(self.pod, "Warning", reason, f"{what} failed: {error}")
            return False
        return True

    async def _after_start(self, handler: LifecycleHandler) -> None:
        if not await self._hook("FailedPostStartHook", "PostStartHook", handler, POST_START_S_MAX):
            self.stop(float(self.pod.spec.termination_grace_period_seconds or 0))

    # Reports

    def _report_not_ready(self, error: NotReadyError) -> None:
        if error.event:
            self._context.record_event(self.pod, "Warning", error.event, str(error))
        else:
            logger.warning("container %s of pod %s is not ready to start: %s", self.container.name, self.pod.key, error)
        creating = Waiting("PodInitializing" if self.pod.spec.init_containers else "ContainerCreating")
        self._report_state(error.waiting if error.waiting is not None else creating)

    def _report_running(self, report: ShimReport) -> None:
        context, health = self._context, first_health(self.container)
        self._pid = report.running
        self._running = Running(report.at, health.is_ready, health.is_started)
        self._report_state(self._running)
        context.prober.begin(self.pod, self.container, self._role, self._attempt, report.at, context.address)
        lifecycle = self.container.lifecycle
        if lifecycle is not None and lifecycle.post_start is not None:
            context.group.start_background(self._after_start(lifecycle.post_start), name=f"{self.pod.key} postStart")

    def _report_start_error(self, message: str, wall_s: float) -> None:
        """As a kubelet with containerd: the start time is the epoch."""
        self._context.record_event(self.pod, "Warning", "Failed", f"Error: {message}")
        self._end(Exited(START_ERROR_CODE, 0.0, wall_s, START_ERROR, message))

    def _report_exited(self, report: ShimReport, message: str) -> None:
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
        self._report_state(state)

    def _report_state(self, state: ContainerState) -> None:
        self._context.report_state(self.pod.metadata.uid, self.container.name, self._attempt, state)

    @property
    def _timer_key(self) -> tuple[str, str, str]:
        return ("kill", self.pod.metadata.uid, self.container.name)


def _signal_of(name: str) -> int:
    """The stop signal."""
    with suppress(KeyError):
        return signal.Signals[name] if name else signal.SIGTERM
    return signal.SIGTERM
