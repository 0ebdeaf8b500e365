"""Virtual time jumps to the next timer in a reproducible order; deadlocks and livelocks are errors.

The loop monitor: what blocks the loop is measured, what does not is not.
"""

from __future__ import annotations

import asyncio
import gc
import math
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.loop import (
    BOUNDS_S,
    CANCELLED_ALARMS_MIN,
    DeadlockError,
    Intervals,
    LivelockError,
    LoopMonitor,
    VirtualLoop,
    run,
    run_real,
    thread_monitor,
)
from tests.waiting import until


def loop_now() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


# ------------------------------------------------------------------------------------------------- time


def test_time_jumps_to_each_alarm_and_stands_still_between() -> None:
    async def main() -> list[float]:
        seen_s = [loop_now().time()]
        for delay_s in (0.0, 3600.0, 0.25):
            await asyncio.sleep(delay_s)
            seen_s.append(loop_now().time())
        return seen_s

    assert run(main()) == [0.0, 0.0, 3600.0, 3600.25]


def test_the_clock_that_was_given_is_the_one_that_moves() -> None:
    clock = VirtualClock()
    run(asyncio.sleep(7), clock)
    assert clock.now_s() == 7.0


def test_time_does_not_move_while_something_is_ready() -> None:
    async def main() -> float:
        loop_now().call_later(1.0, lambda: None)
        for _ in range(1000):
            await asyncio.sleep(0)
        return loop_now().time()

    assert run(main()) == 0.0


def test_an_alarm_set_in_the_past_rings_now() -> None:
    async def main() -> tuple[float, bool]:
        await asyncio.sleep(5.0)
        rang = asyncio.Event()
        loop_now().call_at(1.0, rang.set)
        await rang.wait()
        return loop_now().time(), rang.is_set()

    assert run(main()) == (5.0, True)


def test_an_alarm_due_now_rings_although_others_keep_the_loop_busy() -> None:
    async def main() -> int:
        rang = asyncio.Event()
        loop_now().call_later(0, rang.set)
        turns = 0
        while not rang.is_set():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert run(main()) <= 2


def test_time_outs_run_on_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30.0):
                await asyncio.Event().wait()
        return loop_now().time()

    assert run(main()) == 30.0


@given(st.lists(st.integers(0, 5), max_size=40))
def test_alarms_ring_by_time_and_then_in_the_order_they_were_set(delays: list[int]) -> None:
    async def main() -> list[tuple[int, int]]:
        rung: list[tuple[int, int]] = []
        for index, delay in enumerate(delays):
            loop_now().call_later(delay, rung.append, (delay, index))
        await asyncio.sleep(6)
        return rung

    assert run(main()) == sorted((delay, index) for index, delay in enumerate(delays))


def test_an_alarm_for_a_time_that_is_no_number_is_refused() -> None:
    async def main() -> None:
        loop_now().call_later(math.nan, lambda: None)

    with pytest.raises(ValueError, match="not a number"):
        run(main())


# -------------------------------------------------------------------------------------------- cancelling


def test_a_cancelled_alarm_does_not_move_time() -> None:
    async def main() -> float:
        loop_now().call_later(1000.0, lambda: None).cancel()
        await asyncio.sleep(1.0)
        return loop_now().time()

    clock = VirtualClock()
    assert run(main(), clock) == clock.now_s() == 1.0


def test_an_alarm_cancelled_by_another_of_the_same_moment_does_not_ring() -> None:
    async def main() -> list[str]:
        rung: list[str] = []
        later: list[asyncio.TimerHandle] = []
        loop_now().call_later(1.0, lambda: later[0].cancel())
        later.append(loop_now().call_later(1.0, rung.append, "cancelled"))
        loop_now().call_later(1.0, rung.append, "kept")
        await asyncio.sleep(2.0)
        return rung

    assert run(main()) == ["kept"]


def test_cancelled_alarms_are_swept_out_and_the_rest_still_ring() -> None:
    async def main() -> tuple[list[int], int]:
        rung: list[int] = []
        for second in (3, 1, 2):
            loop_now().call_later(second, rung.append, second)
        for _ in range(10_000):
            alarm = loop_now().call_later(3600.0, rung.append, 0)
            alarm.cancel()
            alarm.cancel()
        kept = loop_now().statistics()
        assert kept["alarms"] == 3
        await asyncio.sleep(5)
        return rung, kept["alarms_cancelled"]

    rung, alarms_cancelled = run(main())
    assert rung == [1, 2, 3]
    assert alarms_cancelled <= CANCELLED_ALARMS_MIN + 1


