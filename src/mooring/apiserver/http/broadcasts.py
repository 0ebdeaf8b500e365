"""Broadcasts: watches with the same query share one watch of the store and its encoded events.

    watch of the store -> encoded lines -> log -> subscribers

The position of a subscriber in the history is twice a revision for the change of that revision, plus one for a bookmark
after it.

1. A subscriber gets everything after its position, in order, once.
2. One of the subscribers reads the store for all: the leader. When it leaves, or its client is slow, another subscriber
   leads. So a broadcast needs no task of its own.
3. A slow client blocks no other. Its subscriber leaves when the log is full, and reads the store itself.
4. A change is sent at once. Changes that follow are batched for a moment, longer with more subscribers: a write of many
   lines costs as much as a write of one, and 200 watchers of a busy kind would otherwise use all of the CPU.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol

from mooring.client.errors import StatusError
from mooring.client.interface import Change, Watch, WatchEvent
from mooring.kit.clock import Clock
from mooring.serving.http.response import framed

BATCH_S_A_SUBSCRIBER = 0.000_4
BATCH_S_MIN = 0.005
BATCH_S_MAX = 0.08

LOG_LINES_MAX = 20_000
LOG_BYTES_MAX = 16 * 1024 * 1024
"""The buffer for subscribers whose clients read too slowly. Subscribers beyond it are disconnected."""


class WatchResponse(Protocol):
    """The response of a subscriber."""

    def write_nowait(self, chunk: bytes) -> bool:
        """Send a chunk; False if the client is full now."""
        ...

    async def wait_drained(self) -> None:
        """Wait until the client can receive more. Raises `ConnectionError` if the connection is closed."""
        ...


class WatchSubscriber:
    """One watch that receives the events of a broadcast."""

    __slots__ = ("_response", "_turn", "is_full", "position")

    def __init__(self, response: WatchResponse, position: int) -> None:
        self._response = response
        self.position = position
        self.is_full = False
        self._turn: asyncio.Future[None] | None = None

    def send(self, chunk: bytes, position: int) -> None:
        self.position = position
        if not self._response.write_nowait(chunk):
            self.is_full = True
            self.notify()

    async def wait_drained(self) -> None:
        await self._response.wait_drained()
        self.is_full = False

    async def wait_turn(self) -> None:
        """Wait until `notify` is called."""
        self._turn = asyncio.get_running_loop().create_future()
        try:
            await self._turn
        finally:
            self._turn = None

    def notify(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)


class Broadcast:
    """One query, and its subscribers."""

    def __init__(self, watch: Watch, line_of: Callable[[WatchEvent], bytes], since: int, clock: Clock) -> None:
        self._watch = watch
        self._line_of = line_of
        self._clock = clock
        self._begin = since * 2
        self._positions: list[int] = []
        self._lines: list[bytes] = []
        self._bytes = 0
        self._subscribers: dict[WatchSubscriber, None] = {}
        self._leader: WatchSubscriber | None = None
        self.is_over = False
        """Whether the broadcast sends nothing any more."""
        self.is_closed = False

    async def open(self) -> None:
        """Raises `StatusError` if the store has no history since then."""
        await self._watch.__aenter__()

    async def close(self) -> None:
        self.is_over = self.is_closed = True
        await self._watch.__aexit__(None, None, None)

    @property
    def has_no_subscribers(self) -> bool:
        return not self._subscribers

    def reaches(self, position: int) -> bool:
        """Whether the broadcast has all changes after a position."""
        return position >= self._begin and not self.is_over

    async def serve(self, subscriber: WatchSubscriber) -> None:
        """Send all changes to a subscriber, until the broadcast no longer has the change at its position."""
        self._subscribers[subscriber] = None
        try:
            while self.reaches(subscriber.position):
                if subscriber.is_full:
                    await subscriber.wait_drained()
                elif self._positions and self._positions[-1] > subscriber.position:
                    self._send_to([subscriber])
                elif self._leader is None:
                    await self._lead(subscriber)
                else:
                    await subscriber.wait_turn()
        finally:
            del self._subscribers[subscriber]
            self._find_leader()

    # ------------------------------------------------------------------------------------------------- leading

    async def _lead(self, subscriber: WatchSubscriber) -> None:
        self._leader = subscriber
        try:
            while not subscriber.is_full and not self.is_over:
                self._note(await self._watch.next_batch())
                self._send_to(self._subscribers)
                self._trim()
                pause_s = min(len(self._subscribers) * BATCH_S_A_SUBSCRIBER, BATCH_S_MAX)
                if pause_s >= BATCH_S_MIN:
                    await self._clock.wait(pause_s)
        except StatusError:
            # The store has ended the watch. Each subscriber reads from its own position, and gets the error.
            self.is_over = True
        finally:
            self._leader = None
            self._find_leader()

    def _find_leader(self) -> None:
        if self.is_over:
            for subscriber in self._subscribers:
                subscriber.notify()
        elif self._leader is None:
            successor = next((subscriber for subscriber in self._subscribers if not subscriber.is_full), None)
            if successor is not None:
                successor.notify()

    # ------------------------------------------------------------------------------------------------- the log

    def _note(self, events: Sequence[WatchEvent]) -> None:
        if not events:
            self.is_over = True
        for event in events:
            line = self._line_of(event)
            self._positions.append(position_of(event))
            self._lines.append(line)
            self._bytes += len(line)

    def _send_to(self, subscribers: Iterable[WatchSubscriber]) -> None:
        if not self._positions:
            return
        last = self._positions[-1]
        chunks: dict[int, bytes] = {}
        for subscriber in subscribers:
            if subscriber.is_full or subscriber.position >= last:
                continue
            start = bisect_right(self._positions, subscriber.position)
            chunk = chunks.get(start)
            if chunk is None:
                chunk = chunks[start] = framed(b"".join(self._lines[start:]))
            subscriber.send(chunk, last)

    def _trim(self) -> None:
        is_too_long = len(self._lines) > LOG_LINES_MAX or self._bytes > LOG_BYTES_MAX
        if self._positions and (is_too_long or not any(subscriber.is_full for subscriber in self._subscribers)):
            self._begin = self._positions[-1]
            self._positions, self._lines, self._bytes = [], [], 0


class Broadcasts:
    """All broadcasts of a server, by their queries."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._broadcasts: dict[Hashable, Broadcast] = {}

    def takes(self, query: Hashable, position: int) -> bool:
        """Whether a broadcast can serve a subscriber from this position."""
        broadcast = self._broadcasts.get(query)
        return broadcast is None or broadcast.is_over or broadcast.reaches(position)

    async def serve(
        self,
        query: Hashable,
        subscriber: WatchSubscriber,
        watch_since: Callable[[int], Watch],
        line_of: Callable[[WatchEvent], bytes],
    ) -> None:
        """Send changes until the broadcast lacks the change at the subscriber's position. Raises `StatusError`."""
        broadcast = self._broadcasts.get(query)
        if broadcast is None or broadcast.is_over:
            since = subscriber.position // 2
            broadcast = await self._opened(query, Broadcast(watch_since(since), line_of, since, self._clock))
        try:
            await broadcast.serve(subscriber)
        finally:
            if broadcast.has_no_subscribers:
                await self._close(query, broadcast)

    async def _opened(self, query: Hashable, broadcast: Broadcast) -> Broadcast:
        await broadcast.open()
        other = self._broadcasts.get(query)
        if other is not None and not other.is_over:
            await broadcast.close()
            return other
        self._broadcasts[query] = broadcast
        return broadcast

    async def _close(self, query: Hashable, broadcast: Broadcast) -> None:
        if self._broadcasts.get(query) is broadcast:
            del self._broadcasts[query]
        if not broadcast.is_closed:
            await broadcast.close()


def position_of(event: WatchEvent) -> int:
    """The position after an event."""
    return int(event.revision) * 2 + (event.change is Change.BOOKMARK)


def position_after(revision: int) -> int:
    """The position after a revision."""
    return revision * 2 + 1
