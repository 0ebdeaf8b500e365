"""The work queue of a controller: keys of objects to sync, and the workers that sync them.

Inputs: keys, from event handlers, after a delay, or after a failure. Output: one key after the other, to any number of
workers.

                add                            get
    (absent) ─────────> ready ──────────────────────────> in work ──── done ───> (absent)
        │                 ^                                  │
        │ add_after       │ due                              │ added meanwhile, then done
        └─────────> waiting                                  └──────────────────> ready

1. A key is ready at most once, however often it is added.
2. One worker at a time has a key. If the key is added meanwhile, it is ready again after `done`.
3. A waiting key becomes ready at the earliest time that was requested.
4. After a failure a key waits 5 ms, doubling with each failure in a row to 1000 s. All failures together are limited to
   10 per second after the first 100. The longer wait counts. All as in client-go.
5. A queue that is shut down accepts no more keys and hands out those that are ready. Then `get` returns None.

Workers take a key, reconcile it, and act on the outcome. Input: a work queue, and a function that reconciles one key.
Output: tasks in a group, which end when the queue is shut down and empty.

1. There are three outcomes: `DONE`; `Later`, reconcile again after a delay; `Failed`, retry with a backoff.
2. An exception is logged with its key and retried as a failure. It never ends a worker.
3. Every key is returned to the queue, or it would never be reconciled again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, assert_never
from weakref import WeakSet

from mooring.client.ratelimit import TokenBucket
from mooring.kit.backoff import Backoff, KeyedBackoff
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.heap import KeyedHeap
from mooring.kit.histogram import HistogramValue, exponential_buckets
from mooring.kit.tasks import TaskGroup

logger = logging.getLogger(__name__)

BACKOFF = Backoff(initial_s=0.005, max_s=1000.0)
RETRIES_PER_S = 10.0
RETRIES_BURST = 100

DURATION_BOUNDS_S = exponential_buckets(1e-8, 10, 10)

Key = TypeVar("Key", bound=Hashable)

OPEN_QUEUES: WeakSet[WorkQueue[Any]] = WeakSet()
"""The queues of this process, for its metrics."""


class WorkQueue(Generic[Key]):
    """The queue of one controller."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        entropy: Entropy,
        *,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self.name = name
        self._clock = clock
        self._ready: deque[Key] = deque()
        self._ready_since_s: dict[Key, float] = {}  # ready, or in work and added again
        self._in_work_since_s: dict[Key, float] = {}
        self._waiting: KeyedHeap[Key, float] = KeyedHeap(float)
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due_s = 0.0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle: asyncio.Future[None] | None = None
        self._is_shut_down = False
        self._failures: KeyedBackoff[Key] = KeyedBackoff(backoff, entropy)
        self._retries = TokenBucket(clock, rate_per_s=RETRIES_PER_S, burst=RETRIES_BURST)
        self._counts = dict.fromkeys(("adds", "retries", "gotten", "done"), 0)
        self.waits = HistogramValue(DURATION_BOUNDS_S)
        """How long keys waited for a worker."""
        self.work = HistogramValue(DURATION_BOUNDS_S)
        """How long workers had a key."""
        OPEN_QUEUES.add(self)

    # ------------------------------------------------------------------------------------------------ producers

    def add(self, key: Key) -> None:
        """Make a key ready."""
        if self._is_shut_down or key in self._ready_since_s:
            return
        self._counts["adds"] += 1
        self._ready_since_s[key] = self._clock.now_s()
        if key not in self._in_work_since_s:
            self._make_ready(key)

    def add_after(self, key: Key, delay_s: float) -> None:
        """Make a key ready after a delay, or earlier if it is added meanwhile."""
        if self._is_shut_down:
            return
        if delay_s <= 0:
            self.add(key)
            return
        due_s = self._clock.now_s() + delay_s
        known_due_s = self._waiting.get(key)
        if known_due_s is None or due_s < known_due_s:
            self._waiting.put(key, due_s)
            self._set_alarm()

    def add_rate_limited(self, key: Key) -> None:
        """Make a key ready again after a failure."""
        self._counts["retries"] += 1
        self.add_after(key, max(self._failures.fail(key), self._retries.reserve_s()))

    def forget(self, key: Key) -> None:
        """Reset the failures of a key."""
        self._failures.forget(key)

    def num_requeues(self, key: Key) -> int:
        """The number of failures in a row."""
        return self._failures.failures(key)

    # ------------------------------------------------------------------------------------------------ consumers

    async def get(self) -> Key | None:
        """The next key, which is in work until `done`; None if the queue is shut down and empty."""
        while not self._ready:
            if self._is_shut_down:
                return None
            await self._wait_for_a_key()
        return self._take()

    def get_nowait(self) -> Key | None:
        """The next key, or None if none is ready."""
        return self._take() if self._ready else None

    def done(self, key: Key) -> None:
        """The worker has finished with a key, successfully or not."""
        since_s = self._in_work_since_s.pop(key, None)
        assert since_s is not None, f"{key!r} is not in work in queue {self.name!r}"
        self._counts["done"] += 1
        self.work.observe(self._clock.now_s() - since_s)
        if key in self._ready_since_s:
            self._make_ready(key)
        else:
            self._notify_if_idle()

    # -------------------------------------------------------------------------------------------------- shutdown

    @property
    def is_shut_down(self) -> bool:
        return self._is_shut_down

    def shut_down(self) -> None:
        """Accept no more keys. Waiting keys are dropped, ready keys are still handed out."""
        self._is_shut_down = True
        OPEN_QUEUES.discard(self)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._waiting = KeyedHeap(float)
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)
        self._getters.clear()
        self._notify_if_idle()

    async def wait_drained(self) -> None:
        """Wait until no key is ready or in work, after `shut_down`."""
        assert self._is_shut_down, f"queue {self.name!r} is not shut down: it may be empty, but it stays open"
        await self.wait_idle()

    async def wait_idle(self) -> None:
        """Wait until no key is ready or in work. Keys may be waiting for their time."""
        while self._ready_since_s or self._in_work_since_s:
            if self._idle is None or self._idle.done():
                self._idle = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)

    # ------------------------------------------------------------------------------------------------ statistics

    def __len__(self) -> int:
        """The number of ready keys."""
        return len(self._ready)

    @property
    def backlog(self) -> int:
        """The number of keys still to be handed out: ready, in work and added again, or waiting."""
        return len(self._ready_since_s) + len(self._waiting)

    def statistics(self) -> dict[str, float]:
        """Values for client-go's workqueue metrics. The `_s` are sums, for averages over `gotten` and `done`."""
        now_s = self._clock.now_s()
        return {
            "depth": len(self._ready),
            "waiting": len(self._waiting),
            "in_work": len(self._in_work_since_s),
            **self._counts,
            "queue_duration_s": self.waits.total,
            "work_duration_s": self.work.total,
            "unfinished_work_s": sum(now_s - since_s for since_s in self._in_work_since_s.values()),
            "longest_running_s": max((now_s - since_s for since_s in self._in_work_since_s.values()), default=0.0),
        }

    # -------------------------------------------------------------------------------------------------- internals

    def _make_ready(self, key: Key) -> None:
        self._ready.append(key)
        self._notify_one()

    def _take(self) -> Key:
        key = self._ready.popleft()
        now_s = self._clock.now_s()
        self.waits.observe(now_s - self._ready_since_s.pop(key))
        self._in_work_since_s[key] = now_s
        self._counts["gotten"] += 1
        return key

    async def _wait_for_a_key(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            # Cancelled after it was woken: another worker must take the key.
            if getter.done() and not getter.cancelled() and self._ready:
                self._notify_one()
            raise

    def _notify_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_alarm(self) -> None:
        earliest = self._waiting.peek()
        if earliest is None:
            return
        due_s = earliest[1]
        if self._alarm is not None:
            if self._alarm_due_s <= due_s:
                return
            self._alarm.cancel()
        self._alarm_due_s = due_s
        delay_s = max(0.0, due_s - self._clock.now_s())
        self._alarm = asyncio.get_running_loop().call_later(delay_s, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        # The clock and the loop may differ by a rounding error, so the due time counts as reached.
        now_s = max(self._clock.now_s(), self._alarm_due_s)
        while (earliest := self._waiting.peek()) is not None and earliest[1] <= now_s:
            self._waiting.pop()
            self.add(earliest[0])
        self._set_alarm()

    def _notify_if_idle(self) -> None:
        is_waited_for = self._idle is not None and not self._idle.done()
        if is_waited_for and not self._ready_since_s and not self._in_work_since_s:
            assert self._idle is not None
            self._idle.set_result(None)


# --- workers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """Reconciled until the next change."""


@dataclass(frozen=True, slots=True)
class Later:
    """Reconciled, but due again after a delay."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Failed for an expected reason; retry."""

    reason: str
    log_level: int = logging.INFO
    """DEBUG for failures that are normal under load, such as conflicts."""


DONE: Final = Done()

Outcome: TypeAlias = Done | Later | Failed


def run_workers(
    queue: WorkQueue[Key], reconcile: Callable[[Key], Awaitable[Outcome]], *, workers: int, group: TaskGroup
) -> None:
    """Start workers in the group."""
    assert workers > 0, f"queue {queue.name!r} with {workers} workers would never be emptied"
    for number in range(workers):
        group.start(_work(queue, reconcile), name=f"{queue.name} worker {number}")


async def _work(queue: WorkQueue[Key], reconcile: Callable[[Key], Awaitable[Outcome]]) -> None:
    while (key := await queue.get()) is not None:
        try:
            _conclude(queue, key, await reconcile(key))
        except Exception:
            logger.exception("%s: %s could not be reconciled; trying again", queue.name, key)
            queue.add_rate_limited(key)
        finally:
            queue.done(key)


def _conclude(queue: WorkQueue[Key], key: Key, outcome: Outcome) -> None:
    match outcome:
        case Done():
            queue.forget(key)
        case Later(after_s):
            queue.forget(key)
            queue.add_after(key, after_s)
        case Failed(reason, log_level):
            logger.log(log_level, "%s: %s is tried again: %s", queue.name, key, reason)
            queue.add_rate_limited(key)
        case never:
            assert_never(never)
