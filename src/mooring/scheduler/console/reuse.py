"""Answers that are used again for a while, because every open page of the console asks once per second.

An answer is used again for `REUSED_TIMES` the time that it took, and for `REUSED_S` at least: however many pages are
open, they take at most a twentieth of the scheduler's time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mooring.kit.clock import Clock

REUSED_S = 0.9
"""Shorter than the second after which a page asks again."""
REUSED_TIMES = 20

Answer = TypeVar("Answer")


class Reused(Generic[Answer]):
    """The latest answers by key."""

    def __init__(self, clock: Clock, answers_max: int) -> None:
        self._clock = clock
        self._answers_max = answers_max
        self._known: dict[Hashable, tuple[float, Answer]] = {}
        """By key: until when an answer is used again, and the answer."""

    def get(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        known, now_s = self._known.get(key), self._clock.now_s()
        if known is None or now_s > known[0]:
            answer = compute()
            ended_s = self._clock.now_s()
            self._known.pop(key, None)  # so that the oldest answer is the first
            known = self._known[key] = (ended_s + max(REUSED_S, REUSED_TIMES * (ended_s - now_s)), answer)
            while len(self._known) > self._answers_max:
                del self._known[next(iter(self._known))]
        return known[1]
