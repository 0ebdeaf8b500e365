"""Pauses the scheduler between scheduling cycles, and runs it step by step.

    pause ──> no cycle begins ── step ──> one cycle: pop, filter, score, assume
                    ^                            │
                    │                            v
                    └────────── step ────── its binding is held ──> step: it is sent

The page Learn of the console uses it, in the cluster of `mooring up`.

1. A pause ends after `PAUSE_S_MAX` without a step, when a user resumes it, and when the scheduler stops.
2. Only bindings of cycles that ran during the pause are held. Between assume and bind another client may bind or delete
   the pod: so a lost race can be seen.
3. Watches, the queue and its timers continue: events still requeue pods.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from mooring.kit.clock import Clock, format_rfc3339_micro

PAUSE_S_MAX = 300.0
"""A forgotten pause ends after this time."""

logger = logging.getLogger(__name__)


class SchedulingPause:
    """Whether the scheduler is paused, and what it may do next."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_on = False
        self._since_s = 0.0
        self._until_s = 0.0
        self._is_step_due = False
        self._changed = asyncio.Event()
        self._held: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def pause(self) -> None:
        """No cycle begins any more. Repeated, it extends the pause."""
        if not self.is_on:
            self.is_on, self._is_step_due = True, False
            self._since_s = self._clock.wall_s()
            logger.warning("scheduling is paused, for at most %.0f s", PAUSE_S_MAX)
        self._extend()

    def resume(self, why: str) -> None:
        if not self.is_on:
            return
        self.is_on = False
        if self._timer is not None:
            self._timer.cancel()
        while self._held:
            self._release()
        self._changed.set()
        logger.warning("scheduling resumes: %s", why)

    def step(self) -> None:
        """Send the binding that is held, or let one cycle run. Without a pause nothing happens."""
        if not self.is_on:
            return
        self._extend()
        if self._held:
            self._release()
        else:
            self._is_step_due = True
            self._changed.set()

    async def wait_turn(self) -> None:
        """Until a cycle may begin."""
        while self.is_on and not self._is_step_due:
            self._changed.clear()
            await self._changed.wait()
        self._is_step_due = False

    async def wait_binding(self) -> None:
        """Until the binding of a cycle that ran during the pause may be sent."""
        if self.is_on:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._held.append(turn)
            await turn

    def document(self) -> dict[str, object] | None:
        """Since when and until when scheduling is paused; None if it is not."""
        if not self.is_on:
            return None
        return {"since": format_rfc3339_micro(self._since_s), "until": format_rfc3339_micro(self._until_s)}

    def _extend(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._until_s = self._clock.wall_s() + PAUSE_S_MAX
        self._timer = asyncio.get_running_loop().call_later(PAUSE_S_MAX, self.resume, "the longest pause is over")

    def _release(self) -> None:
        turn = self._held.popleft()
        if not turn.done():
            turn.set_result(None)
