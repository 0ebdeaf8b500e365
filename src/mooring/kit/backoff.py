"""Exponential backoff: how long to wait after a failure.

 1. Without a failure the delay is 0; after the first it is `initial_s`; each further failure doubles it up to `max_s`.
 2. Jitter lengthens the delay by at most the fraction `jitter`, after the limit is applied: clients that failed
    together would otherwise all retry after exactly `max_s`.
 3. A `KeyedBackoff` tracks at most `keys_max` keys; beyond that it drops the one that failed longest ago.

Nothing here reads a clock or waits.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mooring.kit.entropy import Entropy

KEYS_MAX = 100_000
# 2.0 ** 1024 overflows a float, and the limit is reached long before.
_DOUBLINGS_MAX = 1_000

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The parameters of the backoff."""

    initial_s: float
    max_s: float
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.initial_s <= self.max_s:
            raise ValueError(f"backoff from {self.initial_s} s to {self.max_s} s; expected 0 < initial_s <= max_s")
        if self.jitter < 0:
            raise ValueError(f"backoff with a jitter of {self.jitter}; wanted 0 or more")

    def delay_s(self, failures: int) -> float:
        """The delay after that many failures in a row, without jitter."""
        assert failures >= 0, f"{failures} failures"
        if failures == 0:
            return 0.0
        return min(self.max_s, self.initial_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))

    def jittered_delay_s(self, failures: int, entropy: Entropy) -> float:
        """The delay after that many failures in a row, with jitter."""
        return self.delay_s(failures) * (1.0 + self.jitter * entropy.uniform())


class KeyedBackoff(Generic[Key]):
    """Failures in a row, by key."""

    def __init__(self, backoff: Backoff, entropy: Entropy, *, keys_max: int = KEYS_MAX) -> None:
        assert keys_max > 0, f"a backoff for {keys_max} keys holds nothing"
        self._backoff = backoff
        self._entropy = entropy
        self._keys_max = keys_max
        self._failures: dict[Key, int] = {}  # the key that failed longest ago first

    def fail(self, key: Key) -> float:
        """Count a failure and return the delay in seconds."""
        failures = self._failures.pop(key, 0) + 1
        if len(self._failures) >= self._keys_max:
            del self._failures[next(iter(self._failures))]
        self._failures[key] = failures
        return self._backoff.jittered_delay_s(failures, self._entropy)

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: Key) -> None:
        """The key succeeded or is gone: its next failure is the first."""
        self._failures.pop(key, None)
