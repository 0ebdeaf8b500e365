"""When a search is given up.

Comes in   the clock, and how long a search on one node may take
Goes out   `SearchTimeout`, if it takes longer

 1. Where time stands still (in a simulation, in `mooring explain`) the number of steps ends a search.
"""

from __future__ import annotations

from mooring.kit.clock import Clock

STEPS_MAX = 2_000_000
"""About as many as kube-scheduler's ten seconds are for Python: where no clock runs, this is what ends a search."""


class SearchTimeout(Exception):
    """The search took too long: nobody knows whether there is a solution."""


class Deadline:
    """When a search must end."""

    __slots__ = ("_clock", "_end_s")

    def __init__(self, clock: Clock | None, timeout_s: float) -> None:
        self._clock = clock if timeout_s > 0 else None
        self._end_s = clock.now_s() + timeout_s if clock is not None else 0.0

    def check(self, step: int) -> None:
        if step > STEPS_MAX or (self._clock is not None and self._clock.now_s() > self._end_s):
            raise SearchTimeout
