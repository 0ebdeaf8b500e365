"""Faults between a component and the API: lost, late, rejected and repeated requests, and the crash of the component.

1. Each lifetime has one random stream: the same requests get the same faults.
2. When the injection is off, no request fails and no component crashes.
3. A crashed component sends nothing: a request after the crash hangs until its task is cancelled. The request at which
   it crashed is carried out or not; its response is lost.
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
"""The shortest duration of a write. Otherwise two components that undo each other's writes while a watch is late would
do so for ever, without any virtual time passing."""

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
"""A lost batch ends its watch: the next watch delivers its events again."""


@dataclass
class FaultInjection:
    """The probability of faults of all components, until it is switched off, and the number of faults so far."""

    probability: float
    is_off: bool = False
    counts: dict[str, int] = field(default_factory=dict)


class Crash(NamedTuple):
    """The number of the request at which a component crashes, and whether that request is carried out."""

    at_request: int
    is_carried_out: bool


class Lifetime:
    """The faults of one lifetime of a component, and its crash, if it has one."""

    def __init__(self, injection: FaultInjection, entropy: Entropy, crash: Crash | None) -> None:
        self.crashed = asyncio.Event()
        self._injection = injection
        self._entropy = entropy
        self._crash = crash

    def __call__(self, request: Request) -> Fault | None:
        if self._injection.is_off or self._entropy.uniform() >= self._injection.probability:
            return None
        outcome = self._entropy.choose(_OUTCOMES.get(request.verb, _LOST))
        delay_s, answer_delay_s = (self._entropy.uniform(0.0, DELAY_S_MAX) for _ in range(2))
        name = f"{request.verb} {outcome.name}"
        self._injection.counts[name] = self._injection.counts.get(name, 0) + 1
        return Fault(request.verb, outcome, delay_s=delay_s, answer_delay_s=answer_delay_s)

    def is_last(self, request: Request) -> bool:
        return self._crash is not None and self._crash.at_request == request.number and not self._injection.is_off

    def is_repeated(self) -> bool:
        return not self._injection.is_off and self._entropy.uniform() < self._injection.probability

    def is_last_carried_out(self) -> bool:
        return self._crash is not None and self._crash.is_carried_out


@dataclass
class CrashingClient(FaultyClient):
    """The client of one lifetime of a component."""

    lifetime: Lifetime = field(kw_only=True)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        return _RepeatingWatch(super().watch(kind, selection, since=since, bookmarks=bookmarks), self.lifetime)

    async def _answer(self, request: Request, carry_out: Callable[[], Awaitable[Answer]]) -> Answer:
        if self.lifetime.is_last(request):
            self.lifetime.crashed.set()
            if self.lifetime.is_last_carried_out() and request.verb != "next_batch":
                with suppress(ClientError):
                    await carry_out()
        if request.verb in WRITES:
            await self.clock.wait(WRITE_S)
        fault = self.lifetime(request)
        if fault is None:
            await self._hang_if_crashed()
            return await carry_out()
        return await self._meet(fault, request, self._unless_crashed(carry_out))

    def _unless_crashed(self, carry_out: Callable[[], Awaitable[Answer]]) -> Callable[[], Awaitable[Answer]]:
        """A delayed request is sent only if the component has not crashed meanwhile."""

        async def carried_out() -> Answer:
            await self._hang_if_crashed()
            return await carry_out()

        return carried_out

    async def _hang_if_crashed(self) -> None:
        if self.lifetime.crashed.is_set():
            await asyncio.get_running_loop().create_future()


def crashing_client(inner: Client, clock: Clock, lifetime: Lifetime) -> CrashingClient:
    return CrashingClient(inner, clock, lifetime, lifetime=lifetime)


class _RepeatingWatch:
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
        if not self._lifetime.is_repeated():
            return batch
        return [repeated for event in batch for repeated in (event, event)]
