"""The pool: connections that are kept for the next request, and never too many of them.

Comes in   whoever has a request to send
Goes out   a wire, for as long as the request takes

 1. At most `wires_max` exist; whoever comes then waits for his turn, in the order of coming.
 2. The wire that was used last is used first, so that those which are not needed grow old.
 3. A wire that lay idle for `IDLE_S` is closed.
 4. A wire that comes back in the middle of something is closed: somebody stopped waiting for its answer.
 5. A request that takes longer than `request_s_max`, the time in line included, ends its wire, at most an eighth later:
    requests are looked at eight times in that time. Setting an alarm for each would cost a tenth of what a request
    costs. Without a `request_s_max` a request may take as long as it takes.
 6. After `renew` no wire from before is used again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from mooring.client.http.wire import Wire

IDLE_S = 30.0
"""How long a connection waits for its next request; shorter than any server's own patience, or we would race."""
LOOKS = 8


class WirePool:
    """Wires to one server."""

    def __init__(self, dial: Callable[[], Awaitable[Wire]], *, wires_max: int, request_s_max: float | None) -> None:
        self._dial = dial
        self._wires_max = wires_max
        self._request_s_max = request_s_max
        self._idle: list[Wire] = []  # used last, at the end
        self._busy: dict[Wire, int] = {}  # and since which look
        self._dialling = 0
        self._line: deque[tuple[asyncio.Future[Wire | None], int]] = deque()  # and since which look
        self._generation = 0
        self._looks = 0
        self._look_alarm: asyncio.TimerHandle | None = None
        self._idle_alarm: asyncio.TimerHandle | None = None

    def take_nowait(self) -> Wire | None:
        """A wire that lies idle, if there is one and nobody waits for it."""
        idle = self._idle
        while idle:
            wire = idle.pop()
            if wire.is_idle:
                return self._lent(wire, self._looks)
        return None

    async def take(self) -> Wire:
        """A wire: an idle one, a new one, or the next one that comes back. Raises `DialError`, or `TimeoutError`."""
        wire = self.take_nowait()
        if wire is not None:
            return wire
        since = self._looks
        self._go_on_looking()
        if len(self._busy) + self._dialling >= self._wires_max:
            wire = await self._wait_in_line(since)
            if wire is not None:
                return self._lent(wire, since)
        else:
            self._dialling += 1
        generation = self._generation
        try:
            async with asyncio.timeout(self._request_s_max):
                wire = await self._dial()
        except BaseException:
            self._dialling -= 1
            self._let_dial()
            raise
        self._dialling -= 1
        wire.generation = generation
        return self._lent(wire, since)

    def give_back(self, wire: Wire) -> None:
        """The request is over, however it ended."""
        del self._busy[wire]
        if not wire.is_idle or wire.generation != self._generation:
            wire.abort()
            self._let_dial()
            return
        if self._line:
            waiter = self._next_in_line()
            if waiter is not None:
                # It counts as lent until the waiter has his turn, or somebody could come between.
                self._busy[wire] = self._looks
                waiter.set_result(wire)
                return
        wire.has_rested = False
        self._idle.append(wire)
        if self._idle_alarm is None:
            self._idle_alarm = asyncio.get_running_loop().call_later(IDLE_S / 2, self._close_rested)

    def renew(self) -> None:
        """From now on only wires that are dialled anew."""
        self._generation += 1
        self._close_idle()

    def close(self) -> None:
        """End every wire."""
        self.renew()
        for wire in list(self._busy):
            wire.abort()
        for alarm in (self._look_alarm, self._idle_alarm):
            if alarm is not None:
                alarm.cancel()
        self._look_alarm = self._idle_alarm = None

    # ------------------------------------------------------------------------------------------- taking turns

    def _lent(self, wire: Wire, since: int) -> Wire:
        self._busy[wire] = since
        self._go_on_looking()
        return wire

    async def _wait_in_line(self, since: int) -> Wire | None:
        """The wire of somebody who is done; None: a new one may be dialled, and is counted already."""
        waiter: asyncio.Future[Wire | None] = asyncio.get_running_loop().create_future()
        self._line.append((waiter, since))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter.result())
            raise

    def _pass_on(self, wire: Wire | None) -> None:
        if wire is not None:
            self.give_back(wire)
        else:
            self._dialling -= 1
            self._let_dial()

    def _next_in_line(self) -> asyncio.Future[Wire | None] | None:
        while self._line:
            waiter, _ = self._line.popleft()
            if not waiter.done():
                return waiter
        return None

    def _let_dial(self) -> None:
        """As many of those in line as may have a wire of their own."""
        while len(self._busy) + self._dialling < self._wires_max:
            waiter = self._next_in_line()
            if waiter is None:
                return
            self._dialling += 1
            waiter.set_result(None)

    # ------------------------------------------------------------------------------------------------- alarms

    def _look_for_overdue(self) -> None:
        self._looks += 1
        for wire, since in list(self._busy.items()):
            if self._looks - since > LOOKS:
                wire.abort(TimeoutError())
        while self._line and self._looks - self._line[0][1] > LOOKS:
            waiter, _ = self._line.popleft()
            if not waiter.done():
                waiter.set_exception(TimeoutError())
        self._look_alarm = None
        if self._busy or self._line or self._dialling:
            self._go_on_looking()

    def _go_on_looking(self) -> None:
        if self._look_alarm is None and self._request_s_max is not None:
            look_s = self._request_s_max / LOOKS
            self._look_alarm = asyncio.get_running_loop().call_later(look_s, self._look_for_overdue)

    def _close_rested(self) -> None:
        self._idle_alarm = None
        kept = [wire for wire in self._idle if wire.is_idle and not wire.has_rested]
        for wire in self._idle:
            if wire.has_rested:
                wire.abort()
            wire.has_rested = True
        self._idle = kept
        if kept:
            self._idle_alarm = asyncio.get_running_loop().call_later(IDLE_S / 2, self._close_rested)

    def _close_idle(self) -> None:
        for wire in self._idle:
            wire.abort()
        self._idle.clear()
