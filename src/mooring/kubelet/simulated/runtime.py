"""The simulated runtime: containers without processes, which follow the stages of their stage set.

Input: start, stop and forget; timers at the end of stages. Output: container states to the listener; logs.

 1. Random numbers are drawn when a stage begins and when it ends, from one stream: the same seed gives the same run.
 2. A waiting stage shorter than `UNREPORTED_S` is not reported, only the state after it: each request counts with
    10,000 pods.
 3. A container that is stopped ends as its stage set defines; if that takes longer than the grace period, it is killed
    with exit code 137.
 4. The logs of the current and the previous run are kept, at most `LOG_LINES_MAX` lines each, the latest. A line is
    formatted when it is read.
 5. A container is not ready before the initial delay of its readiness probe, and never if the probe is a known command
    that fails. Probes are not run: others succeed.
 6. `kubectl logs` first drops lines that are too old, then takes the tail, then limits the bytes. A follower gets each
    line once, in order.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.kit.entropy import Entropy
from mooring.kubelet.runtime import (
    ContainerListener,
    ContainerState,
    Exited,
    LogRequest,
    LogSelection,
    Role,
    Running,
    Waiting,
)
from mooring.kubelet.simulated.commands import exit_code_of_command
from mooring.kubelet.simulated.stage_file import StageSets
from mooring.kubelet.simulated.stages import Stage, StageSet, StageState, next_stage, stage_delay_s
from mooring.kubelet.timers import Timers
from mooring.kubelet.views import KubeletContainer, KubeletPod

LOG_LINES_MAX = 200
UNREPORTED_S = 0.5
KILLED_CODE = 137
SIGKILL = 9
NO_VISITS: Mapping[str, int] = {}
"""Shared; only stages with a growing duration count their visits."""


class LogLine(NamedTuple):
    number: int
    wall_s: float
    text: str


Fill: TypeAlias = Callable[[str], str]
"""Expands placeholders such as {pod} in a log line."""


class LogBuffer:
    """The log of one run of a container."""

    __slots__ = ("_followers", "_left_out", "_written", "is_closed")

    def __init__(self, *, is_closed: bool = False) -> None:
        self.is_closed = is_closed
        self._written: list[tuple[float, Sequence[str], Fill]] = []
        self._left_out = 0
        """The number of lines that were dropped."""
        self._followers: list[asyncio.Future[None]] | None = None

    def write(self, wall_s: float, texts: Sequence[str], fill: Fill = str) -> None:
        if not texts:
            return
        self._written.append((wall_s, texts, fill))
        if len(self._written) > LOG_LINES_MAX:
            self._left_out += len(self._written.pop(0)[1])
        self._notify_followers()

    @property
    def lines(self) -> list[LogLine]:
        written = [(wall_s, text, fill) for wall_s, texts, fill in self._written for text in texts]
        first = max(0, len(written) - LOG_LINES_MAX)
        return [
            LogLine(number, wall_s, fill(text))
            for number, (wall_s, text, fill) in enumerate(written[first:], self._left_out + first + 1)
        ]

    def close(self) -> None:
        """The run has ended."""
        self.is_closed = True
        self._notify_followers()

    async def wait_changed(self) -> None:
        """Wait for another line, or for the end of the run."""
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers = [*(self._followers or ()), follower]
        await follower

    def _notify_followers(self) -> None:
        if not self._followers:
            return
        followers, self._followers = self._followers, None
        for follower in followers:
            if not follower.done():
                follower.set_result(None)


class LogReader:
    """One reader of a log."""

    def __init__(self, log: LogBuffer, request: LogRequest, clock: Clock) -> None:
        self._log = log
        self._request = request
        self._selection = LogSelection(request, clock)
        self._seen = 0

    async def read(self) -> AsyncGenerator[bytes, None]:
        all_lines = self._log.lines
        lines = [line for line in all_lines if not self._selection.is_too_old(line.wall_s)]
        tail = self._request.tail_lines
        if tail is not None:
            lines = lines[-tail:] if tail else []
        self._seen = all_lines[-1].number if all_lines else 0
        while True:
            for line in lines:
                written = self._written(line)
                if written:
                    yield written
            if not self._request.follows or self._selection.is_exhausted:
                return
            while not self._fresh() and not self._log.is_closed:
                await self._log.wait_changed()
            lines = self._fresh()
            if not lines:
                return
            self._seen = lines[-1].number

    def _fresh(self) -> list[LogLine]:
        return [line for line in self._log.lines if line.number > self._seen]

    def _written(self, line: LogLine) -> bytes:
        text = f"{format_rfc3339_micro(line.wall_s)} {line.text}" if self._request.has_timestamps else line.text
        return self._selection.cut(text.encode() + b"\n")


@dataclass(slots=True, eq=False, repr=False)
class _SimulatedContainer:
    """One container, over all its runs."""

    pod: KubeletPod
    container: KubeletContainer
    stage_set: StageSet
    stage: Stage
    next_begin: str = ""
    """The first stage of the next run; empty: the first one of the stage set."""
    attempt: int = 0
    started_s: float = 0.0
    state: ContainerState | None = None
    visits: Mapping[str, int] = field(default_factory=lambda: NO_VISITS)
    is_stopping: bool = False
    log: LogBuffer = field(default_factory=LogBuffer)
    previous_log: LogBuffer | None = None

    def __repr__(self) -> str:
        return f"<stage of {self.container.name} in {self.pod.key}>"


class SimulatedRuntime:
    """Implements `kubelet.runtime.Runtime` for all pods of the kubelets."""

    is_real = False
    pod_view = KubeletPod
    limitations = ""

    def __init__(
        self, stages: StageSets, clock: Clock, entropy: Entropy, timers: Timers, listener: ContainerListener
    ) -> None:
        self._stage_sets = stages
        self._clock = clock
        self._entropy = entropy
        self._timers = timers
        self._listener = listener
        self._pods: dict[str, dict[str, _SimulatedContainer]] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        yield

    # Runtime

    def start(self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int) -> None:
        simulated = self._simulated_container(pod, container, role)
        simulated.attempt = attempt
        simulated.is_stopping = False
        simulated.visits = NO_VISITS
        simulated.started_s = 0.0
        if attempt:
            simulated.previous_log, simulated.log = simulated.log, LogBuffer()
        self._enter(
            simulated,
            simulated.stage_set.stages[simulated.next_begin] if simulated.next_begin else simulated.stage_set.first,
        )

    def adopt(
        self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int, state: ContainerState
    ) -> None:
        simulated = self._simulated_container(pod, container, role)
        simulated.attempt = attempt
        simulated.state = state
        if isinstance(state, Running):
            simulated.started_s = state.started_s
            simulated.stage = _stage_like(simulated.stage_set, state)
            self._stay(simulated)
            if simulated.stage.is_ready and not state.is_ready:
                self._timers.set((simulated, "readiness"), 0.0, lambda: self._become_ready(simulated))
            simulated.log.write(state.started_s, simulated.stage.log, partial(_filled, pod, container))

    def stop(self, pod_uid: str, container: str, grace_s: float) -> None:
        simulated = self._pods.get(pod_uid, {}).get(container)
        if simulated is None or isinstance(simulated.state, Exited):
            return
        if not isinstance(simulated.state, Running):
            # It never ran: nothing has to end, and nothing is reported.
            self._timers.cancel(simulated)
            simulated.is_stopping = True
            return
        stop = simulated.stage_set.stop
        for_s = stop.for_s + (self._entropy.uniform(0.0, stop.jitter_s) if stop.jitter_s else 0.0)
        is_killed = for_s > grace_s
        simulated.is_stopping = True
        code, signal = (KILLED_CODE, SIGKILL) if is_killed else (stop.exit_code, 0)
        self._timers.set(simulated, min(for_s, grace_s), lambda: self._exit(simulated, code, "", "", signal))

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        """Always succeeds."""
        return ""

    def forget(self, pod_uid: str) -> None:
        for simulated in self._pods.pop(pod_uid, {}).values():
            self._timers.cancel(simulated)
            self._timers.cancel((simulated, "readiness"))
            simulated.log.close()

    def remove_all_except(self, pod_uids: Collection[str]) -> None:
        """Nothing is ever left."""

    def logs(self, pod_uid: str, container: str, attempt: int, request: LogRequest) -> AsyncGenerator[bytes, None]:
        simulated = self._pods.get(pod_uid, {}).get(container)
        log = None
        if simulated is not None:
            log = simulated.log if attempt == simulated.attempt else simulated.previous_log
        return LogReader(log if log is not None else LogBuffer(is_closed=True), request, self._clock).read()

    # Stages

    def _simulated_container(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> _SimulatedContainer:
        containers = self._pods.setdefault(pod.metadata.uid, {})
        simulated = containers.get(container.name)
        if simulated is None:
            stage_set = self._stage_sets.of(pod, container, role)
            simulated = _SimulatedContainer(pod, container, stage_set, stage_set.first)
            containers[container.name] = simulated
        simulated.pod, simulated.container = pod, container
        return simulated

    def _enter(self, simulated: _SimulatedContainer, stage: Stage) -> None:
        simulated.stage = stage
        if stage.log:
            simulated.log.write(self._clock.wall_s(), stage.log, partial(_filled, simulated.pod, simulated.container))
        match stage.state:
            case StageState.WAITING:
                simulated.state = None
                delay_s = self._stay(simulated)
                if delay_s is None or delay_s >= UNREPORTED_S:
                    self._notify(
                        simulated, Waiting(stage.reason, _filled(simulated.pod, simulated.container, stage.message))
                    )
            case StageState.RUNNING:
                if not simulated.started_s:
                    simulated.started_s = self._clock.wall_s()
                self._stay(simulated)
                self._notify_running(simulated)
            case StageState.TERMINATED:
                simulated.next_begin = next_stage(stage, self._entropy)
                self._exit(
                    simulated,
                    stage.exit_code,
                    stage.reason,
                    _filled(simulated.pod, simulated.container, stage.message),
                    stage.signal,
                )

    def _notify_running(self, simulated: _SimulatedContainer) -> None:
        """Report a running container. It is ready once its stage and its readiness probe say so."""
        unready_s = _unready_s(simulated.container) if simulated.stage.is_ready else 0.0
        left_s = unready_s - (self._clock.wall_s() - simulated.started_s)
        if math.isfinite(unready_s) and left_s > 0:
            self._timers.set((simulated, "readiness"), left_s, lambda: self._become_ready(simulated))
        is_ready = simulated.stage.is_ready and left_s <= 0
        self._notify(simulated, Running(simulated.started_s, is_ready, simulated.stage.is_started))

    def _become_ready(self, simulated: _SimulatedContainer) -> None:
        if isinstance(simulated.state, Running) and simulated.stage.is_ready and not simulated.is_stopping:
            self._notify_running(simulated)

    def _stay(self, simulated: _SimulatedContainer) -> float | None:
        """Set the timer for the end of the stage."""
        stage, visits = simulated.stage, 0
        if stage.growth != 1.0:
            visits = simulated.visits.get(stage.name, 0)
            simulated.visits = {**simulated.visits, stage.name: visits + 1}
        delay_s = stage_delay_s(stage, simulated.pod, visits, self._entropy)
        if delay_s is not None:
            self._timers.set(simulated, delay_s, lambda: self._leave(simulated))
        return delay_s

    def _leave(self, simulated: _SimulatedContainer) -> None:
        self._enter(simulated, simulated.stage_set.stages[next_stage(simulated.stage, self._entropy)])

    def _exit(self, simulated: _SimulatedContainer, code: int, reason: str, message: str, signal: int) -> None:
        now_s = self._clock.wall_s()
        reason = reason or ("Completed" if code == 0 else "Error")
        simulated.log.close()
        self._notify(simulated, Exited(code, simulated.started_s or now_s, now_s, reason, message, signal))

    def _notify(self, simulated: _SimulatedContainer, state: ContainerState) -> None:
        simulated.state = state
        self._listener.container_changed(simulated.pod.metadata.uid, simulated.container.name, simulated.attempt, state)


def _unready_s(container: KubeletContainer) -> float:
    """How long after its start a container is not ready, as far as its readiness probe tells without being run."""
    probe = container.readiness_probe
    if probe is None:
        return 0.0
    always_fails = probe.exec is not None and bool(exit_code_of_command(probe.exec.command))
    return math.inf if always_fails else float(probe.initial_delay_seconds)


def _stage_like(stage_set: StageSet, state: Running) -> Stage:
    """A stage that matches the state of an adopted container."""
    running = [stage for stage in stage_set.stages.values() if stage.state is StageState.RUNNING]
    alike = [stage for stage in running if stage.is_ready == state.is_ready]
    return (alike or running or [stage_set.first])[0]


def _filled(pod: KubeletPod, container: KubeletContainer, text: str) -> str:
    """Expands the placeholders. Not `format`: a text may contain any braces."""
    if "{" not in text:
        return text
    names = {
        "{container}": container.name,
        "{image}": container.image,
        "{pod}": pod.metadata.name,
        "{namespace}": pod.metadata.namespace,
        "{node}": pod.spec.node_name,
    }
    for name, value in names.items():
        text = text.replace(name, value)
    return text
