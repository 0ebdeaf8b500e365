"""The endpoints of an etcd: one is used until it does not answer, then the next.

1. A read (`ask`) is repeated on every endpoint in turn, until `unreachable_s_max` has passed (`EtcdUnreachable`).
2. A write is sent at most once. It may go to any endpoint that is connected. Without an answer the outcome is unknown
   (`OutcomeUnknown`).
3. All tasks use the same endpoint. The first task without an answer moves all tasks to the next.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.store.etcd.errors import EtcdUnreachable
from mooring.store.etcd.settings import EtcdAddress, EtcdLimits
from mooring.store.etcd.wire import ValueReader, Wire, as_it_is
from mooring.store.interface import OutcomeUnknown, StoreClosed

Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)


class Endpoints:
    """The endpoints of one etcd."""

    def __init__(
        self, address: EtcdAddress, clock: Clock, limits: EtcdLimits, read_value: ValueReader = as_it_is
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._backoff = Backoff(limits.retry_s, limits.retry_s_max)
        self._wires = [Wire(endpoint, address, limits.request_s_max, read_value) for endpoint in address.endpoints]
        self._current = 0
        self._is_closed = False
        self._moves = 0
        self._outcomes_unknown = 0

    async def close(self) -> None:
        self._is_closed = True
        for wire in self._wires:
            await wire.close()

    async def ask(self, question: Callable[[Wire], Awaitable[Answer]]) -> Answer:
        """The answer of the first endpoint that gives one."""
        began_s, failures = self._clock.now_s(), 0
        while True:
            wire = self._use()
            try:
                return await question(wire)
            except EtcdUnreachable as error:
                failures += 1
                self._move_on(wire, error)
                if failures % len(self._wires) == 0:
                    await self._wait(failures // len(self._wires), began_s, error)

    async def write(self, write: Callable[[Wire], Awaitable[Answer]]) -> Answer:
        """Send a write once. Raises `OutcomeUnknown` if there is no answer."""
        wire = await self.ask(Wire.make_ready)
        try:
            return await write(wire)
        except EtcdUnreachable as error:
            self._move_on(wire, error)
            self._outcomes_unknown += 1
            raise OutcomeUnknown(
                f"the connection was lost during a write, which may have been carried out: {error}"
            ) from None

    def _use(self) -> Wire:
        if self._is_closed:
            raise StoreClosed("the store is closed")
        return self._wires[self._current]

    def _move_on(self, wire: Wire, error: EtcdUnreachable) -> None:
        # Another task may have moved already.
        if wire is self._wires[self._current] and len(self._wires) > 1:
            self._current = (self._current + 1) % len(self._wires)
            self._moves += 1
            logger.warning("%s; going on with %s", error, self._wires[self._current].endpoint)

    async def _wait(self, rounds: int, began_s: float, error: EtcdUnreachable) -> None:
        waited_s = self._clock.now_s() - began_s
        delay_s = self._backoff.delay_s(rounds)
        if waited_s + delay_s <= self._limits.unreachable_s_max:
            await self._clock.wait(delay_s)
        elif len(self._wires) == 1:
            raise error
        else:
            raise type(error)(f"none of {len(self._wires)} endpoints answers; the last was: {error}") from None

    def statistics(self) -> dict[str, int]:
        return {
            "endpoints": len(self._wires),
            "endpoint_changes": self._moves,
            "writes_outcome_unknown": self._outcomes_unknown,
        }
