"""Output on a terminal: layout of text, colours, progress bars.

1. Lines are not longer than the width, unless a single word is. Colours do not count.
2. A progress bar with an estimate of the time left appears on standard error if that is a terminal and the work takes
   longer than `PATIENCE_S`. rich is imported when it appears.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

import click

from mooring.kit.clock import Clock

if TYPE_CHECKING:
    from rich.progress import Progress

ELLIPSIS = "…"
WIDTH_MIN = 60
WIDTH_MAX = 120
"""Wider lines are hard to read."""
PATIENCE_S = 0.5


@dataclass(frozen=True, slots=True)
class Terminal:
    """The width of the output, and whether to use colours."""

    width: int
    coloured: bool = False

    def paint(self, text: str, *, colour: str | None = None, bold: bool = False, dim: bool = False) -> str:
        if not self.coloured:
            return text
        return click.style(text, fg=colour, bold=bold or None, dim=dim or None)


def standard_output() -> Terminal:
    """The terminal of standard output; 80 columns without colours if it is none."""
    width = min(max(shutil.get_terminal_size((80, 24)).columns, WIDTH_MIN), WIDTH_MAX)
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Terminal(width, coloured)


def counted(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def wrapped(text: str, width: int, *, indent: int, hanging: int | None = None) -> list[str]:
    """Lines broken at spaces only, so that quoted messages stay intact."""
    return textwrap.wrap(
        text,
        max(width, indent + 20),
        initial_indent=" " * indent,
        subsequent_indent=" " * (hanging if hanging is not None else indent),
        break_long_words=False,
        break_on_hyphens=False,
    )


def shortened_names(names: Sequence[str], width: int) -> list[str]:
    """Shortens names by what they have in common: first their end, then their beginning.

    The part in which they differ is never cut, so that a name may still be longer than the width."""
    if all(len(name) <= width for name in names):
        return list(names)
    end = _common_start([name[::-1] for name in names])
    shorter = [name[: len(name) - end] + ELLIPSIS for name in names] if end > 1 else list(names)
    if any(len(name) > width for name in shorter):
        start = _common_start(shorter)
        shorter = [ELLIPSIS + name[start:] for name in shorter] if start > 1 else shorter
    return shorter


def listed_names(names: Sequence[str], width: int) -> str:
    """`a, b, c`, as many as fit and at least one, then `… 12 more`. Names are never cut."""
    text = best = ""
    for count, name in enumerate(names, start=1):
        text = f"{text}, {name}" if text else name
        left = len(names) - count
        candidate = f"{text}, {ELLIPSIS} {left} more" if left else text
        if len(candidate) <= width or not best:
            best = candidate
        elif len(text) > width:
            break
    return best


def table(rows: Sequence[Sequence[str]], *, has_numbers: bool = False) -> list[str]:
    """Lines with columns as wide as their longest cell; numbers are at the right of all columns but the first."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [
            cell.rjust(width) if has_numbers else cell.ljust(width)
            for cell, width in zip(others, widths[1:], strict=True)
        ]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines


def _common_start(names: Sequence[str]) -> int:
    """The length of the common prefix; 0 for a single name."""
    if len(names) < 2:
        return 0
    pairs = zip(min(names), max(names))  # all names between these two share their prefix
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(map(len, names)))


class ProgressBar:
    """Counts towards a total. Use it as a context manager."""

    def __init__(self, what: str, total: int, clock: Clock) -> None:
        self._what = what
        self._total = total
        self._clock = clock
        self._is_watched = sys.stderr.isatty()
        self._started_s = clock.now_s()
        self._done = 0
        self._bar: Progress | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, amount: int) -> None:
        """Increase the total."""
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
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.add_task(self._what, total=self._total)
        bar.start()
        return bar


def yaml_text(plain: object) -> str:
    """Plain data as YAML, for `-o yaml`."""
    import yaml

    return yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100)
