"""The event loops: one on virtual time, which jumps to the next timer, and a monitor of real ones.

 1. Time moves only when nothing is ready, exactly to the earliest timer.
 2. Timers with the same time fire in the order in which they were set: the heap has sequence numbers.
 3. A cancelled timer neither moves time nor hides a deadlock.
 4. Nothing ready, no timer, and not finished is a deadlock: an error that names the waiting tasks.
 5. More than `events_per_instant_max` events without time moving is a livelock: also an error.
 6. An error in a callback, or in a task that is never awaited, fails the run.
 7. There are no sockets and no threads: `run_in_executor` calls its function directly.

A selector loop needs a system call per iteration and uses real time, and asyncio's heap leaves the order of equal times
undefined, which replaying a seed needs.

Measures how long a callback keeps the event loop from running others.

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
import heapq
import logging
import math
import sys
import threading
import time
from asyncio.events import _set_running_loop
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from math import inf
from typing import Any, TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from mooring.kit.clock import VirtualClock

EVENTS_PER_INSTANT_MAX = 10_000_000  # about a minute of real time
TASKS_NAMED_MAX = 20  # in a report, oldest first
CANCELLED_ALARMS_MIN = 128  # fewer are not swept

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class DeadlockError(RuntimeError):
    """Nothing is ready, no timer is set, and the run has not finished."""


class LivelockError(RuntimeError):
    """Events follow each other, and time does not move."""


def run(main: Coroutine[Any, Any, Result], clock: VirtualClock | None = None) -> Result:
    """Run `main` on virtual time. Tasks that are left are cancelled, oldest first."""
    loop = VirtualLoop(clock if clock is not None else VirtualClock())
    try:
        result = loop.run_until_complete(main)
    except BaseException as error:
        for lost in loop.wind_up():
            error.add_note(f"also, not awaited: {lost!r}")
        raise
    if unhandled := loop.wind_up():
        raise ExceptionGroup("errors in tasks that were not awaited", unhandled)
    return result


def run_real(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` on real time, with sockets and threads; on uvloop if it is installed. `thread_monitor` measures it."""
    with asyncio.Runner(loop_factory=_real_loop_factory()) as runner:
        monitor = thread_monitor()
        monitor.start(runner.get_loop())
        try:
            return runner.run(main)
        finally:
            monitor.stop()


