"""A token bucket: a burst of tokens, then a fixed number per second.

1. The bucket starts full and never holds more than `burst` tokens.
2. `reserve_s` always grants a token: the bucket may owe tokens, and later callers wait longer.
3. Time comes from the clock. Nothing waits here.
"""

from __future__ import annotations

from mooring.kit.clock import Clock


class TokenBucket:
    """`burst` tokens, refilled by `rate_per_s` a second."""

    __slots__ = ("_burst", "_clock", "_rate_per_s", "_tokens", "_updated_s")

    def __init__(self, clock: Clock, *, rate_per_s: float, burst: int) -> None:
        if rate_per_s <= 0 or burst < 1:
            raise ValueError(
                f"a bucket of {burst} tokens at {rate_per_s} a second; expected at least 1, at more than 0"
            )
        self._clock = clock
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = float(burst)
        self._updated_s = clock.now_s()

    def try_take(self) -> bool:
        """Take a token if there is one."""
        self._refill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def reserve_s(self) -> float:
        """Take a token, now or in the future; the seconds until it is there."""
        self._refill()
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate_per_s)

    def _refill(self) -> None:
        now_s = self._clock.now_s()
        self._tokens = min(float(self._burst), self._tokens + (now_s - self._updated_s) * self._rate_per_s)
        self._updated_s = now_s
