"""Measures how long a callback keeps the event loop from running others.

A timer fires every `TICK_S`. If it fires late, something kept the loop busy meanwhile: at least for as long as the
timer was late, at most for `TICK_S` longer. Neither asyncio nor uvloop reports the length of an iteration, and wrapping
each callback would cost more than most callbacks.

1. `wall` contains the time in which the operating system ran other processes, or in which another thread held the
   interpreter lock. `cpu` is the CPU time that the loop's thread used in the same intervals. A garbage collection in
   another thread is an interval of `cpu`, too: no thread runs meanwhile.
2. Intervals shorter than `SHORT_S` are not counted: timers themselves are late by about a millisecond.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from bisect import bisect_left
from math import inf

TICK_S = 0.01
SHORT_S = 0.01
BOUNDS_S = (0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0, inf)


class Intervals:
    """The lengths of intervals: the longest, the total, and a histogram."""

    __slots__ = ("counts", "longest_s", "total_s")

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.total_s = 0.0
        self.counts = [0] * len(BOUNDS_S)

    def note(self, length_s: float) -> None:
        if length_s >= SHORT_S:
            self.longest_s = max(self.longest_s, length_s)
            self.total_s += length_s
            self.counts[bisect_left(BOUNDS_S, length_s)] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """The cumulative counts by upper bound, in Prometheus' format."""
        seen, found = 0, []
        for bound, count in zip(BOUNDS_S, self.counts, strict=True):
            seen += count
            found.append(("+Inf" if bound == inf else repr(bound), float(seen)))
        return found


class LoopMonitor:
    """The blocking intervals of one event loop."""

    def __init__(self) -> None:
        self.wall = Intervals()
        self.cpu = Intervals()
        self.ticks = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._cpu_s = 0.0
        self._thread = 0
        self._collection_began_s = 0.0
        self._collections: list[float] = []
        """The CPU times of collections in other threads since the last tick."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Measure a loop, in its own thread, until `stop`."""
        assert self._loop is None, "a monitor measures one loop at a time"
        self._loop, self._thread = loop, threading.get_ident()
        gc.callbacks.append(self._note_collection)
        loop.call_soon(self._begin)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._loop is not None:
            gc.callbacks.remove(self._note_collection)
        self._loop = self._timer = None

    def _note_collection(self, phase: str, info: dict[str, int]) -> None:
        """The garbage collector calls this in the thread that collects."""
        if threading.get_ident() == self._thread:
            return
        if phase == "start":
            self._collection_began_s = time.thread_time()
        else:
            self._collections.append(time.thread_time() - self._collection_began_s)

    def _begin(self) -> None:
        self._set_timer(time.monotonic(), time.thread_time())

    def _tick(self) -> None:
        now_s, cpu_s = time.monotonic(), time.thread_time()
        late_s = now_s - self._due_s
        self.ticks += 1
        self.wall.note(late_s)
        self.cpu.note(min(late_s, cpu_s - self._cpu_s))
        while self._collections:
            self.cpu.note(self._collections.pop())
        self._set_timer(now_s, cpu_s)

    def _set_timer(self, now_s: float, cpu_s: float) -> None:
        if self._loop is not None:  # None: stopped before it began
            self._due_s, self._cpu_s = now_s + TICK_S, cpu_s
            self._timer = self._loop.call_later(TICK_S, self._tick)


class _OfThread(threading.local):
    """The monitor of each thread."""

    def __init__(self) -> None:
        self.monitor = LoopMonitor()


_of_thread = _OfThread()


def thread_monitor() -> LoopMonitor:
    """The monitor of the loops that `run_real` runs in this thread, one after the other. Clusters in one process have a
    thread each, so that each is measured for itself."""
    return _of_thread.monitor
