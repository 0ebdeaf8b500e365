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
from mooring.kubelet.full_views import HTTPGetAction, LifecycleHandler, WholeContainer, WholePod
from mooring.kubelet.probes.handlers import CommandError, CommandResult, CommandTimeout, Outcome, ProbeFault, ask_http
from mooring.kubelet.probes.health import Health, first_health
from mooring.kubelet.probes.prober import Prober, port_number
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.preparation import NotReadyError, Preparation, Prepared
from mooring.kubelet.processes.shim.client import Report, ShimProcess
from mooring.kubelet.runtime import START_ERROR, ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.timers import Alarms
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
    container: WholeContainer,
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


async def _get(action: HTTPGetAction, container: WholeContainer, address: str, s_max: float) -> None:
    try:
        answer = await ask_http(action, action.host or address, port_number(action.port, container), s_max)
    except ProbeFault as fault:
        raise HookError(str(fault)) from None
    if answer.outcome is Outcome.FAILURE:
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
class Household:
    """What all containers of a kubelet use."""

    clock: Clock
    alarms: Alarms
    directories: PodDirectories
    preparation: Preparation
    prober: Prober
    group: TaskGroup
    address: str
    """Where the processes are reached."""
    tell: Callable[[str, str, int, ContainerState], None]
    tell_event: Callable[[KubeletPod, bool, str, str], None]


