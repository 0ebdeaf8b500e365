"""A queue of names that are handled at a limited rate: the nodes of a zone that wait for their NoExecute taint.

Comes in   names; a rate, which changes with the state of the zone
Goes out   one name after the other to `attempt`, as fast as the rate allows

 1. A name is taken once: after it was handled it is not taken again until somebody removes it.
 2. At a rate of 0 nothing is handled; names stay until the rate is another one.
 3. A new rate starts with an empty bucket if the old one was empty: changing the rate is no way to be faster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.client.ratelimit import TokenBucket
from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap

BURST = 1


class TimedQueue:
    """Of one zone."""

    def __init__(self, clock: Clock, rate_per_s: float) -> None:
        self._clock = clock
        self._waiting: KeyedHeap[str, float] = KeyedHeap.ordered_by(_due)
        self._taken: dict[str, None] = {}
        self._rate_per_s = rate_per_s
        self._bucket = self._new_bucket(rate_per_s)

    def __len__(self) -> int:
        """How many names wait."""
        return len(self._waiting)

    def add(self, name: str) -> bool:
        """Whether it is new: neither waiting nor handled."""
        if name in self._taken:
            return False
        self._taken[name] = None
        self._waiting.push(name, self._clock.now_s())
        return True

    def remove(self, name: str) -> bool:
        """Whether it was there. It may be added again."""
        if name not in self._taken:
            return False
        del self._taken[name]
        self._waiting.delete(name)
        return True

    def set_rate(self, rate_per_s: float) -> None:
        if rate_per_s == self._rate_per_s:
            return
        bucket = self._new_bucket(rate_per_s)
        if bucket is not None and not self._try_take():
            bucket.try_take()
        self._rate_per_s, self._bucket = rate_per_s, bucket

    async def handle(self, attempt: Callable[[str], Awaitable[float | None]]) -> None:
        """`attempt` answers None if it is done with a name, or after how many seconds it is to be tried again."""
        while (head := self._waiting.peek()) is not None and self._try_take():
            name, due_s = head
            now_s = self._clock.now_s()
            if now_s < due_s:
                return
            retry_s = await attempt(name)
            if retry_s is None:
                self._waiting.delete(name)
            elif name in self._waiting:
                self._waiting.update(name, now_s + retry_s)

    def _try_take(self) -> bool:
        return self._bucket is not None and self._bucket.try_take()

    def _new_bucket(self, rate_per_s: float) -> TokenBucket | None:
        return TokenBucket(self._clock, rate_per_s=rate_per_s, burst=BURST) if rate_per_s > 0 else None


def _due(due_s: float) -> float:
    return due_s
