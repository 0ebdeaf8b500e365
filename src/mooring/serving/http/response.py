"""Complete responses, and streamed responses.

1. Heads are cached; only length and date are added for each response.
2. Line breaks in header values become spaces.
3. A streamed response is chunked. For HTTP/1.0 clients it ends with the connection.
4. A streamed response that does not finish is aborted with its connection, so that a client notices.
5. The response to HEAD has no body.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from mooring.kit.clock import Clock

HEADS_CACHED_MAX = 512
TEXT = "text/plain; charset=utf-8"

_BODILESS = (204, 304)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

Headers = tuple[tuple[str, str], ...]
_LAST_CHUNK = b"0\r\n\r\n"


class Response:
    """A complete response."""

    __slots__ = ("body", "code", "content_type", "headers")

    def __init__(self, code: int, body: bytes, content_type: str = TEXT, headers: Headers = ()) -> None:
        self.code = code
        self.body = body
        self.content_type = content_type
        """Empty for a response without a body."""
        self.headers = headers

    def head(self, date: bytes, closing: bytes, *, is_old: bool) -> bytes:
        beginning = head_beginning(self.code, self.content_type, self.headers, is_old=is_old)
        if self.code in _BODILESS:
            return b"%b%b%b\r\n" % (beginning, date, closing)
        return b"%bContent-Length: %d\r\n%b%b\r\n" % (beginning, len(self.body), date, closing)


class DateHeader:
    """The Date header, formatted once per second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = -1
        self._line = b""

    def line(self) -> bytes:
        second = int(self._clock.wall_s())
        if second != self._second:
            self._second, self._line = second, b"Date: %b\r\n" % http_date(second).encode()
        return self._line


def http_date(second: int) -> str:
    """In English, whatever the locale."""
    at = datetime.fromtimestamp(second, UTC)
    day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
    return f"{day}, {at.day:02d} {month} {at.year:04d} {at.hour:02d}:{at.minute:02d}:{at.second:02d} GMT"


def closing_line(*, is_kept_alive: bool, is_old: bool) -> bytes:
    """The Connection header, if it differs from the default of the HTTP version."""
    if is_kept_alive:
        return b"Connection: keep-alive\r\n" if is_old else b""
    return b"" if is_old else b"Connection: close\r\n"


@lru_cache(maxsize=HEADS_CACHED_MAX)
def head_beginning(code: int, content_type: str, headers: Headers, *, is_old: bool) -> bytes:
    """The status line and the headers that are the same for similar responses."""
    lines = [f"HTTP/1.{0 if is_old else 1} {code} {_phrase(code)}"]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in headers]
    return b"".join([_one_line(line).encode("utf-8", "surrogateescape") + b"\r\n" for line in lines])


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


class Writer(Protocol):
    """The connection of a streamed response."""

    @property
    def is_open(self) -> bool: ...

    @property
    def must_wait(self) -> bool: ...

    def write(self, data: bytes) -> None: ...

    async def wait_drained(self) -> None: ...


class Stream:
    """One streamed response."""

    __slots__ = ("_connection", "_is_chunked", "_is_head_only", "code")

    def __init__(self, connection: Writer, code: int, *, is_chunked: bool, is_head_only: bool = False) -> None:
        self._connection = connection
        self._is_chunked = is_chunked
        self._is_head_only = is_head_only
        self.code = code

    async def write(self, piece: bytes) -> None:
        """Send a piece when the client can receive it. Raises `ConnectionError` if the client is gone."""
        if not self.write_nowait(framed(piece)):
            await self.wait_drained()

    def write_nowait(self, chunk: bytes) -> bool:
        """Send a chunk that is already framed. False if the caller must `wait_drained`."""
        connection = self._connection
        if not connection.is_open:
            return False
        if not self._is_head_only:
            connection.write(chunk if self._is_chunked else _unframed(chunk))
        return not connection.must_wait

    async def wait_drained(self) -> None:
        """Wait until the client can receive more. Raises `ConnectionError` if the client is gone."""
        await self._connection.wait_drained()

    def finish(self) -> None:
        """End the response."""
        if self._is_chunked and not self._is_head_only and self._connection.is_open:
            self._connection.write(_LAST_CHUNK)


def framed(piece: bytes) -> bytes:
    """A chunk of HTTP/1.1. An empty piece gives no chunk: an empty chunk would end the response."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


def _unframed(chunk: bytes) -> bytes:
    return chunk.partition(b"\r\n")[2][:-2]