class ProcessContainer:
    """One container of a pod."""

    def __init__(self, pod: WholePod, container: WholeContainer, role: Role, household: Household) -> None:
        self.pod = pod
        self.container = container
        self._role = role
        self._household = household
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
        self._run = self._household.group.start_background(self._run_once(attempt, before), name=name)

    def stop(self, grace_s: float) -> None:
        """Ask it to end, and end it after the grace; a second time only moves the end."""
        if self._run is None or self._run.done():
            return
        if self._running is None:
            self._is_stopping = True
            self._run.cancel()
            return
        self._household.alarms.set(self._alarm, grace_s, self.kill)
        if not self._is_stopping:
            self._is_stopping = True
            self._household.group.start_background(self._ask_to_end(grace_s), name=f"{self.pod.key} stops")

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
        self._shim.run(number, self._household.preparation.beside(argv, self._directory, self._pid), timeout_s)
        try:
            report = await future
        finally:
            self._commands.pop(number, None)
        if report.is_late:
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
                await self._have_run(prepared)
        except Exception as error:
            logger.exception("container %s of pod %s cannot be run", self.container.name, self.pod.key)
            self._tell_not_started(f"{type(error).__name__}: {error}", self._household.clock.wall_s())
        finally:
            self._forget_run()

    async def _prepare(self, attempt: int) -> Prepared | None:
        """None: it will never be ready."""
        retry_s, told = RETRY_S_MIN, ""
        while True:
            try:
                return await self._household.preparation.prepare(self.pod, self.container, attempt)
            except NotReadyError as error:
                if str(error) != told:
                    told = str(error)
                    self._tell_not_ready(error)
                if not error.can_help_to_retry:
                    return None
            await self._household.clock.wait(retry_s)
            retry_s = min(2 * retry_s, RETRY_S_MAX)

    async def _have_run(self, prepared: Prepared) -> None:
        if prepared.warning:
            self._household.tell_event(self.pod, True, "MountsUnavailable", prepared.warning)
        self._directory = prepared.directory
        shim = self._shim = await ShimProcess.start(prepared.wanted)
        has_ended = False
        try:
            async for report in shim.reports():
                has_ended = self._hear(report) or has_ended
        finally:
            await shim.close()
        if not has_ended:
            message = "the process that watches over it has ended, and it was killed"
            self._tell_exited(Report(exited=KILLED_CODE, at=self._household.clock.wall_s()), message)

    def _hear(self, report: Report) -> bool:
        """Says whether that was the end."""
        if report.running:
            self._tell_running(report)
        elif report.ran is not None:
            waiting = self._commands.get(report.ran)
            if waiting is not None and not waiting.done():
                waiting.set_result(report)
        elif report.failed:
            self._tell_not_started(f"failed to start the process: {report.failed}", report.at)
            return True
        elif report.exited is not None:
            self._tell_exited(report, "")
            return True
        return False

    def _forget_run(self) -> None:
        self._household.alarms.cancel(self._alarm)
        self._household.prober.end(self.pod.metadata.uid, self.container.name)
        self._running, self._shim, self._pid = None, None, 0
        for waiting in self._commands.values():
            if not waiting.done():
                waiting.set_result(Report(refusal="the container has ended"))

    # ------------------------------------------------------------------------------------------------------ stopping

    async def _ask_to_end(self, grace_s: float) -> None:
        lifecycle, shim = self.container.lifecycle, self._shim
        if lifecycle is not None and lifecycle.pre_stop is not None:
            await self._hook("FailedPreStopHook", "PreStopHook", lifecycle.pre_stop, grace_s)
        if shim is not None and shim is self._shim:
            shim.signal(_signal_of(lifecycle.stop_signal if lifecycle is not None else ""))

    async def _hook(self, reason: str, what: str, handler: LifecycleHandler, s_max: float) -> bool:
        try:
            await run_hook(
                handler, self.container, self._household.address, self.run_command, self._household.clock, s_max
            )
        except HookError as error:
            self._household.tell_event(self.pod, True, reason, f"{what} failed: {error}")
            return False
        return True

    async def _after_start(self, handler: LifecycleHandler) -> None:
        if not await self._hook("FailedPostStartHook", "PostStartHook", handler, POST_START_S_MAX):
            self.stop(float(self.pod.spec.termination_grace_period_seconds or 0))

    # ------------------------------------------------------------------------------------------------------- telling

    def _tell_not_ready(self, error: NotReadyError) -> None:
        if error.event:
            self._household.tell_event(self.pod, True, error.event, str(error))
        else:
            logger.warning("container %s of pod %s has to wait: %s", self.container.name, self.pod.key, error)
        creating = Waiting("PodInitializing" if self.pod.spec.init_containers else "ContainerCreating")
        self._tell(error.shown if error.shown is not None else creating)

    def _tell_running(self, report: Report) -> None:
        household, health = self._household, first_health(self.container)
        self._pid = report.running
        self._running = Running(report.at, health.is_ready, health.is_started)
        self._tell(self._running)
        household.prober.begin(self.pod, self.container, self._role, self._attempt, report.at, household.address)
        lifecycle = self.container.lifecycle
        if lifecycle is not None and lifecycle.post_start is not None:
            household.group.start_background(self._after_start(lifecycle.post_start), name=f"{self.pod.key} postStart")

    def _tell_not_started(self, message: str, wall_s: float) -> None:
        """As a kubelet with containerd: it was started at the beginning of all times, and ended now."""
        self._household.tell_event(self.pod, True, "Failed", f"Error: {message}")
        self._end(Exited(START_ERROR_CODE, 0.0, wall_s, START_ERROR, message))

    def _tell_exited(self, report: Report, message: str) -> None:
        assert report.exited is not None
        uid, name, directories = self.pod.metadata.uid, self.container.name, self._household.directories
        policy = self.container.termination_message_policy
        file, log = directories.termination_log(uid, name), directories.log(uid, name, self._attempt)
        message = message or termination_message(file, log, policy, report.exited)
        reason = "OOMKilled" if report.is_out_of_memory else "Error" if report.exited else "Completed"
        started_s = self._running.started_s if self._running is not None else report.at
        self._end(Exited(report.exited, started_s, report.at, reason, message))

    def _end(self, state: Exited) -> None:
        self._running = None
        self._household.prober.end(self.pod.metadata.uid, self.container.name)
        self._household.alarms.cancel(self._alarm)
        self._tell(state)

    def _tell(self, state: ContainerState) -> None:
        self._household.tell(self.pod.metadata.uid, self.container.name, self._attempt, state)

    @property
    def _alarm(self) -> tuple[str, str, str]:
        return ("kill", self.pod.metadata.uid, self.container.name)


def _signal_of(name: str) -> int:
    """The signal that asks it to end."""
    with suppress(KeyError):
        return signal.Signals[name] if name else signal.SIGTERM
    return signal.SIGTERM
