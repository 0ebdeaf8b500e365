"""Alarms: everything that is due later, in one heap with one timer.

Comes in   keys, each with a delay and what to do then
Goes out   the calls, in the order of their times; those of the same time in the order in which they were set

A fleet waits for a hundred thousand things at once: stages, backoffs, deadlines. A task or a timer for each would cost
more than what they wait for.

 1. A key has one alarm. Setting it again moves it.
 2. Alarms that are due together are rung together, before anybody else has a turn.
 3. An action that fails is logged and costs nobody else his alarm.
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


class _Alarm(NamedTuple):
    due_s: float
    action: Action


class Alarms:
    """One for a fleet. Used on a running loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: KeyedHeap[Hashable, _Alarm] = KeyedHeap.ordered_by(_due)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_s = 0.0
        self._is_ringing = False

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, key: Hashable, delay_s: float, action: Action) -> None:
        """Call `action` after the delay, and not at any other time that was set for the key before."""
        due_s = self._clock.now_s() + max(0.0, delay_s)
        self._heap.put(key, _Alarm(due_s, action))
        if self._timer is None or due_s < self._timer_due_s:
            self._wind()

    def cancel(self, key: Hashable) -> None:
        self._heap.delete(key)

    def close(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap = KeyedHeap.ordered_by(_due)

    def _wind(self) -> None:
        earliest = self._heap.peek()
        if earliest is None or self._is_ringing:
            return
        due_s = earliest[1].due_s
        if self._timer is not None:
            if self._timer_due_s <= due_s:
                return
            self._timer.cancel()
        self._timer_due_s = due_s
        delay_s = max(0.0, due_s - self._clock.now_s())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._is_ringing = True
        # The alarm's own time counts as come: a clock and a loop may differ by a rounding.
        now_s = max(self._clock.now_s(), self._timer_due_s)
        while (earliest := self._heap.peek()) is not None and earliest[1].due_s <= now_s:
            key, alarm = earliest
            self._heap.delete(key)
            try:
                alarm.action()
            except Exception:
                logger.exception("what was to be done for %r failed", key)
        self._is_ringing = False
        self._wind()


def _due(alarm: _Alarm) -> float:
    return alarm.due_s
