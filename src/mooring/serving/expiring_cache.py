"""Answers that are good for a while.

Comes in   answers, each with the time for which it may be used again
Goes out   the answer, as long as it is good

At most `KEPT_MAX` are kept; the oldest makes room.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from mooring.kit.clock import Clock

KEPT_MAX = 4_096

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")


class Remembered(Generic[Key, Kept]):
    """Answers by what was asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[Key, tuple[float, Kept]] = {}

    def get(self, key: Key) -> tuple[bool, Kept | None]:
        """Whether there is an answer, and which."""
        found = self._answers.get(key)
        if found is None or found[0] <= self._clock.now_s():
            return False, None
        return True, found[1]

    def keep(self, key: Key, answer: Kept, for_s: float) -> None:
        self._answers.pop(key, None)
        if len(self._answers) >= KEPT_MAX:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock.now_s() + for_s, answer)