def test_the_count_of_cancelled_alarms_ends_at_zero() -> None:
    async def main() -> dict[str, int]:
        for delay in range(50):
            alarm = loop_now().call_later(delay, lambda: None)
            if delay % 3 == 0:
                alarm.cancel()
        await asyncio.sleep(100)
        return loop_now().statistics()

    statistics = run(main())
    assert (statistics["alarms"], statistics["alarms_cancelled"]) == (0, 0)
    assert statistics["events"] > 33
    assert statistics["instants"] == 34


# -------------------------------------------------------------------------------- deadlock and livelock


async def wait_for_godot() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(wait_for_godot, id="an event nobody sets"),
        pytest.param(lambda: asyncio.sleep(math.inf), id="an alarm at the end of time"),
    ],
)
def test_a_deadlock_is_an_error(make: Callable[[], Coroutine[object, object, None]]) -> None:
    with pytest.raises(
        DeadlockError, match=r"deadlock at 0\.0 s of virtual time: nothing is ready and no timer is set"
    ):
        run(make())


def test_a_deadlock_names_the_tasks_that_wait_and_where() -> None:
    async def main() -> None:
        await asyncio.sleep(2.5)
        await asyncio.get_running_loop().create_task(wait_for_godot(), name="vladimir")

    with pytest.raises(DeadlockError) as deadlock:
        run(main())
    text = str(deadlock.value)
    assert "deadlock at 2.5 s" in text
    assert "'vladimir' in wait_for_godot (" in text
    assert "test_loop.py:" in text


def test_a_deadlock_names_only_so_many_tasks() -> None:
    async def main() -> None:
        waiting = [asyncio.get_running_loop().create_task(wait_for_godot()) for _ in range(30)]
        await asyncio.wait(waiting)

    with pytest.raises(DeadlockError, match="and 11 more"):
        run(main())


def test_cancelled_alarms_do_not_hide_a_deadlock() -> None:
    async def main() -> None:
        loop_now().call_later(1.0, lambda: None).cancel()
        await wait_for_godot()

    with pytest.raises(DeadlockError):
        run(main())


def test_the_cleanup_of_a_deadlocked_task_still_runs() -> None:
    cleaned: list[str] = []

    async def main() -> None:
        try:
            await wait_for_godot()
        finally:
            cleaned.append("up")

    with pytest.raises(DeadlockError):
        run(main())
    assert cleaned == ["up"]


def test_a_livelock_is_an_error_that_names_its_limit() -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110 (spinning is the point)
            await asyncio.sleep(0)

    loop = VirtualLoop(VirtualClock(), events_per_instant_max=1000)
    with pytest.raises(LivelockError, match=r"events_per_instant_max is 1000.*\n.*spin"):
        loop.run_until_complete(spin())
    loop.wind_up()


def test_the_limit_of_events_counts_anew_when_time_moves() -> None:
    async def busy() -> None:
        for _ in range(10):
            for _ in range(500):
                await asyncio.sleep(0)
            await asyncio.sleep(1)

    loop = VirtualLoop(VirtualClock(), events_per_instant_max=1000)
    loop.run_until_complete(busy())
    assert loop.wind_up() == []
    assert loop.statistics()["events"] > 5000


# ------------------------------------------------------------------------------------- threads and replay


def test_work_for_another_thread_is_done_here_and_in_order() -> None:
    def where(number: int) -> tuple[int, str]:
        return number, threading.current_thread().name

    async def main() -> list[tuple[int, str]]:
        return [await asyncio.to_thread(where, number) for number in range(3)]

    here = threading.current_thread().name
    assert run(main()) == [(0, here), (1, here), (2, here)]


def test_an_error_in_work_for_another_thread_is_raised_where_it_is_awaited() -> None:
    async def main() -> str:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return "survived"

    assert run(main()) == "survived"


def test_a_call_from_another_thread_is_heard() -> None:
    async def main() -> bool:
        heard = asyncio.Event()
        thread = threading.Thread(target=asyncio.get_running_loop().call_soon_threadsafe, args=(heard.set,))
        thread.start()
        thread.join()
        await heard.wait()
        return heard.is_set()

    assert run(main())


