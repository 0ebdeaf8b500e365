"""A queue of keys to be written to the API, with a limit on requests in flight.

Input: keys of changed objects (`add` never waits). Output: calls of `send`, which writes the current states of keys.

 1. A key is queued at most once: changes that happen while it waits are written with one request.
 2. A key is sent by one worker at a time. If it changes meanwhile, it is sent again afterwards.
 3. `send` gets at most `keys_max` keys that wait together. It returns for each the seconds after which to retry, or
    None. If it fails, the keys are sent one by one, so that one key does not stop the others.
 4. At most `in_flight_max` keys are in flight. A worker yields after `WRITES_PER_TURN` keys, because a loopback client
    never suspends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.timers import Timers

WRITES_PER_TURN = 16
ERROR_RETRY_S = 5.0
"""The delay of a key after an unexpected exception."""

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)
Send: TypeAlias = Callable[[Sequence[Key]], Awaitable[Sequence[float | None]]]


class _State(Enum):
    WAITING = "waiting"
    IN_FLIGHT = "in flight"
    CHANGED = "in flight, and changed meanwhile"


class WriteQueue(Generic[Key]):
    """Keys that wait to be written."""

    def __init__(
        self,
        name: str,
        send: Send[Key],
        clock: Clock,
        timers: Timers,
        *,
        in_flight_max: int,
        keys_max: int = 1,
    ) -> None:
        assert in_flight_max > 0, f"write queue {name!r} has {in_flight_max} workers"
        assert keys_max > 0, f"write queue {name!r} sends {keys_max} keys"
        self.name = name
        self._send = send
        self._clock = clock
        self._timers = timers
        self._in_flight_max = in_flight_max
        self._keys_max = keys_max
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
            if (len(self._waiting) - 1) % self._keys_max == 0:  # the first key of a call
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
            while not self._waiting or self._in_flight >= self._in_flight_max:
                waiter: asyncio.Future[None] = new_future()
                self._idle.append(waiter)
                await waiter
            keys = self._take()
            retries_s: Sequence[float | None] = ()
            try:
                retries_s = await self._send_all(keys)
            finally:
                self._in_flight -= len(keys)
                states = [self._states.pop(key) for key in keys]
            for key, retry_s, state in zip(keys, retries_s, states, strict=True):
                self._settle(key, retry_s, state)
            sent += len(keys)
            if sent >= WRITES_PER_TURN:
                sent = 0
                await self._clock.wait(0)

    def _take(self) -> list[Key]:
        """The keys of the next call."""
        count = min(len(self._waiting), self._keys_max, self._in_flight_max - self._in_flight)
        keys = [self._waiting.popleft() for _ in range(count)]
        self._in_flight += count
        for key in keys:
            self._states[key] = _State.IN_FLIGHT
        return keys

    async def _send_all(self, keys: Sequence[Key]) -> Sequence[float | None]:
        try:
            retries_s = await self._send(keys)
        except Exception:
            if len(keys) > 1:
                return [retry_s for key in keys for retry_s in await self._send_all([key])]
            logger.exception("%s: writing %s failed", self.name, keys[0])
            return [ERROR_RETRY_S]
        self._sent += len(keys)
        return retries_s

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


def one_by_one(send: Callable[[Key], Awaitable[float | None]]) -> Send[Key]:
    """For a queue whose keys share nothing."""

    async def send_all(keys: Sequence[Key]) -> list[float | None]:
        return [await send(key) for key in keys]

    return send_all
