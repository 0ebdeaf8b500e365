"""One request: method, path, query, headers, body.

1. Header names are lower-case bytes, as the parser returns them. Values are decoded when they are read, because few
   are.
2. Repeated headers are kept; `header` returns the first.
3. A query parameter that cannot be parsed (invalid escape, semicolon) is dropped, as in Go.

The body is read on demand:

4. A reader names a limit. A longer body raises, and the rest is discarded.
5. Until a reader waits, data is buffered; while `is_ahead`, the connection stops reading.
6. A body that is not read is discarded as it arrives, because the next request follows it.
7. A body that is incomplete or malformed raises in `read`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import parse_qsl

from mooring.serving.http.response import Headers, Stream


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


QUERIES_CACHED_MAX = 256
_UNREADABLE = re.compile(r";|%(?![0-9A-Fa-f]{2})")

Fields = list[tuple[bytes, bytes]]


class RequestConnection(Protocol):
    """The connection of a request, as its handler uses it."""

    on_lost: Callable[[], None] | None
    """Called when the client disconnects."""

    @property
    def is_open(self) -> bool: ...

    @property
    def backlog_bytes(self) -> int: ...

    @property
    def certificate(self) -> bytes | None: ...

    def stream(self, request: Request, code: int, content_type: str, headers: Headers) -> Stream: ...

    def wants_body(self, request: Request) -> None: ...

    def has_body(self) -> None: ...

    def abort(self) -> None: ...


class Request:
    """One request."""

    __slots__ = (
        "_fields",
        "_first",
        "_query",
        "body",
        "connection",
        "has_begun",
        "is_continue_sent",
        "is_kept_alive",
        "is_old",
        "method",
        "path",
    )

    connection: RequestConnection
    """Set by the connection."""

    def __init__(
        self, method: str, path: str, query: str, fields: Fields, *, is_old: bool, is_kept_alive: bool
    ) -> None:
        """`is_old`: HTTP/1.0."""
        self.method = method
        self.path = path
        """As sent by the client, with escapes."""
        self.is_old = is_old
        self.is_kept_alive = is_kept_alive
        self.body: Body | None = None
        self.has_begun = False
        """Whether a part of the response was sent."""
        self.is_continue_sent = False
        """Whether `100 Continue` was sent."""
        self._query = query
        self._fields = fields
        self._first = dict(reversed(fields))

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        return _parsed(self._query) if self._query else _NO_QUERY

    # Headers

    def has(self, name: bytes) -> bool:
        return name in self._first

    def header(self, name: bytes) -> str:
        """The first value of a header; empty if it is absent."""
        value = self._first.get(name)
        return "" if value is None else value.decode("utf-8", "surrogateescape")

    def headers(self, prefix: bytes = b"") -> list[tuple[str, str]]:
        """All headers whose names start with the prefix."""
        return [
            (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
            for name, value in self._fields
            if name.startswith(prefix)
        ]

    @property
    def header_bytes(self) -> int:
        return sum([len(name) + len(value) for name, value in self._fields])

    # Connection

    @property
    def holds_body_back(self) -> bool:
        """Whether the client waits for `100 Continue`."""
        if self.body is None or self.body.is_complete or self.is_continue_sent or self.is_old:
            return False
        return self.header(b"expect").lower() == "100-continue"

    async def read(self, bytes_max: int) -> bytes:
        """The whole body. Raises `BodyTooLargeError`, or `ConnectionError` if the client is gone."""
        body = self.body
        if body is None:
            return b""
        body.expect(bytes_max)
        if body.is_complete:
            return await body.read()
        self.connection.wants_body(self)
        try:
            return await body.read()
        finally:
            self.connection.has_body()

    def stream(self, code: int, content_type: str, headers: Sequence[tuple[str, str]] = ()) -> Stream:
        """Begin a streamed response. Raises `ConnectionError` if the client is gone."""
        return self.connection.stream(self, code, content_type, tuple(headers))

    @property
    def certificate(self) -> bytes | None:
        """The client certificate (DER), verified by TLS."""
        return self.connection.certificate


_NO_QUERY: Mapping[str, Sequence[str]] = {}


@lru_cache(maxsize=QUERIES_CACHED_MAX)
def _parsed(query: str) -> Mapping[str, Sequence[str]]:
    """Cached: clients repeat the same queries with other paths."""
    parameters: dict[str, list[str]] = {}
    if _UNREADABLE.search(query):
        query = "&".join([part for part in query.split("&") if not _UNREADABLE.search(part)])
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(name, []).append(value)
    return parameters