def test_a_hundred_tasks_replay_exactly() -> None:
    async def hop(number: int, journal: list[tuple[float, int]]) -> None:
        for step in range(5):
            await asyncio.sleep((number * 7 + step * 3) % 5)
            journal.append((loop_now().time(), number))

    async def main() -> list[tuple[float, int]]:
        journal: list[tuple[float, int]] = []
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(hop(number, journal))
        return journal

    assert run(main()) == run(main())


def test_real_time_is_there_for_production() -> None:
    async def main() -> float:
        began_s = SystemClock().now_s()
        await asyncio.sleep(0.02)
        return SystemClock().now_s() - began_s

    assert run_real(main()) >= 0.019


@pytest.mark.parametrize("is_installed", [True, False])
def test_real_time_runs_on_uvloop_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    if not is_installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def main() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert run_real(main()).startswith("uvloop" if is_installed else "asyncio")


def test_a_day_of_alarms_is_virtual() -> None:
    async def tick(every_s: float) -> None:
        for _ in range(1000):
            await asyncio.sleep(every_s)

    async def main() -> None:
        waiting: list[Awaitable[None]] = [asyncio.get_running_loop().create_task(tick(86.4)) for _ in range(20)]
        for one in waiting:
            await one

    clock = VirtualClock()
    run(main(), clock)
    assert clock.now_s() == pytest.approx(86_400.0)


# --- How a run on virtual time ends: nothing keeps running, no error is lost -----------------------------------------


def test_the_result_of_main_is_returned_and_its_error_raised() -> None:
    async def succeed() -> str:
        return "done"

    async def fail() -> None:
        raise ValueError("no")

    assert run(succeed()) == "done"
    with pytest.raises(ValueError, match="no"):
        run(fail())


async def fail_at_once() -> None:
    raise KeyError("lost")


