"""Long-running requests: watches, followed logs, streams of the console.

Input: a request, and its maximal duration. Output: a block that ends when the time is over, the client disconnects, the
client stops reading, or the server stops.

1. A disconnected client ends its request at once, even if there is nothing to send.
2. A client that reads nothing for `stalled_s_max` is disconnected before twice that time. A slow reader is not.
3. When the server stops, long-running requests end as if their time were over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

from mooring.serving.http.request import Request
from mooring.serving.http.response import Stream

Pieces: TypeAlias = AsyncGenerator[bytes, None]
"""The body of a long-running response."""


class LongRunningRequest:
    """One long-running request."""

    __slots__ = ("_limit", "_request", "_seen", "_stream", "is_writing", "writes")

    def __init__(self, limit: asyncio.Timeout, request: Request, stream: Stream) -> None:
        self._limit = limit
        self._request = request
        self._stream = stream
        self.is_writing = False
        self.writes = 0
        self._seen = (-1, 0)

    async def write(self, piece: bytes) -> None:
        """Send some more. Raises `ConnectionError` if the client is gone."""
        self.is_writing = True
        self.writes += 1
        await self._stream.write(piece)
        self.is_writing = False

    def write_nowait(self, chunk: bytes) -> bool:
        """Send a chunk that is framed already. False if the client is full: then `wait_drained` before the next."""
        self.writes += 1
        return self._stream.write_nowait(chunk)

    async def wait_drained(self) -> None:
        """Wait until the client can receive more. Raises `ConnectionError` if the connection is closed."""
        self.is_writing = True
        await self._stream.wait_drained()
        self.is_writing = False

    def end(self) -> None:
        """End the block the next time that it waits."""
        if not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    def check_stalled(self) -> bool:
        """Disconnect the client if it read nothing of the same write since the last check."""
        present = (self.writes, self._request.connection.backlog_bytes)
        is_stalled = self.is_writing and present == self._seen
        self._seen = present
        if is_stalled:
            self._request.connection.abort()
        return is_stalled


class LongRunningRequests:
    """All long-running requests of a server."""

    def __init__(self, stalled_s_max: float) -> None:
        self._stalled_s_max = stalled_s_max
        self._open: set[LongRunningRequest] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._is_over = False
        self.stalled = 0
        """How many were cut off because their clients did not read."""

    @asynccontextmanager
    async def long_running(
        self, request: Request, stream: Stream, seconds_max: float | None
    ) -> AsyncIterator[LongRunningRequest]:
        """Ends without an error at its timeout and on shutdown. Raises `ConnectionError` if the client is gone."""
        long_running: LongRunningRequest | None = None
        connection = request.connection
        try:
            async with asyncio.timeout(0 if self._is_over else seconds_max) as limit:
                long_running = LongRunningRequest(limit, request, stream)
                self._begin(long_running)
                connection.on_lost = long_running.end
                yield long_running
        except TimeoutError:
            pass
        finally:
            if long_running is not None:
                self._open.discard(long_running)
            connection.on_lost = None

    async def send(self, request: Request, stream: Stream, pieces: Pieces) -> None:
        """Send pieces as they come. The generator is closed in the end, also if the client is gone: its resources are
        free at once, not when it is collected. Raises `ConnectionError` if the client is gone."""
        async with aclosing(pieces), self.long_running(request, stream, None) as long_running:
            async for piece in pieces:
                await long_running.write(piece)

    def end(self) -> None:
        """End all requests, and later ones immediately."""
        self._is_over = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for long_running in self._open:
            long_running.end()

    def _begin(self, long_running: LongRunningRequest) -> None:
        self._open.add(long_running)
        if self._alarm is None and not self._is_over:
            self._alarm = asyncio.get_running_loop().call_later(self._stalled_s_max, self._abort_stalled)

    def _abort_stalled(self) -> None:
        self._alarm = None
        self.stalled += sum([long_running.check_stalled() for long_running in self._open])
        if self._open:
            self._alarm = asyncio.get_running_loop().call_later(self._stalled_s_max, self._abort_stalled)
