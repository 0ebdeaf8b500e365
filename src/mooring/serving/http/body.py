"""The body of a request: taken in as far as somebody wants it.

Comes in   pieces, as they arrive
Goes out   the whole, to whoever reads it, once

 1. Nobody is handed more than the limit that he names. A body that is longer is an error, and the rest is dropped.
 2. Before anybody reads, pieces are kept; whoever fills it asks `is_ahead` and stops filling.
 3. A body that nobody wants any more is dropped as it arrives: the next request comes behind it.
 4. A body that ends too soon, or is no body at all, is an error to its reader.
"""

from __future__ import annotations

import asyncio


class BodyTooLargeError(Exception):
    """There is more than the reader takes."""


class BrokenBodyError(ConnectionError):
    """What comes is no body."""


class Body:
    """What follows a head."""

    __slots__ = ("_ahead_bytes_max", "_broken", "_data", "_limit", "_size", "_waiter", "is_complete", "length")

    def __init__(self, length: int | None, ahead_bytes_max: int) -> None:
        """`length` as the head says it; None: that is told chunk by chunk."""
        self.length = length
        self.is_complete = False
        self._ahead_bytes_max = ahead_bytes_max
        self._data: bytes | bytearray | None = b""  # None: nobody wants it
        self._size = 0
        self._limit: int | None = None  # None: nobody has asked yet
        self._waiter: asyncio.Future[None] | None = None
        self._broken: ConnectionError | None = None

    @property
    def is_ahead(self) -> bool:
        """Whether there is as much as is kept for somebody who has not asked yet."""
        return self._limit is None and self._data is not None and self._size >= self._ahead_bytes_max

    # ----------------------------------------------------------------------------------------------- filling

    def feed(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._data is None:
            return
        if not self._data:
            self._data = piece  # most bodies arrive in one piece
        elif isinstance(self._data, bytes):
            self._data = bytearray(self._data) + piece
        else:
            self._data += piece  # and not kept as they are: a piece may be a single byte
        if self._is_too_large():
            self.drop()
            self._wake()

    def end(self) -> None:
        self.is_complete = True
        self._wake()

    def fail(self, error: ConnectionError) -> None:
        """It will never be complete."""
        if not self.is_complete:
            self._broken = error
        self._wake()

    def _is_too_large(self) -> bool:
        return self._limit is not None and max(self.length or 0, self._size) > self._limit

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ----------------------------------------------------------------------------------------------- reading

    def expect(self, limit: int) -> None:
        """Somebody will read up to `limit` bytes. Raises `BodyTooLargeError` if it is known that there are more."""
        self._limit = limit
        if self._is_too_large():
            self.drop()
            raise BodyTooLargeError(limit)

    async def read(self) -> bytes:
        """All of it. Raises `BodyTooLargeError`, or `ConnectionError` if it does not come."""
        while not (self.is_complete or self._broken is not None or self._is_too_large()):
            await self._wait()
        if self._is_too_large():
            raise BodyTooLargeError(self._limit)
        if self._broken is not None:
            raise self._broken
        data, self._data = self._data, None
        assert data is not None, "a body is read twice"
        return bytes(data)

    def drop(self) -> None:
        """Nobody wants it, nor what follows."""
        self._data = None

    async def wait_dropped(self) -> None:
        """Until it has passed by. Raises `ConnectionError` if it does not."""
        self.drop()
        while not self.is_complete:
            if self._broken is not None:
                raise self._broken
            await self._wait()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
