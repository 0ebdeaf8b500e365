"""The place of a commit: on the loop while the disk is quick, on the writer's thread while it is not.

Comes in   how large a commit is; how long those on the loop took
Goes out   where the next one is worked on

A thread costs a busy loop more than it saves: each of its steps waits for the interpreter, which the loop has, and each
hand-over wakes somebody. Beside a thousand Deployments that came to almost 3 ms for a commit that takes one.
Where the disk takes its time nobody should wait for it but the writers.

 1. Single commits may be slow, at a moment when the disk is busy: what counts is the average of late, in which no one
    commit counts more than `STRAIN_MAX`.
 2. When the loop has waited too long, commits go to the thread for `away_s`, then the loop tries again; as long as that
    is too slow, for twice as long each time.
 3. A commit that is large takes its time on any disk, and goes to the thread.
"""

from __future__ import annotations

from mooring.kit.clock import Clock
from mooring.store.sqlite.limits import SqliteLimits

STRAIN_MAX = 4.0
"""How much a single slow commit counts, in times of what it may take."""
_WEIGHT_OF_LAST = 0.1


class CommitPlace:
    """Remembers how quick the disk was lately."""

    def __init__(self, clock: Clock, limits: SqliteLimits) -> None:
        self._clock = clock
        self._limits = limits
        self._strain = 0.0
        self._away_s = 0.0
        self._away_until_s = 0.0

    def is_here(self, writes: int, size_bytes: int) -> bool:
        """Whether a commit is to be worked on by the loop itself."""
        if writes > self._limits.here_writes_max or size_bytes > self._limits.here_bytes_max:
            return False
        return self._clock.now_s() >= self._away_until_s

    def note(self, writes: int, took_s: float) -> None:
        """How long a commit took here."""
        allowed_s = self._limits.here_s + writes * self._limits.here_s_per_write
        strain = min(took_s / allowed_s, STRAIN_MAX)
        self._strain += _WEIGHT_OF_LAST * (strain - self._strain)
        if self._strain > 1.0:
            self._go_away()
        elif strain <= 1.0:
            self._away_s = 0.0

    def _go_away(self) -> None:
        self._strain = 0.0
        self._away_s = min(max(2 * self._away_s, self._limits.away_s), self._limits.away_s_max)
        self._away_until_s = self._clock.now_s() + self._away_s
