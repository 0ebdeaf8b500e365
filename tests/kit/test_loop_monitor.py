"""The loop monitor: what blocks the loop is measured, what does not is not."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

from mooring.kit.loop import run_real
from mooring.kit.loop_monitor import BOUNDS_S, Intervals, LoopMonitor, thread_monitor
from tests.waiting import until

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
