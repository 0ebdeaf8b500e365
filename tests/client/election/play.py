"""Processes that compete for a lease on virtual time, with failures of processes and of the network.

   election = ElectionScenario(client, clock, entropy)
   first, second = election.process("a"), election.process("b", wall_skew_s=3_600)
   first.pause()          # as SIGSTOP: the process stops, time continues
   first.is_cut_off = True   # requests get no response
   first.kill()           # as SIGKILL

1. `election.acts` records which process did the leader's work at which time; each act first checks `is_leading`, as a
   write does.
2. An act while another process may act as well raises `TwoLeadersError` immediately.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from mooring.api.kinds import Kind
from mooring.client.election import ElectionSettings, LeaderElector, LeadershipLostError
from mooring.client.errors import NoAnswerError
from mooring.client.interface import Client, JsonObject
from mooring.kit.clock import Clock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

Answer = TypeVar("Answer")
ACT_EACH_S = 0.25
REQUEST_S_MAX = 60.0


class TwoLeadersError(AssertionError):
    """Two processes lead at the same time."""


class ProcessClock:
    """The clock of one process: its wall clock may be wrong, and no wait ends while it is paused."""

    def __init__(self, clock: VirtualClock, wall_skew_s: float, rate: float) -> None:
        self._clock = clock
        self._wall_skew_s = wall_skew_s
        self._rate = rate
        self.going = asyncio.Event()
        self.going.set()

    def now_s(self) -> float:
        return self._clock.now_s() * self._rate

    def wall_s(self) -> float:
        return self._clock.wall_s() + self._wall_skew_s

    async def wait(self, delay_s: float) -> None:
        await self._clock.wait(delay_s / self._rate)
        await self.going.wait()


@dataclass
class Process:
    """A candidate: an elector whose leader acts periodically."""

    name: str
    election: ElectionScenario
    clock: ProcessClock
    elector: LeaderElector = field(init=False)
    is_cut_off: bool = False
    are_answers_lost: bool = False
    delay_s: float = 0.0
    outcome: str = "running"
    task: asyncio.Task[None] | None = None
    told: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.clock.going.clear()

    def go_on(self) -> None:
        self.clock.going.set()

    def kill(self) -> None:
        """Stop without releasing the lease."""
        self.is_cut_off = True
        self.stop()

    def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()

    async def live(self) -> None:
        try:
            await self.elector.run(self._lead)
            self.outcome = "done"
        except LeadershipLostError as error:
            self.outcome = f"lost: {error}"
        except asyncio.CancelledError:
            self.outcome = "stopped"

    async def _lead(self) -> None:
        while True:
            if self.elector.is_leading:
                self.election.act(self)
            await self.clock.wait(ACT_EACH_S)

    # the part of the client interface that electors use

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return await self._ask(lambda: self.election.client.get(kind, namespace, name))

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        return await self._ask(lambda: self.election.client.create(kind, namespace, body))

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        return await self._ask(lambda: self.election.client.update(kind, namespace, name, body))

    async def _ask(self, carry_out: Callable[[], Awaitable[Answer]]) -> Answer:
        await self.clock.going.wait()
        if self.is_cut_off:
            await self.election.clock.wait(REQUEST_S_MAX)
            raise NoAnswerError("cut off")
        if self.delay_s:
            await self.election.clock.wait(self.delay_s)
        answer = await carry_out()
        if self.delay_s:
            await self.election.clock.wait(self.delay_s)
        await self.clock.going.wait()
        if self.are_answers_lost:
            raise NoAnswerError("the answer was lost")
        return answer


class ElectionScenario:
    """One lease and its candidates."""

    def __init__(self, client: Client, clock: VirtualClock, entropy: Entropy) -> None:
        self.clock = clock
        self.entropy = entropy
        self.client = client
        self.processes: dict[str, Process] = {}
        self.acts: list[tuple[str, float]] = []

    def process(
        self, name: str, *, wall_skew_s: float = 0.0, rate: float = 1.0, settings: ElectionSettings | None = None
    ) -> Process:
        process = Process(name, self, ProcessClock(self.clock, wall_skew_s, rate))
        chosen = settings or ElectionSettings("kube-system", "kube-scheduler", name)
        clock: Clock = process.clock
        process.elector = LeaderElector(
            process,  # type: ignore[arg-type]  # it implements the part of the interface that electors use
            chosen,
            clock=clock,
            entropy=self.entropy.fork(name),
            report=process.told.append,
        )
        self.processes[name] = process
        return process

    def begin(self, group: TaskGroup, *processes: Process) -> None:
        for process in processes:
            process.task = group.start(process.live(), name=process.name)

    def act(self, actor: Process) -> None:
        for other in self.processes.values():
            if other is not actor and other.elector.is_leading:
                raise TwoLeadersError(f"{actor.name} and {other.name} lead at {self.clock.now_s()} s")
        self.acts.append((actor.name, self.clock.now_s()))

    def actors(self) -> list[str]:
        """Names of the leaders, in order."""
        names: list[str] = []
        for name, _ in self.acts:
            if not names or names[-1] != name:
                names.append(name)
        return names

    def gap_s(self) -> float:
        """The longest time between two acts."""
        moments = [moment for _, moment in self.acts]
        return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)
