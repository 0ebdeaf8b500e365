"""Faults between a component and the API: lost, late, rejected and repeated requests, and the death of the component.

1. Each lifetime has one random stream: the same requests get the same faults.
2. In calm weather nothing is lost and no component dies.
3. A dead component sends nothing: a request after the death hangs until its task is cancelled. The request at which it
   died was carried out or not; its response is lost.
4. A watch may repeat an event directly after itself, and never goes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Self

from mooring.api.kinds import Kind
from mooring.client.errors import ClientError
from mooring.client.interface import EVERYTHING, Client, Selection, Watch, WatchEvent
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from tests.client.faulty import Answer, Fault, FaultyClient, Outcome, Request

DELAY_S_MAX = 3.0
WRITE_S = 0.05
"""What a write takes at least. Without it two who undo each other's work while a watch is late would do so for ever, in
no time: the watch would never come."""

WRITES = ("create", "update", "patch", "delete", "bind")
_LOST = (Outcome.REQUEST_LOST, Outcome.ANSWER_LOST, Outcome.BROKEN, Outcome.DONE)
_LOST_OR_STALE = (*_LOST, Outcome.CONFLICT)
_OUTCOMES = {
    "update": _LOST_OR_STALE,
    "patch": _LOST_OR_STALE,
    "bind": _LOST_OR_STALE,
    "list": (Outcome.REQUEST_LOST, Outcome.BROKEN, Outcome.DONE),
    "watch": (Outcome.REQUEST_LOST, Outcome.EXPIRED, Outcome.BROKEN, Outcome.DONE),
    "next_batch": (Outcome.DONE, Outcome.DONE, Outcome.DONE, Outcome.ENDED, Outcome.REQUEST_LOST, Outcome.EXPIRED),
}
"""A batch that is lost breaks its watch: what it held is told again by the next one."""


@dataclass
class Weather:
    """For everybody: how much goes wrong, until it is calm."""

    likelihood: float
    is_calm: bool = False
    faults_met: dict[str, int] = field(default_factory=dict)


class Death(NamedTuple):
    """At which request of a component, and whether that one was carried out still."""

    at_request: int
    is_carried_out: bool


class Lifetime:
    """A plan of faults for one life of a component; and its end, if there is one."""

    def __init__(self, weather: Weather, entropy: Entropy, death: Death | None) -> None:
        self.died = asyncio.Event()
        self._weather = weather
        self._entropy = entropy
        self._death = death

    def __call__(self, request: Request) -> Fault | None:
        if self._weather.is_calm or self._entropy.uniform() >= self._weather.likelihood:
            return None
        outcome = self._entropy.choose(_OUTCOMES.get(request.verb, _LOST))
        delay_s, answer_delay_s = (self._entropy.uniform(0.0, DELAY_S_MAX) for _ in range(2))
        name = f"{request.verb} {outcome.name}"
        self._weather.faults_met[name] = self._weather.faults_met.get(name, 0) + 1
        return Fault(request.verb, outcome, delay_s=delay_s, answer_delay_s=answer_delay_s)

    def is_last(self, request: Request) -> bool:
        return self._death is not None and self._death.at_request == request.number and not self._weather.is_calm

    def is_told_twice(self) -> bool:
        return not self._weather.is_calm and self._entropy.uniform() < self._weather.likelihood

    def is_last_carried_out(self) -> bool:
        return self._death is not None and self._death.is_carried_out


@dataclass
class MortalClient(FaultyClient):
    """The way to the API for one life of a component."""

    lifetime: Lifetime = field(kw_only=True)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        return _StammeringWatch(super().watch(kind, selection, since=since, bookmarks=bookmarks), self.lifetime)

    async def _answer(self, request: Request, carry_out: Callable[[], Awaitable[Answer]]) -> Answer:
        if self.lifetime.is_last(request):
            self.lifetime.died.set()
            if self.lifetime.is_last_carried_out() and request.verb != "next_batch":
                with suppress(ClientError):
                    await carry_out()
        if request.verb in WRITES:
            await self.clock.wait(WRITE_S)
        fault = self.lifetime(request)
        if fault is None:
            await self._hang_if_dead()
            return await carry_out()
        return await self._meet(fault, request, self._unless_dead(carry_out))

    def _unless_dead(self, carry_out: Callable[[], Awaitable[Answer]]) -> Callable[[], Awaitable[Answer]]:
        """A request that was late leaves the component only if it lives still."""

        async def carried_out() -> Answer:
            await self._hang_if_dead()
            return await carry_out()

        return carried_out

    async def _hang_if_dead(self) -> None:
        if self.lifetime.died.is_set():
            await asyncio.get_running_loop().create_future()


def mortal_client(inner: Client, clock: Clock, lifetime: Lifetime) -> MortalClient:
    return MortalClient(inner, clock, lifetime, lifetime=lifetime)


class _StammeringWatch:
    def __init__(self, inner: Watch, lifetime: Lifetime) -> None:
        self._inner = inner
        self._lifetime = lifetime

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, error, trace)

    async def next_batch(self) -> Sequence[WatchEvent]:
        batch = await self._inner.next_batch()
        if not self._lifetime.is_told_twice():
            return batch
        return [told for event in batch for told in (event, event)]
