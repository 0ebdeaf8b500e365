"""A progress bar for work that takes longer than a moment.

Comes in   how much there is to do, and how much more has been done
Goes out   a bar on standard error, if that is a terminal; otherwise nothing at all

 1. Work that is done within `PATIENCE_S` shows no bar: a flash of one is worse than none.
 2. rich is imported when the bar appears, not before.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from mooring.kit.clock import Clock

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_S = 0.5


class Meter:
    """Counts towards a total, and shows it once that takes long. Use it as a context manager."""

    def __init__(self, what: str, total: int, clock: Clock) -> None:
        self._what = what
        self._total = total
        self._clock = clock
        self._is_watched = sys.stderr.isatty()
        self._started_s = clock.now_s()
        self._done = 0
        self._bar: Progress | None = None

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, amount: int) -> None:
        """There is more to do than was known."""
        self._total += amount
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], total=self._total)

    def advance(self, amount: int) -> None:
        self._done += amount
        if not self._is_watched or not self._total:
            return
        if self._bar is None and self._clock.now_s() - self._started_s > PATIENCE_S:
            self._bar = self._open()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=min(self._done, self._total))

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.add_task(self._what, total=self._total)
        bar.start()
        return bar