def _real_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    # Imported when needed: virtual runs do not use it.
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class Alarm(asyncio.TimerHandle):
    """A timer. `_scheduled`: in the heap and not cancelled."""

    __slots__ = ()
    _scheduled: bool


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that drives a `VirtualClock`."""

    def __init__(self, clock: VirtualClock, *, events_per_instant_max: int = EVENTS_PER_INSTANT_MAX) -> None:
        self._is_turning = False  # before asyncio's __init__, which reads it
        super().__init__()
        self.clock = clock
        self._events_per_instant_max = events_per_instant_max
        self._events = 0
        self._instants = 0
        self._sequence = 0
        self._rung: deque[asyncio.Handle] = deque()
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._alarms_cancelled = 0
        self._tasks_by_age: WeakValueDictionary[int, asyncio.Task[Any]] = WeakValueDictionary()
        self._generators_by_age: WeakValueDictionary[int, AsyncGenerator[Any, Any]] = WeakValueDictionary()
        self._unhandled: list[Exception] = []
        self._stop_requested = False
        self.set_exception_handler(_keep_unhandled)

    # Running

    def run_forever(self) -> None:
        self._check_not_turning()
        self._stop_requested = False
        with self._as_running_loop():
            events_this_instant = 0
            while not self._stop_requested:
                if not self._rung and self._jump():
                    events_this_instant = 0
                self._ring_due()
                events_this_instant += self._run_ready_once()
                if events_this_instant > self._events_per_instant_max:
                    raise LivelockError(self._livelock_report(events_this_instant))

    def _jump(self) -> bool:
        """Move to the earliest timer. Returns whether time moved."""
        alarms = self._alarms
        while alarms and not alarms[0][2]._scheduled:
            heapq.heappop(alarms)
            self._alarms_cancelled -= 1
        if not alarms:
            raise DeadlockError(self._deadlock_report())
        if alarms[0][0] <= self.clock.now_s():
            return False
        self.clock.advance_to(alarms[0][0])
        self._instants += 1
        return True

    def _ring_due(self) -> None:
        alarms = self._alarms
        now_s = self.clock.now_s()
        while alarms and alarms[0][0] <= now_s:
            alarm = heapq.heappop(alarms)[2]
            if alarm._scheduled:
                alarm._scheduled = False
                self._rung.append(alarm)
            else:
                self._alarms_cancelled -= 1

    def _run_ready_once(self) -> int:
        # Only handles that are ready now: those that they schedule wait for the next iteration, as in asyncio.
        rung = self._rung
        count = len(rung)
        for _ in range(count):
            handle = rung.popleft()
            if not handle._cancelled:
                handle._run()
        self._events += count
        return count

    @contextmanager
    def _as_running_loop(self) -> Generator[None, None, None]:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generator_began, finalizer=self._generator_was_dropped)
        self._is_turning = True
        _set_running_loop(self)
        try:
            yield
        finally:
            _set_running_loop(None)
            self._is_turning = False
            sys.set_asyncgen_hooks(*hooks)

    # The interface of asyncio

    def time(self) -> float:
        return self.clock.now_s()

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._rung.append(handle)
        return handle

    # The loop never sleeps, and a deque is thread-safe for appends.
    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.clock.now_s() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if math.isnan(when):
            raise ValueError("an alarm was set for a time that is not a number")
        alarm = Alarm(when, callback, args, self, context)
        if when != math.inf:  # a timer that never fires does not hide a deadlock
            self._sequence += 1
            alarm._scheduled = True
            heapq.heappush(self._alarms, (when, self._sequence, alarm))
        return alarm

    def create_task(
        self,
        coro: Coroutine[Any, Any, Result] | Generator[Any, None, Result],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[Result]:
        task = super().create_task(coro, name=name, context=context)
        self._sequence += 1
        self._tasks_by_age[self._sequence] = task
        return task

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[*Arguments], Result],
        *args: *Arguments,
    ) -> asyncio.Future[Result]:
        """Call `func` here and now: with threads a seed would not determine the order."""
        done: asyncio.Future[Result] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def stop(self) -> None:
        self._stop_requested = True

    def is_running(self) -> bool:
        return self._is_turning

    def close(self) -> None:
        self._check_not_turning()
        self._rung.clear()
        self._alarms.clear()
        super().close()

    # Winding up

    def wind_up(self) -> list[Exception]:
        """Cancel all tasks, oldest first, close the loop, and return the errors that were not awaited."""
        try:
            while left := self._tasks_alive():
                for task in left:
                    task.cancel()
                self.run_until_complete(asyncio.wait(left))
            self.run_until_complete(self.shutdown_asyncgens())
            self._collect_unawaited()
        finally:
            self.close()
        return self._unhandled

    def _tasks_alive(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks_by_age.values() if not task.done()]

    def _collect_unawaited(self) -> None:
        # asyncio reports these when they are garbage collected, which may be after the run.
        for task in list(self._tasks_by_age.values()):
            if getattr(task, "_log_traceback", False) and isinstance(error := task.exception(), Exception):
                error.add_note(f"in task {task.get_name()!r}")
                self._unhandled.append(error)

    async def shutdown_asyncgens(self) -> None:
        for generator in list(self._generators_by_age.values()):
            await generator.aclose()

    def _generator_began(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._sequence += 1
        self._generators_by_age[self._sequence] = generator

    def _generator_was_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self.is_closed():
            self.create_task(_close(generator), name="close a dropped generator")

    # Accounting

    def _timer_handle_cancelled(self, alarm: Alarm) -> None:
        """Count a cancelled timer; sweep when most are cancelled, because long timeouts are set and cancelled often.

        The name is asyncio's: a handle calls it on its loop when it is cancelled.
        """
        if not alarm._scheduled:
            return
        alarm._scheduled = False
        self._alarms_cancelled += 1
        if self._alarms_cancelled > CANCELLED_ALARMS_MIN and self._alarms_cancelled * 2 > len(self._alarms):
            # In place: the running loop holds the list.
            self._alarms[:] = [entry for entry in self._alarms if entry[2]._scheduled]
            heapq.heapify(self._alarms)
            self._alarms_cancelled = 0

    def statistics(self) -> dict[str, int]:
        return {
            "events": self._events,
            "instants": self._instants,
            "ready": len(self._rung),
            "alarms": len(self._alarms) - self._alarms_cancelled,
            "alarms_cancelled": self._alarms_cancelled,
        }

    def _check_not_turning(self) -> None:
        if self._is_turning:
            raise RuntimeError("this virtual loop is already running")

    def _deadlock_report(self) -> str:
        return (
            f"deadlock at {self.clock.now_s()} s of virtual time: nothing is ready and no timer is set, "
            f"yet these tasks wait:{self._task_lines()}"
        )

    def _livelock_report(self, events: int) -> str:
        return (
            f"livelock at {self.clock.now_s()} s of virtual time: {events} events without time moving "
            f"(events_per_instant_max is {self._events_per_instant_max}); these tasks are alive:{self._task_lines()}"
        )

    def _task_lines(self) -> str:
        alive = self._tasks_alive()
        lines = [f"\n  {_task_line(task)}" for task in alive[:TASKS_NAMED_MAX]]
        if len(alive) > TASKS_NAMED_MAX:
            lines.append(f"\n  and {len(alive) - TASKS_NAMED_MAX} more")
        return "".join(lines) or " none"


def _keep_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, VirtualLoop)
    error = context.get("exception")
    if isinstance(error, Exception):
        error.add_note(str(context.get("message")))
        loop._unhandled.append(error)
    else:
        logger.error("%s", context.get("message"))


async def _close(generator: AsyncGenerator[Any, Any]) -> None:
    await generator.aclose()


def _task_line(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    if not frames:
        return f"{task.get_name()!r}"
    code = frames[0].f_code
    return f"{task.get_name()!r} in {code.co_qualname} ({code.co_filename}:{frames[0].f_lineno})"


# --- the loop monitor -----------------------------------------------------------------------------------------


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


class _ThreadMonitors(threading.local):
    """The monitor of each thread."""

    def __init__(self) -> None:
        self.monitor = LoopMonitor()


_thread_monitors = _ThreadMonitors()


def thread_monitor() -> LoopMonitor:
    """The monitor of the loops that `run_real` runs in this thread, one after the other. Clusters in one process have a
    thread each, so that each is measured for itself."""
    return _thread_monitors.monitor
