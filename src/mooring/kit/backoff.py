"""Backoff: how long to wait after a failure.

Comes in   how often something failed in a row
Goes out   seconds to wait, doubling from the first failure up to a limit

 1. Without a failure there is no wait; after the first it is `initial_s`; each further one doubles it up to `max_s`.
 2. Jitter only lengthens, by at most the fraction `jitter`, and is added after the limit: those who failed together
    would otherwise all wait exactly `max_s` and fail together again.
 3. A `KeyedBackoff` remembers at most `keys_max` keys; beyond that the one that failed longest ago is forgotten, which
    costs it nothing but its patience.

Nothing here reads a clock or waits: the answer is a number.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mooring.kit.entropy import Entropy

KEYS_MAX = 100_000
# 2.0 ** 1024 is no float any more, and a wait that was doubled so often has long met its limit.
_DOUBLINGS_MAX = 1_000

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The rule of doubling."""

    initial_s: float
    max_s: float
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.initial_s <= self.max_s:
            raise ValueError(f"backoff from {self.initial_s} s to {self.max_s} s; wanted 0 < initial_s <= max_s")
        if self.jitter < 0:
            raise ValueError(f"backoff with a jitter of {self.jitter}; wanted 0 or more")

    def delay_s(self, failures: int) -> float:
        """The wait after that many failures in a row, without jitter."""
        assert failures >= 0, f"{failures} failures"
        if failures == 0:
            return 0.0
        return min(self.max_s, self.initial_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))

    def jittered_delay_s(self, failures: int, entropy: Entropy) -> float:
        """The wait after that many failures in a row, lengthened by chance."""
        return self.delay_s(failures) * (1.0 + self.jitter * entropy.uniform())


class KeyedBackoff(Generic[Key]):
    """Failures in a row, counted for each key."""

    def __init__(self, backoff: Backoff, entropy: Entropy, *, keys_max: int = KEYS_MAX) -> None:
        assert keys_max > 0, f"a backoff for {keys_max} keys remembers nothing"
        self._backoff = backoff
        self._entropy = entropy
        self._keys_max = keys_max
        self._failures: dict[Key, int] = {}  # the one that failed longest ago first
        self._evictions = 0

    def fail(self, key: Key) -> float:
        """Count a failure; how long to wait for it, in seconds."""
        failures = self._failures.pop(key, 0) + 1
        if len(self._failures) >= self._keys_max:
            del self._failures[next(iter(self._failures))]
            self._evictions += 1
        self._failures[key] = failures
        return self._backoff.jittered_delay_s(failures, self._entropy)

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: Key) -> None:
        """It succeeded, or is gone: the next failure is the first again."""
        self._failures.pop(key, None)

    def statistics(self) -> dict[str, int]:
        return {"keys": len(self._failures), "keys_max": self._keys_max, "evictions": self._evictions}
