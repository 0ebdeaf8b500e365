"""The change log: which rows changed since somebody last looked.

Comes in   row numbers, from the columns, each time a row's facts or usage change
Goes out   "these rows changed since you were here", to whoever keeps something computed per row

Why a log and not a version for each row: a reader that kept 5,000 answers wants the three that are stale, and
comparing 5,000 versions would cost more than computing the three again.

 1. A position is a count of all changes ever logged, so it only grows and means the same to every reader.
 2. The log forgets: a reader that stayed away for more than `LOG_LENGTH_MAX` changes is told to look at everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.scheduler.cache.arrays import Int64s

LOG_LENGTH_MAX = 1 << 16


class ChangeLog:
    """Rows that changed, in order, with a position that readers keep."""

    __slots__ = ("_forgotten", "_rows", "position")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._forgotten = 0
        self.position = 0

    def append(self, row: int) -> None:
        self._rows.append(row)
        self.position += 1
        if len(self._rows) > LOG_LENGTH_MAX:
            self._forget(LOG_LENGTH_MAX // 2)

    def extend(self, rows: Sequence[int]) -> None:
        self._rows.extend(rows)
        self.position += len(rows)
        if len(self._rows) > LOG_LENGTH_MAX:
            self._forget(len(self._rows) - LOG_LENGTH_MAX // 2)

    def _forget(self, count: int) -> None:
        del self._rows[:count]
        self._forgotten += count

    def since(self, position: int) -> Int64s | None:
        """The distinct rows that changed after `position`, or None when the log no longer knows."""
        start = position - self._forgotten
        if start < 0:
            return None
        return np.array(sorted(set(self._rows[start:])), dtype=np.int64)

    def few_since(self, position: int, most: int) -> Sequence[int] | None:
        """As `since`, if at most `most` changes were logged after `position`; otherwise None."""
        if self.position - position > most or position < self._forgotten:
            return None
        recent = self._rows[position - self._forgotten :]
        return recent if len(recent) == 1 else sorted(set(recent))
