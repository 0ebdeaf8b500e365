"""Timers: calls at a later time, in one heap with one timer of the event loop.

Input: keys, each with a delay and an action. Output: calls in the order of their times; with equal times in the order
in which they were set.

The kubelets wait for up to a hundred thousand events at once (stages, back-offs, deadlines). A task or a loop timer for
each would cost more than the action.

 1. A key has one timer. Setting it again replaces it.
 2. Timers that are due together fire together, before other callbacks run.
 3. An action that raises is logged and does not affect other timers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeAlias

from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap

logger = logging.getLogger(__name__)

Action: TypeAlias = Callable[[], None]


class _Timer(NamedTuple):
    due_s: float
    action: Action


class Timers:
    """The timers of all kubelets of a process. Used on a running loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: KeyedHeap[Hashable, _Timer] = KeyedHeap(_due)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_s = 0.0
        self._is_firing = False

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, key: Hashable, delay_s: float, action: Action) -> None:
        """Call `action` after the delay. Replaces an earlier timer of the key."""
        due_s = self._clock.now_s() + max(0.0, delay_s)
        self._heap.put(key, _Timer(due_s, action))
        if self._timer is None or due_s < self._timer_due_s:
            self._schedule()

    def cancel(self, key: Hashable) -> None:
        self._heap.delete(key)

    def close(self) -> None:
        """Cancel all timers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap = KeyedHeap(_due)

    def _schedule(self) -> None:
        earliest = self._heap.peek()
        if earliest is None or self._is_firing:
            return
        due_s = earliest[1].due_s
        if self._timer is not None:
            if self._timer_due_s <= due_s:
                return
            self._timer.cancel()
        self._timer_due_s = due_s
        delay_s = max(0.0, due_s - self._clock.now_s())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._is_firing = True
        # The due time counts as reached: clock and loop may differ by a rounding error.
        now_s = max(self._clock.now_s(), self._timer_due_s)
        while (earliest := self._heap.peek()) is not None and earliest[1].due_s <= now_s:
            key, alarm = earliest
            self._heap.delete(key)
            try:
                alarm.action()
            except Exception:
                logger.exception("the timer action of %r failed", key)
        self._is_firing = False
        self._schedule()


def _due(alarm: _Timer) -> float:
    return alarm.due_s
