"""The simulated runtime: containers that are nothing but a place in their life.

Comes in   start, stop, forget; alarms when a stage is over
Goes out   to the listener: waiting, running, exited, as the life says

 1. Chance is drawn when a stage is entered and when it is left, from one stream: the same seed gives the same lives.
 2. A waiting stage that is shorter than `UNTOLD_S` is not told: nobody would read it, and at 10,000 pods each request
    counts. The state after it is.
 3. A container that is asked to stop ends as its life says; or, if that is not soon enough, killed, with code 137.
 4. What a container wrote is kept for this run and the one before, at most `LOG_LINES_MAX` lines each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple, TypeAlias

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.kit.entropy import Entropy
from mooring.kubelet.runtime import ContainerState, Exited, Listener, LogRequest, Role, Running, Selection, Waiting
from mooring.kubelet.simulated.stages import Life, Lives, Shown, Stage, stay_s, way_from
from mooring.kubelet.timers import Alarms
from mooring.kubelet.views import KubeletContainer, KubeletPod

LOG_LINES_MAX = 200
UNTOLD_S = 0.5
KILLED_CODE = 137
SIGKILL = 9
NO_VISITS: Mapping[str, int] = {}
"""Of stages that take longer each time; nearly all lives have none."""


class Line(NamedTuple):
    number: int
    wall_s: float
    text: str


Fill: TypeAlias = Callable[[str], str]
"""Makes of a text what stands in the log."""


class Log:
    """What one run of a container wrote."""

    __slots__ = ("_followers", "_left_out", "_written", "is_closed")

    def __init__(self, *, is_closed: bool = False) -> None:
        self.is_closed = is_closed
        self._written: list[tuple[float, Sequence[str], Fill]] = []
        self._left_out = 0
        """How many lines were too old to be kept."""
        self._followers: list[asyncio.Future[None]] | None = None

    def write(self, wall_s: float, texts: Sequence[str], fill: Fill = str) -> None:
        if not texts:
            return
        self._written.append((wall_s, texts, fill))
        if len(self._written) > LOG_LINES_MAX:
            self._left_out += len(self._written.pop(0)[1])
        self._wake()

    @property
    def lines(self) -> list[Line]:
        written = [(wall_s, text, fill) for wall_s, texts, fill in self._written for text in texts]
        first = max(0, len(written) - LOG_LINES_MAX)
        return [
            Line(number, wall_s, fill(text))
            for number, (wall_s, text, fill) in enumerate(written[first:], self._left_out + first + 1)
        ]

    def close(self) -> None:
        """The run is over."""
        self.is_closed = True
        self._wake()

    async def wait_changed(self) -> None:
        """Until there is another line, or the run is over."""
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers = [*(self._followers or ()), follower]
        await follower

    def _wake(self) -> None:
        if not self._followers:
            return
        followers, self._followers = self._followers, None
        for follower in followers:
            if not follower.done():
                follower.set_result(None)


class LogReader:
    """One reading of a log."""

    def __init__(self, log: Log, request: LogRequest, clock: Clock) -> None:
        self._log = log
        self._request = request
        self._selection = Selection(request, clock)
        self._seen = 0

    async def read(self) -> AsyncIterator[bytes]:
        kept = self._log.lines
        lines = [line for line in kept if not self._selection.is_too_old(line.wall_s)]
        tail = self._request.tail_lines
        if tail is not None:
            lines = lines[-tail:] if tail else []
        self._seen = kept[-1].number if kept else 0
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

    def _fresh(self) -> list[Line]:
        return [line for line in self._log.lines if line.number > self._seen]

    def _written(self, line: Line) -> bytes:
        text = f"{format_rfc3339_micro(line.wall_s)} {line.text}" if self._request.has_timestamps else line.text
        return self._selection.cut(text.encode() + b"\n")


class _Simulated:
    """One container, over all its runs."""

    __slots__ = (
        "attempt",
        "container",
        "is_stopping",
        "life",
        "log",
        "next_begin",
        "pod",
        "previous_log",
        "stage",
        "started_s",
        "state",
        "visits",
    )

    def __init__(self, pod: KubeletPod, container: KubeletContainer, life: Life) -> None:
        self.pod = pod
        self.container = container
        self.life = life
        self.stage = life.first
        self.next_begin = ""
        """Where the next run begins; empty: at the first stage."""
        self.attempt = 0
        self.started_s = 0.0
        self.state: ContainerState | None = None
        self.visits = NO_VISITS
        self.is_stopping = False
        self.log = Log()
        self.previous_log: Log | None = None

    def __repr__(self) -> str:
        return f"<stage of {self.container.name} in {self.pod.key}>"


class SimulatedRuntime:
    """Keeps the promise of `runtime` for all pods of a fleet."""

    is_real = False
    pod_view = KubeletPod
    lacking = ""

    def __init__(self, lives: Lives, clock: Clock, entropy: Entropy, alarms: Alarms, listener: Listener) -> None:
        self._lives = lives
        self._clock = clock
        self._entropy = entropy
        self._alarms = alarms
        self._listener = listener
        self._pods: dict[str, dict[str, _Simulated]] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        yield

    # ------------------------------------------------------------------------------------------ for the workers

    def start(self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int) -> None:
        one = self._one(pod, container, role)
        one.attempt = attempt
        one.is_stopping = False
        one.visits = NO_VISITS
        one.started_s = 0.0
        if attempt:
            one.previous_log, one.log = one.log, Log()
        self._enter(one, one.life.stages[one.next_begin] if one.next_begin else one.life.first)

    def adopt(
        self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int, state: ContainerState
    ) -> None:
        one = self._one(pod, container, role)
        one.attempt = attempt
        one.state = state
        if isinstance(state, Running):
            one.started_s = state.started_s
            one.stage = _stage_like(one.life, state)
            self._stay(one)
            one.log.write(state.started_s, one.stage.log, partial(_filled, pod, container))

    def stop(self, pod_uid: str, container: str, grace_s: float) -> None:
        one = self._pods.get(pod_uid, {}).get(container)
        if one is None or isinstance(one.state, Exited):
            return
        if not isinstance(one.state, Running):
            # It never ran. Nothing of it has to end, and nothing is told.
            self._alarms.cancel(one)
            one.is_stopping = True
            return
        stop = one.life.stop
        for_s = stop.for_s + (self._entropy.uniform(0.0, stop.jitter_s) if stop.jitter_s else 0.0)
        is_killed = for_s > grace_s
        one.is_stopping = True
        code, signal = (KILLED_CODE, SIGKILL) if is_killed else (stop.exit_code, 0)
        self._alarms.set(one, min(for_s, grace_s), lambda: self._exit(one, code, "", "", signal))

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        """Nothing is ever too much."""
        return ""

    def forget(self, pod_uid: str) -> None:
        for one in self._pods.pop(pod_uid, {}).values():
            self._alarms.cancel(one)
            one.log.close()

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Nothing is ever left."""

    def logs(self, pod_uid: str, container: str, attempt: int, request: LogRequest) -> AsyncIterator[bytes]:
        one = self._pods.get(pod_uid, {}).get(container)
        log = None
        if one is not None:
            log = one.log if attempt == one.attempt else one.previous_log
        return LogReader(log if log is not None else Log(is_closed=True), request, self._clock).read()

    # ------------------------------------------------------------------------------------------------ one life

    def _one(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> _Simulated:
        containers = self._pods.setdefault(pod.metadata.uid, {})
        one = containers.get(container.name)
        if one is None:
            one = containers[container.name] = _Simulated(pod, container, self._lives.of(pod, container, role))
        one.pod, one.container = pod, container
        return one

    def _enter(self, one: _Simulated, stage: Stage) -> None:
        one.stage = stage
        if stage.log:
            one.log.write(self._clock.wall_s(), stage.log, partial(_filled, one.pod, one.container))
        match stage.shown:
            case Shown.WAITING:
                one.state = None
                delay_s = self._stay(one)
                if delay_s is None or delay_s >= UNTOLD_S:
                    self._tell(one, Waiting(stage.reason, _filled(one.pod, one.container, stage.message)))
            case Shown.RUNNING:
                if not one.started_s:
                    one.started_s = self._clock.wall_s()
                self._stay(one)
                self._tell(one, Running(one.started_s, stage.is_ready, stage.is_started))
            case Shown.TERMINATED:
                one.next_begin = way_from(stage, self._entropy)
                self._exit(
                    one, stage.exit_code, stage.reason, _filled(one.pod, one.container, stage.message), stage.signal
                )

    def _stay(self, one: _Simulated) -> float | None:
        """Set the alarm for the end of the stage."""
        stage, visits = one.stage, 0
        if stage.growth != 1.0:
            visits = one.visits.get(stage.name, 0)
            one.visits = {**one.visits, stage.name: visits + 1}
        delay_s = stay_s(stage, one.pod, visits, self._entropy)
        if delay_s is not None:
            self._alarms.set(one, delay_s, lambda: self._leave(one))
        return delay_s

    def _leave(self, one: _Simulated) -> None:
        self._enter(one, one.life.stages[way_from(one.stage, self._entropy)])

    def _exit(self, one: _Simulated, code: int, reason: str, message: str, signal: int) -> None:
        now_s = self._clock.wall_s()
        reason = reason or ("Completed" if code == 0 else "Error")
        one.log.close()
        self._tell(one, Exited(code, one.started_s or now_s, now_s, reason, message, signal))

    def _tell(self, one: _Simulated, state: ContainerState) -> None:
        one.state = state
        self._listener.container_changed(one.pod.metadata.uid, one.container.name, one.attempt, state)


def _stage_like(life: Life, state: Running) -> Stage:
    """The stage of a life in which a container that runs so may be."""
    running = [stage for stage in life.stages.values() if stage.shown is Shown.RUNNING]
    alike = [stage for stage in running if stage.is_ready == state.is_ready]
    return (alike or running or [life.first])[0]


def _filled(pod: KubeletPod, container: KubeletContainer, text: str) -> str:
    """With the names that a life can mention. Not `format`: a message may hold any braces."""
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
