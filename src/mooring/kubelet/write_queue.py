"""A queue of keys to be written to the API, with a limit on requests in flight.

Input: keys of changed objects (`add` never waits). Output: calls of `send`, which writes the current state of a key.

 1. A key is queued at most once: changes that happen while it waits are written with one request.
 2. A key is sent by one worker at a time. If it changes meanwhile, it is sent again afterwards.
 3. `send` returns the seconds after which to retry, or None.
 4. At most `in_flight_max` keys are in flight. A worker yields after `WRITES_PER_TURN` keys, because a loopback client
    never suspends.
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
from mooring.kubelet.timers import Timers

WRITES_PER_TURN = 16
ERROR_RETRY_S = 5.0
"""The delay of a key after an unexpected exception."""

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


class _State(Enum):
    WAITING = "waiting"
    IN_FLIGHT = "in flight"
    CHANGED = "in flight, and changed meanwhile"


class WriteQueue(Generic[Key]):
    """Keys that wait to be written."""

    def __init__(
        self,
        name: str,
        send: Callable[[Key], Awaitable[float | None]],
        clock: Clock,
        timers: Timers,
        *,
        in_flight_max: int,
    ) -> None:
        assert in_flight_max > 0, f"write queue {name!r} has {in_flight_max} workers"
        self.name = name
        self._send = send
        self._clock = clock
        self._timers = timers
        self._in_flight_max = in_flight_max
        self._waiting: deque[Key] = deque()
        self._states: dict[Key, _State] = {}
        self._in_flight = 0
        self._idle: deque[asyncio.Future[None]] = deque()
        self._added = self._sent = self._failed = 0

    def add(self, key: Key) -> None:
        """The object of the key changed: write it."""
        state = self._states.get(key)
        if state is None:
            self._added += 1
            self._states[key] = _State.WAITING
            self._waiting.append(key)
            if self._idle:
                self._notify_worker()
        elif state is not _State.WAITING:
            self._states[key] = _State.CHANGED

    def add_after(self, key: Key, delay_s: float) -> None:
        self._timers.set((self.name, key), delay_s, lambda: self.add(key))

    def start(self, group: TaskGroup) -> None:
        """Start the workers, as background tasks of the group."""
        for number in range(self._in_flight_max):
            group.start_background(self._work(), name=f"{self.name} {number}")

    def statistics(self) -> dict[str, int]:
        return {
            "waiting": len(self._waiting),
            "in_flight": self._in_flight,
            "put": self._added,
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
            retry_s: float | None = ERROR_RETRY_S
            try:
                retry_s = await self._send(key)
                self._sent += 1
            except Exception:
                logger.exception("%s: writing %s failed", self.name, key)
            finally:
                self._in_flight -= 1
                state = self._states.pop(key)
            self._settle(key, retry_s, state)
            sent += 1
            if sent % WRITES_PER_TURN == 0:
                await self._clock.wait(0)

    def _settle(self, key: Key, retry_s: float | None, state: _State) -> None:
        """Decide whether the key is sent again."""
        if retry_s is not None:
            self._failed += 1
            self.add_after(key, retry_s)
        elif state is _State.CHANGED:
            self.add(key)

    def _notify_worker(self) -> None:
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
