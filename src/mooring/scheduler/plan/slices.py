"""Computations that give way: plans run in slices between which the scheduler goes on.

1. A computation is a generator that yields before each decision and before each change, however small. The runner may
   stop it there and let others run.
2. A slice ends after `SLICE_S`, counting what the pause costs: undoing the changes before it, and applying them again
   after the last one. A slice gets at least `SLICE_S_MIN` for the computation itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Protocol, TypeAlias, TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")
Slices: TypeAlias = Generator[None, None, Result]
"""A computation that may be suspended where it yields."""

NowS = Callable[[], float]
LetOthersRun = Callable[[], Awaitable[None]]

SLICE_S = 0.035
"""Time after which a slice ends. The step that is running then ends first."""
SLICE_S_MIN = 0.005


class Suspendable(Protocol):
    """What a computation has changed."""

    def suspend(self) -> None: ...

    def resume(self) -> None: ...


class Unchanging:
    """For computations that change nothing."""

    def suspend(self) -> None:
        """Nothing is undone."""

    def resume(self) -> None:
        """Nothing is applied."""


def run_to_end(slices: Slices[Result], progress: Callable[[], None] = lambda: None) -> Result:
    """The result of a computation that is not suspended. `progress` is called after each step."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
        progress()


async def run_in_slices(
    slices: Slices[Result],
    changes: Suspendable,
    now_s: NowS,
    let_others_run: LetOthersRun,
    check: Callable[[], None] = lambda: None,
) -> Result:
    """The result of a computation that lets others run after each slice. `check` is called after each step."""
    end_s = now_s() + SLICE_S
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
        check()
        stopped_s = now_s()
        if stopped_s < end_s:
            continue
        changes.suspend()
        suspending_s = now_s() - stopped_s
        await let_others_run()
        started_s = now_s()
        changes.resume()
        end_s = max(started_s + SLICE_S - suspending_s, now_s() + SLICE_S_MIN)


def mapped(function: Callable[[Item], Result], items: Iterable[Item]) -> Slices[list[Result]]:
    """The result of a function for each item."""
    results: list[Result] = []
    for item in items:
        yield
        results.append(function(item))
    return results