def test_an_error_in_a_callback_fails_the_run() -> None:
    async def main() -> None:
        loop_now().call_later(1.0, lambda: 1 // 0)
        await asyncio.sleep(2.0)

    with pytest.raises(ExceptionGroup, match="were not awaited") as group:
        run(main())
    assert [type(error) for error in group.value.exceptions] == [ZeroDivisionError]


@pytest.mark.parametrize("is_kept", [True, False], ids=["still referred to", "already collected"])
def test_an_error_in_a_task_that_was_not_awaited_fails_the_run(is_kept: bool) -> None:
    kept: list[object] = []

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(fail_at_once(), name="orphan")
        if is_kept:
            kept.append(task)
        del task
        await asyncio.sleep(1.0)
        gc.collect()

    with pytest.raises(ExceptionGroup, match="were not awaited") as group:
        run(main())
    assert [repr(error) for error in group.value.exceptions] == ["KeyError('lost')"]


def test_when_main_fails_errors_of_other_tasks_are_notes() -> None:
    async def main() -> None:
        orphan = asyncio.get_running_loop().create_task(fail_at_once())
        await asyncio.sleep(1.0)
        assert orphan.done()
        raise ValueError("main")

    with pytest.raises(ValueError, match="main") as failure:
        run(main())
    assert failure.value.__notes__ == ["also, not awaited: KeyError('lost')"]


def test_an_error_while_winding_up_fails_the_run() -> None:
    async def stubborn() -> None:
        try:
            await wait_for_godot()
        finally:
            raise OSError("cannot clean up")

    async def main() -> None:
        kept.append(asyncio.get_running_loop().create_task(stubborn()))
        await asyncio.sleep(0)

    kept: list[asyncio.Task[None]] = []
    with pytest.raises(ExceptionGroup) as group:
        run(main())
    assert [str(error) for error in group.value.exceptions] == ["cannot clean up"]


def test_what_is_left_running_is_cancelled_oldest_first_and_may_take_time_to_clean_up() -> None:
    ended: list[tuple[int, float]] = []

    async def linger(number: int) -> None:
        try:
            await wait_for_godot()
        finally:
            await asyncio.sleep(1.0)
            ended.append((number, loop_now().time()))

    async def main() -> None:
        kept.extend(asyncio.get_running_loop().create_task(linger(number)) for number in range(20))
        await asyncio.sleep(0)

    kept: list[asyncio.Task[None]] = []
    run(main())
    assert ended == [(number, 1.0) for number in range(20)]


def test_generators_left_open_are_closed() -> None:
    closed: list[str] = []

    async def count(name: str) -> AsyncGenerator[int, None]:
        try:
            for number in range(10):
                yield number
        finally:
            await asyncio.sleep(1.0)
            closed.append(name)

    async def main() -> None:
        kept = count("kept")
        still_referred_to.append(kept)
        await anext(kept)
        await anext(count("dropped"))
        await asyncio.sleep(5.0)
        assert closed == ["dropped"]

    still_referred_to: list[object] = []
    run(main())
    assert closed == ["dropped", "kept"]


def test_a_loop_cannot_be_entered_twice_and_can_run_again_after_stopping() -> None:
    async def reenter() -> None:
        loop_now().run_forever()

    loop = VirtualLoop(VirtualClock())
    with pytest.raises(RuntimeError, match="already running"):
        loop.run_until_complete(reenter())
    assert not loop.is_running()
    loop.call_later(3.0, loop.stop)
    loop.run_forever()
    assert loop.time() == 3.0
    loop.wind_up()
    assert loop.is_closed()


def test_an_interrupt_from_the_keyboard_ends_the_run() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        loop_now().call_later(1.0, interrupt)
        await asyncio.sleep(100.0)

    clock = VirtualClock()
    with pytest.raises(KeyboardInterrupt):
        run(main(), clock)
    assert clock.now_s() == 1.0


WORK_S = 0.08


def use_cpu(seconds: float) -> None:
    ends_s = time.thread_time() + seconds
    while time.thread_time() < ends_s:
        pass


def measured(monitor: LoopMonitor, block: threading.Event | None = None) -> None:
    async def play() -> None:
        monitor.start(asyncio.get_running_loop())
        ticks = monitor.ticks
        await until(lambda: monitor.ticks > ticks)
        if block is None:
            use_cpu(WORK_S)
        else:
            threading.Timer(WORK_S, block.set).start()
            block.wait()
        ticks = monitor.ticks
        await until(lambda: monitor.ticks > ticks)
        monitor.stop()

    run_real(play())


def test_cpu_time_of_a_callback_is_found() -> None:
    monitor = LoopMonitor()
    measured(monitor)
    # At most a tick less: the timer may have been set when the callback began.
    assert monitor.cpu.longest_s >= WORK_S - 0.02
    assert monitor.wall.longest_s >= monitor.cpu.longest_s
    assert monitor.wall.total_s >= monitor.wall.longest_s
    assert sum(monitor.cpu.counts) >= 1


def test_a_callback_that_waits_takes_time_and_no_cpu() -> None:
    monitor = LoopMonitor()
    measured(monitor, threading.Event())
    assert monitor.wall.longest_s >= WORK_S - 0.02
    assert monitor.cpu.longest_s < monitor.wall.longest_s


def test_a_collection_in_another_thread_blocks_the_loop() -> None:
    monitor = LoopMonitor()
    traversed: list[object] = [[] for _ in range(3_000_000)]  # so that a collection takes longer than a tick

    async def play() -> None:
        monitor.start(asyncio.get_running_loop())
        await until(lambda: monitor.ticks)
        began_s = time.thread_time()
        await asyncio.to_thread(gc.collect)
        ticks = monitor.ticks
        await until(lambda: monitor.ticks > ticks + 1)
        monitor.stop()
        assert monitor.cpu.longest_s > time.thread_time() - began_s, "more than this thread used meanwhile"

    run_real(play())
    assert len(traversed) == 3_000_000
    assert monitor._note_collection not in gc.callbacks


def test_buckets_are_cumulative_and_short_intervals_are_not_counted() -> None:
    intervals = Intervals()
    for length_s in (0.009, 0.02, 0.04, 0.04, 99.0):
        intervals.note(length_s)
    buckets = intervals.buckets()
    assert buckets[:3] == [("0.025", 1.0), ("0.05", 3.0), ("0.075", 3.0)]
    assert buckets[-1] == ("+Inf", 4.0)
    assert (intervals.longest_s, len(buckets)) == (99.0, len(BOUNDS_S))


def test_real_loops_are_measured_one_after_the_other() -> None:
    async def play() -> int:
        ticks = thread_monitor().ticks
        await until(lambda: thread_monitor().ticks > ticks)
        return thread_monitor().ticks

    assert run_real(play()) < run_real(play())


def test_loops_of_two_threads_are_measured_at_the_same_time() -> None:
    found: list[LoopMonitor] = []

    async def inner() -> None:
        monitor = thread_monitor()
        await until(lambda: monitor.ticks > 0)
        found.append(monitor)

    async def outer() -> None:
        await asyncio.to_thread(lambda: run_real(inner()))
        found.append(thread_monitor())

    run_real(outer())
    assert len(set(map(id, found))) == 2
