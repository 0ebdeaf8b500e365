"""No request takes for ever."""

from __future__ import annotations

import asyncio

import pytest

from mooring.apiserver.http.deadlines import LOOKS, Deadlines
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup

S_MAX = 60.0


async def _worked(deadlines: Deadlines, clock: VirtualClock, seconds: float) -> str:
    task = deadlines.begin()
    try:
        await clock.wait(seconds)
    except asyncio.CancelledError:
        if not deadlines.is_over(task):
            raise
        return f"cut off at {clock.now_s():.0f}"
    finally:
        deadlines.end(task)
    return "done"


@pytest.mark.parametrize(
    ("begin_s", "seconds", "end"),
    [
        pytest.param(0.0, 1.0, "done", id="quick"),
        pytest.param(0.0, S_MAX, "done", id="just in time"),
        pytest.param(0.0, 100.0, "cut off at 68", id="too slow"),
        pytest.param(7.4, 100.0, "cut off at 68", id="too slow, begun just before a look"),
        pytest.param(7.6, 100.0, "cut off at 75", id="too slow, begun just after a look"),
    ],
)
def test_a_request_beyond_its_deadline_is_cancelled(begin_s: float, seconds: float, end: str) -> None:
    clock = VirtualClock()

    async def story() -> None:
        deadlines = Deadlines(S_MAX)
        async with TaskGroup("test") as group:
            group.start(_worked(deadlines, clock, 10.0), name="another")
            await clock.wait(begin_s)
            work = group.start(_worked(deadlines, clock, seconds), name="work")
        assert work.result() == end

    run(story(), clock)


def test_a_task_goes_on_after_it_was_cut_off() -> None:
    clock = VirtualClock()

    async def story() -> None:
        deadlines = Deadlines(S_MAX)
        assert (await _worked(deadlines, clock, 1_000.0)).startswith("cut off")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        assert await _worked(deadlines, clock, 1.0) == "done"

    run(story(), clock)


def test_a_cancellation_from_elsewhere_passes_through() -> None:
    clock = VirtualClock()

    async def story() -> None:
        deadlines = Deadlines(S_MAX)
        async with TaskGroup("test") as group:
            work = group.start(_worked(deadlines, clock, 1_000.0), name="work")
            await clock.wait(1.0)
            work.cancel()
        assert work.cancelled()

    run(story(), clock)


def test_without_work_there_is_no_alarm() -> None:
    clock = VirtualClock()

    async def story() -> None:
        deadlines = Deadlines(S_MAX)
        await _worked(deadlines, clock, 1.0)
        await clock.wait(S_MAX / LOOKS)
        assert asyncio.get_running_loop().statistics()["alarms"] == 0  # type: ignore[attr-defined]

    run(story(), clock)
