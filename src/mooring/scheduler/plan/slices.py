"""Computations in slices: a plan is suspended after each slice, and the scheduler continues.

1. A computation is a generator that yields before each decision and before each change, however small. The runner may
   suspend it there and yield control to other tasks.
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
YieldControl = Callable[[], Awaitable[None]]

SLICE_S = 0.035
"""Time after which a slice ends. The step that is running then ends first."""
SLICE_S_MIN = 0.005


class Suspendable(Protocol):
    """The changes of a computation, undone while it is suspended."""

    def suspend(self) -> None: ...

    def resume(self) -> None: ...


class NoChanges:
    """The changes of a computation that changes nothing."""

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
    yield_control: YieldControl,
    check: Callable[[], None] = lambda: None,
) -> Result:
    """The result of a computation that yields control after each slice. `check` is called after each step."""
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
        await yield_control()
        started_s = now_s()
        changes.resume()
        end_s = max(started_s + SLICE_S - suspending_s, now_s() + SLICE_S_MIN)


def map_in_slices(function: Callable[[Item], Result], items: Iterable[Item]) -> Slices[list[Result]]:
    """The result of a function for each item."""
    results: list[Result] = []
    for item in items:
        yield
        results.append(function(item))
    return results
