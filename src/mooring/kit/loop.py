"""The virtual loop: asyncio on time that jumps to the next alarm.

Comes in   one coroutine, and a virtual clock
Goes out   its result, after as much virtual time as it wanted and as little real time as it needs

 1. Time moves only when nothing is ready, and then exactly to the earliest alarm.
 2. Alarms of the same moment ring in the order in which they were set: the heap holds a sequence number.
 3. A cancelled alarm counts for nothing: it neither moves time nor hides a deadlock.
 4. Nothing ready, no alarm, and still not finished is a deadlock: an error that names who waits and where.
 5. More than `events_per_instant_max` events without time moving is a livelock: an error too.
 6. An error in a callback or in a task that nobody awaited fails the run; it is not merely logged.
 7. There are no sockets and no threads: `run_in_executor` runs its function at once, in order.

Why a loop of our own: a selector costs a system call in every turn and brings in real time; asyncio's own heap
leaves the order of equal times open, and replaying a seed needs it fixed.
"""

import asyncio
import heapq
import logging
import math
import sys
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from mooring.kit.clock import VirtualClock

EVENTS_PER_INSTANT_MAX = 10_000_000  # a minute of real time, so a spinning loop ends while somebody still watches
TASKS_NAMED_MAX = 20  # in a report; the oldest are the ones that others wait for
CANCELLED_ALARMS_MIN = 128  # fewer are not worth sweeping out

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class DeadlockError(RuntimeError):
    """Nothing is ready, no alarm is set, and the run has not finished."""


class LivelockError(RuntimeError):
    """Events follow events, and time stands still."""


def run(main: Coroutine[Any, Any, Result], clock: VirtualClock | None = None) -> Result:
    """Run `main` to its end on virtual time; whatever it left running is cancelled, oldest first."""
    loop = VirtualLoop(clock if clock is not None else VirtualClock())
    try:
        result = loop.run_until_complete(main)
    except BaseException as error:
        for lost in loop.wind_up():
            error.add_note(f"meanwhile nobody awaited {lost!r}")
        raise
    if unhandled := loop.wind_up():
        raise ExceptionGroup("errors that nobody awaited", unhandled)
    return result


def run_real(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` to its end on the system's time, with sockets and threads; on uvloop where it is installed."""
    with asyncio.Runner(loop_factory=_real_loop_factory()) as runner:
        return runner.run(main)


def _real_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    # Imported when it is wanted: whoever only simulates has no use for it.
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class Alarm(asyncio.TimerHandle):
    """A callback with a time. In the heap and not cancelled: scheduled."""

    __slots__ = ()
    _scheduled: bool


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that drives a `VirtualClock`."""

    def __init__(self, clock: VirtualClock, *, events_per_instant_max: int = EVENTS_PER_INSTANT_MAX) -> None:
        self._is_turning = False  # before asyncio's own beginnings, which ask
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
        self._stop_asked = False
        self.set_exception_handler(_keep_unhandled)

    # ------------------------------------------------------------------------------------------- the turning

    def run_forever(self) -> None:
        self._check_not_turning()
        self._stop_asked = False
        with self._as_running_loop():
            events_this_instant = 0
            while not self._stop_asked:
                if not self._rung and self._jump():
                    events_this_instant = 0
                self._ring_due()
                events_this_instant += self._turn_once()
                if events_this_instant > self._events_per_instant_max:
                    raise LivelockError(self._livelock_report(events_this_instant))

    def _jump(self) -> bool:
        """Go to the earliest alarm; say whether time moved for it."""
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

    def _turn_once(self) -> int:
        # Only what is ready now: what these handles make ready waits for the next turn, as in asyncio.
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

    # ------------------------------------------------------------------------------- what asyncio asks a loop

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

    # Nothing to wake, because the loop never sleeps; and a deque is safe to append to from another thread.
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
        if when != math.inf:  # an alarm that never rings holds up no deadlock
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
        """Run `func` here and now: a thread would bring back an order that no seed fixes."""
        done: asyncio.Future[Result] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def stop(self) -> None:
        self._stop_asked = True

    def is_running(self) -> bool:
        return self._is_turning

    def close(self) -> None:
        self._check_not_turning()
        self._rung.clear()
        self._alarms.clear()
        super().close()

    # --------------------------------------------------------------------------------------------- winding up

    def wind_up(self) -> list[Exception]:
        """Cancel what still runs, oldest first, close the loop, and hand out the errors that nobody awaited."""
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
        # asyncio reports these when it collects the garbage, which may be after the run or never.
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

    # --------------------------------------------------------------------------------------------- accounting

    def _timer_handle_cancelled(self, alarm: Alarm) -> None:
        """Count a cancelled alarm; sweep when most are, since long time-outs are set and cancelled all day.

        The name is asyncio's: a handle calls it on its loop, just before it counts itself cancelled.
        """
        if not alarm._scheduled:
            return
        alarm._scheduled = False
        self._alarms_cancelled += 1
        if self._alarms_cancelled > CANCELLED_ALARMS_MIN and self._alarms_cancelled * 2 > len(self._alarms):
            # In place: the turning loop holds the list.
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
            f"deadlock at {self.clock.now_s()} s of virtual time: nothing is ready and no alarm is set, "
            f"yet these tasks wait:{self._whereabouts()}"
        )

    def _livelock_report(self, events: int) -> str:
        return (
            f"livelock at {self.clock.now_s()} s of virtual time: {events} events without time moving "
            f"(events_per_instant_max is {self._events_per_instant_max}); these tasks are alive:{self._whereabouts()}"
        )

    def _whereabouts(self) -> str:
        alive = self._tasks_alive()
        lines = [f"\n  {_whereabouts_of(task)}" for task in alive[:TASKS_NAMED_MAX]]
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


def _whereabouts_of(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    if not frames:
        return f"{task.get_name()!r}"
    code = frames[0].f_code
    return f"{task.get_name()!r} in {code.co_qualname} ({code.co_filename}:{frames[0].f_lineno})"
