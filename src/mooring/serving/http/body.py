"""The body of a request, read on demand.

1. A reader names a limit. A longer body raises, and the rest is discarded.
2. Until a reader waits, data is buffered; while `is_ahead`, the connection stops reading.
3. A body that is not read is discarded as it arrives, because the next request follows it.
4. A body that is incomplete or malformed raises in `read`.
"""

from __future__ import annotations

import asyncio


class BodyTooLargeError(Exception):
    """The body is larger than the reader's limit."""


class BrokenBodyError(ConnectionError):
    """The body is malformed."""


class Body:
    """The body of one request."""

    __slots__ = ("_ahead_bytes_max", "_broken", "_data", "_limit", "_size", "_waiter", "is_complete", "length")

    def __init__(self, length: int | None, ahead_bytes_max: int) -> None:
        """`length` is Content-Length; None for chunked encoding."""
        self.length = length
        self.is_complete = False
        self._ahead_bytes_max = ahead_bytes_max
        self._data: bytes | bytearray | None = b""  # None: discarded
        self._size = 0
        self._limit: int | None = None  # None: no reader yet
        self._waiter: asyncio.Future[None] | None = None
        self._broken: ConnectionError | None = None

    @property
    def is_ahead(self) -> bool:
        """Whether the buffer is full and no reader waits for it."""
        return self._limit is None and self._data is not None and self._size >= self._ahead_bytes_max

    # Filling

    def feed(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._data is None:
            return
        if not self._data:
            self._data = piece  # most bodies arrive in one piece
        elif isinstance(self._data, bytes):
            self._data = bytearray(self._data) + piece
        else:
            self._data += piece  # not a list of pieces: a piece may be a single byte
        if self._is_too_large():
            self.drop()
            self._notify_reader()

    def end(self) -> None:
        self.is_complete = True
        self._notify_reader()

    def fail(self, error: ConnectionError) -> None:
        """The body will never be complete."""
        if not self.is_complete:
            self._broken = error
        self._notify_reader()

    def _is_too_large(self) -> bool:
        return self._limit is not None and max(self.length or 0, self._size) > self._limit

    def _notify_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Reading

    def expect(self, limit: int) -> None:
        """A reader accepts up to `limit` bytes. Raises `BodyTooLargeError` if the body is known to be larger."""
        self._limit = limit
        if self._is_too_large():
            self.drop()
            raise BodyTooLargeError(limit)

    async def read(self) -> bytes:
        """The whole body. Raises `BodyTooLargeError`, or `ConnectionError` if it is incomplete."""
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
        """Discard the body, including data to come."""
        self._data = None

    async def wait_dropped(self) -> None:
        """Wait until the body has been received and discarded. Raises `ConnectionError`."""
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
