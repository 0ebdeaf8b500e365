"""The outbox: what is to be written to the API, so many at a time.

Comes in   keys of what changed (`put`, which never waits)
Goes out   calls of `send`, which writes what is true of the key at that moment

 1. A key waits at most once: whatever changes while it waits goes out in one request.
 2. A key is sent by one at a time. If it changes meanwhile, it is sent again after that.
 3. `send` answers with the seconds after which it is to be tried again, or None if all is well.
 4. At most `in_flight_max` are on their way. With a client that never suspends, others get their turn after each
    `SENT_IN_A_ROW`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from enum import Enum
from typing import Generic, TypeVar

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.timers import Alarms

SENT_IN_A_ROW = 16
FAILED_S = 5.0
"""How long a key waits after an error that nobody expected."""

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


class _State(Enum):
    WAITING = "waiting"
    IN_FLIGHT = "in flight"
    CHANGED = "in flight, and changed meanwhile"


class Outbox(Generic[Key]):
    """Keys on their way out."""

    def __init__(
        self,
        name: str,
        send: Callable[[Key], Awaitable[float | None]],
        clock: Clock,
        alarms: Alarms,
        *,
        in_flight_max: int,
    ) -> None:
        assert in_flight_max > 0, f"outbox {name!r} with {in_flight_max} hands would never be emptied"
        self.name = name
        self._send = send
        self._clock = clock
        self._alarms = alarms
        self._in_flight_max = in_flight_max
        self._waiting: deque[Key] = deque()
        self._states: dict[Key, _State] = {}
        self._in_flight = 0
        self._idle: deque[asyncio.Future[None]] = deque()
        self._drained: asyncio.Future[None] | None = None
        self._put = self._sent = self._failed = 0

    def put(self, key: Key) -> None:
        """It changed: have it written."""
        state = self._states.get(key)
        if state is None:
            self._put += 1
            self._states[key] = _State.WAITING
            self._waiting.append(key)
            if self._idle:
                self._wake()
        elif state is not _State.WAITING:
            self._states[key] = _State.CHANGED

    def put_after(self, key: Key, delay_s: float) -> None:
        self._alarms.set((self.name, key), delay_s, lambda: self.put(key))

    def start(self, group: TaskGroup) -> None:
        """Begin to write, in background tasks of the group."""
        for number in range(self._in_flight_max):
            group.start_background(self._work(), name=f"{self.name} {number}")

    async def wait_empty(self) -> None:
        """Until nothing waits and nothing is on its way."""
        while self._states:
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def statistics(self) -> dict[str, int]:
        return {
            "waiting": len(self._waiting),
            "in_flight": self._in_flight,
            "put": self._put,
            "sent": self._sent,
            "failed": self._failed,
        }

    async def _work(self) -> None:
        new_future, sent = asyncio.get_running_loop().create_future, 0
        while True:
            while not self._waiting:
                waiter: asyncio.Future[None] = new_future()
                self._idle.append(waiter)
                await waiter
            key = self._waiting.popleft()
            self._states[key] = _State.IN_FLIGHT
            self._in_flight += 1
            retry_s: float | None = FAILED_S
            try:
                retry_s = await self._send(key)
                self._sent += 1
            except Exception:
                logger.exception("%s: %s could not be written", self.name, key)
            finally:
                self._in_flight -= 1
                state = self._states.pop(key)
            self._settle(key, retry_s, state)
            sent += 1
            if sent % SENT_IN_A_ROW == 0:
                await self._clock.wait(0)

    def _settle(self, key: Key, retry_s: float | None, state: _State) -> None:
        """It was sent, or could not be: is it to be sent again?"""
        if retry_s is not None:
            self._failed += 1
            self.put_after(key, retry_s)
        elif state is _State.CHANGED:
            self.put(key)
        if not self._states and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _wake(self) -> None:
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
