"""One HTTP/1.1 connection, with at most one request at a time, and the parser of its answers.

Inputs: requests as bytes; the bytes that the event loop reads. Outputs: answers, whole (`send`) or as they arrive
(`open_stream`, `read_any`).

                ask, open_stream                 answer complete, server keeps the connection
    idle ─────────────────────────> busy ─────────────────────────> idle
      └── server closes ────> closed <┴── broken answer, timeout, `abort`

1. A body ends after its Content-Length, its last chunk, or with the connection. An earlier end is an error.
2. A head has at most `HEADER_BYTES_MAX`, a body at most what the caller allows. Interim answers (1xx) are skipped.
3. Bytes behind an answer, and bytes on an idle connection, close the connection: they would be taken for the answer to
   the next request.
4. A closed wire stays closed. Its waiters get the reason.
5. A stream is not read faster than its reader takes it: reading pauses above `STREAM_BYTES_MAX`.

The parser is written by hand because a successful answer needs only its code and its end: three searches in a few
hundred bytes. Its other headers are parsed only on demand. See docs/adr/0015-our-own-http-client.md.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Mapping
from enum import Enum, auto
from typing import cast

HEADER_BYTES_MAX = 1 << 16

_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_BODILESS = (204, 304)
_CONNECTION = b"\r\nconnection:"
_ENCODING = b"\r\ntransfer-encoding:"
_LENGTH = b"\r\ncontent-length:"


class BrokenResponseError(ConnectionError):
    """The server sent something else than an HTTP answer, or only a part of one."""


class ConnectionClosedError(BrokenResponseError):
    """The server closed the connection before the first byte of an answer."""


class ResponseTooLongError(BrokenResponseError):
    """The body of an answer has more bytes than its reader accepts."""


class HttpResponse:
    """One complete answer."""

    __slots__ = ("_head", "body", "code")

    def __init__(self, code: int, head: bytes, body: bytes) -> None:
        self.code = code
        self._head = head
        self.body = body

    @property
    def headers(self) -> Mapping[str, str]:
        return headers_in(self._head)


class _Framing(Enum):
    """How the end of a body is found."""

    LENGTH = auto()
    CHUNKS = auto()
    END_OF_CONNECTION = auto()


class ResponseReader:
    """Parses one answer."""

    __slots__ = (
        "_body_bytes",
        "_body_bytes_max",
        "_framing",
        "_is_last_chunk",
        "_left",
        "_rest",
        "code",
        "head",
        "is_complete",
        "keeps_alive",
        "pieces",
    )

    def __init__(self, body_bytes_max: int = sys.maxsize) -> None:
        self.code = 0
        """0 until the head has been read."""
        self.head = b""
        self.pieces: list[bytes] = []
        """The parts of the body so far. A reader of a stream takes them out."""
        self.is_complete = False
        self.keeps_alive = True
        self._body_bytes = 0
        self._body_bytes_max = body_bytes_max
        self._framing = _Framing.LENGTH
        self._left = 0  # of the body, or of the chunk
        self._is_last_chunk = False
        self._rest = b""  # of an incomplete head or line

    def feed(self, data: bytes) -> None:
        """Raises `BrokenResponseError`."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        if not self.code:
            data = self._read_heads(data)
            if not self.code:
                return
        if self._framing is _Framing.LENGTH:
            self._read_length(data)
        elif self._framing is _Framing.CHUNKS:
            self._read_chunks(data)
        elif data:
            self._announce(len(data))
            self.pieces.append(data)

    def end(self) -> None:
        """The connection has ended. Raises `BrokenResponseError` if the answer is incomplete."""
        if self.code and self._framing is _Framing.END_OF_CONNECTION:
            self.is_complete = True
        if self.is_complete:
            return
        if not self.code and not self._rest:
            raise ConnectionClosedError("the server hung up")
        raise BrokenResponseError(
            "the server hung up in the middle of an answer" if self.code else "the server hung up"
        )

    def answer(self) -> HttpResponse:
        pieces = self.pieces
        return HttpResponse(self.code, self.head, pieces[0] if len(pieces) == 1 else b"".join(pieces))

    # ----------------------------------------------------------------------------------------------- head

    def _read_heads(self, data: bytes) -> bytes:
        """Returns the bytes behind the head. If the head is incomplete, keeps all bytes and leaves `code` at 0."""
        while (end := data.find(_HEAD_END)) >= 0:
            code = _code_in(data)
            if code >= 200:
                self._parse_head(code, data[: end + 2])
                return data[end + 4 :]
            data = data[end + 4 :]
        if len(data) > HEADER_BYTES_MAX:
            raise BrokenResponseError(f"the server answered with a head of more than {HEADER_BYTES_MAX} bytes")
        if len(data) > 5 and not data.startswith(b"HTTP/"):
            raise BrokenResponseError(f"the server does not speak HTTP: {data[:40]!r}")
        self._rest = data
        return b""

    def _parse_head(self, code: int, head: bytes) -> None:
        self.code, self.head = code, head
        lower = head.lower()
        self.keeps_alive = head[7:8] != b"0" and b"close" not in _field(lower, _CONNECTION)
        encoding = _field(lower, _ENCODING)
        length = _field(lower, _LENGTH)
        if code in _BODILESS:
            self.is_complete = True
        elif encoding:
            if not encoding.endswith(b"chunked"):
                raise BrokenResponseError(f"the server encoded its answer as {encoding!r}; wanted chunks")
            self._framing = _Framing.CHUNKS
        elif length:
            if not length.isdigit():
                raise BrokenResponseError(f"the server announced an answer of {length!r} bytes")
            self._left = int(length)
            self._announce(self._left)
            self.is_complete = not self._left
        else:
            self._framing = _Framing.END_OF_CONNECTION
            self.keeps_alive = False

    # ----------------------------------------------------------------------------------------------- body

    def _read_length(self, data: bytes) -> None:
        if data:
            if len(data) > self._left:
                self.keeps_alive = False
                data = data[: self._left]
            self._left -= len(data)
            self.pieces.append(data)
            self.is_complete = not self._left

    def _read_chunks(self, data: bytes) -> None:
        position = 0
        while True:
            if self._left:
                piece = data[position : position + self._left]
                if piece:
                    self.pieces.append(piece)
                    self._left -= len(piece)
                    position += len(piece)
                if self._left:
                    return
            end = data.find(_LINE_END, position)
            if end < 0:
                self._keep_rest(data[position:])
                return
            line = data[position:end]
            position = end + 2
            if line and not self._is_last_chunk:
                self._left = _chunk_bytes(line)
                self._announce(self._left)
                self._is_last_chunk = not self._left
            elif not line and self._is_last_chunk:
                self.is_complete = True
                self.keeps_alive = self.keeps_alive and position == len(data)
                return

    def _announce(self, size: int) -> None:
        """Count bytes of the body before they arrive. Raises `ResponseTooLongError`."""
        self._body_bytes += size
        if self._body_bytes > self._body_bytes_max:
            raise ResponseTooLongError(f"the answer has more than {self._body_bytes_max} bytes")

    def _keep_rest(self, rest: bytes) -> None:
        if len(rest) > HEADER_BYTES_MAX:
            raise BrokenResponseError(f"the server began a chunk with a line of more than {HEADER_BYTES_MAX} bytes")
        self._rest = rest


def headers_in(head: bytes) -> dict[str, str]:
    """The headers of a head, with names in Title-Case. Of several with the same name, the last one."""
    found = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip().title()] = value.strip()
    return found


def _code_in(head: bytes) -> int:
    if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
        raise BrokenResponseError(f"the server does not speak HTTP/1.1: {head[:40]!r}")
    return int(head[9:12])


def _field(lower: bytes, line_start: bytes) -> bytes:
    """The value of a header in a lower-case head; empty if absent."""
    start = lower.find(line_start)
    if start < 0:
        return b""
    start += len(line_start)
    return lower[start : lower.index(_LINE_END, start)].strip()


def _chunk_bytes(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    try:
        size = int(text, 16)
    except ValueError:
        size = -1
    if size < 0:
        raise BrokenResponseError(f"the server began a chunk with {line[:40]!r}")
    return size


STREAM_BYTES_MAX = 1 << 20
READ_BYTES_MAX = 1 << 18

_arriving = memoryview(bytearray(READ_BYTES_MAX))
"""The read buffer of all wires. It is emptied before the next wire reads. Without it, asyncio would allocate a buffer
of this size for each kilobyte over TLS, which costs several times the decryption."""


class HttpConnection(asyncio.BufferedProtocol):
    """One HTTP/1.1 connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._stream_waiter: asyncio.Future[None] | None = None
        self._is_stream = False
        self._is_paused = False
        self._failure: OSError | None = None
        self.generation = 0
        """For the pool: the generation of credentials that the connection was made with."""
        self.has_rested = False
        """For the pool: whether the wire was idle at the last check."""

    @property
    def is_idle(self) -> bool:
        """Whether a request can be sent."""
        return self._reader is None and self._failure is None and self._transport is not None

    def send(self, request: bytes, *, body_bytes_max: int = sys.maxsize) -> asyncio.Future[HttpResponse]:
        """Send a request. A caller that stops waiting for the answer must abort the wire."""
        waiter = self._waiter = self._loop.create_future()
        if self._transport is None:  # closed since the pool handed it out
            waiter.set_exception(self._failure or ConnectionResetError("the server hung up"))
            return waiter
        self._reader = ResponseReader(body_bytes_max)
        self._transport.write(request)
        return waiter

    async def start_tls(self, security: ssl.SSLContext, server_name: str) -> None:
        """Switch to TLS, after a proxy has opened a tunnel."""
        assert self._transport is not None, "TLS starts on a wire that is not connected"
        transport = await self._loop.start_tls(self._transport, self, security, server_hostname=server_name)
        self._transport = transport
        self._reader, self._is_stream = None, False

    def abort(self, failure: OSError | None = None) -> None:
        """Close the connection immediately."""
        self._break(failure or ConnectionAbortedError("the connection was given up"))

    # ------------------------------------------------------------------------------------------------ streams

    async def open_stream(self, request: bytes) -> int:
        """Send a request whose answer is read as it arrives. Returns the status code."""
        if self._transport is None:
            raise self._failure or ConnectionResetError("the server hung up")
        reader = self._reader = ResponseReader()
        self._is_stream = True
        self._transport.write(request)
        while not reader.code:
            await self._wait_for_more()
        return reader.code

    @property
    def stream_headers(self) -> Mapping[str, str]:
        assert self._reader is not None, "a stream has no headers before it is open"
        return headers_in(self._reader.head)

    async def read_any(self) -> bytes:
        """The bytes that arrived since the last call; empty at the end of the answer."""
        reader = self._reader
        assert reader is not None, "a stream is read before it is open"
        while not reader.pieces:
            if reader.is_complete:
                return b""
            await self._wait_for_more()
        pieces, reader.pieces = reader.pieces, []
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _wait_for_more(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._stream_waiter = self._loop.create_future()
        await self._stream_waiter

    def _notify_reader(self, reader: ResponseReader) -> None:
        if not self._is_paused and len(reader.pieces) > 1 and sum(map(len, reader.pieces)) > STREAM_BYTES_MAX:
            self._is_paused = True
            assert self._transport is not None
            self._transport.pause_reading()
        waiter, self._stream_waiter = self._stream_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # ----------------------------------------------------------------------------------------- event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class does not inherit from asyncio's

    def get_buffer(self, sizehint: int) -> memoryview:
        return _arriving

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(_arriving[:nbytes]))

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            self.abort()
            return
        try:
            reader.feed(data)
        except BrokenResponseError as error:
            self._break(error)
            return
        if self._is_stream:
            self._notify_reader(reader)
        elif reader.is_complete:
            self._finish(reader)

    def connection_lost(self, error: Exception | None) -> None:
        reader = self._reader
        if reader is not None and self._failure is None:
            try:
                reader.end()
            except BrokenResponseError as broken:
                error = error or broken
            else:
                error = None
        if reader is not None and error is None and not self._is_stream:
            self._finish(reader)
        self._break(error if isinstance(error, OSError) else ConnectionResetError(str(error or "the server hung up")))

    # ----------------------------------------------------------------------------------------------- endings

    def _finish(self, reader: ResponseReader) -> None:
        waiter, self._waiter, self._reader = self._waiter, None, None
        if not reader.keeps_alive:
            self._break(ConnectionResetError("the server keeps no connection"))
        if waiter is not None and not waiter.done():
            waiter.set_result(reader.answer())

    def _break(self, failure: OSError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        if self._transport is not None:
            # Not `close`: over TLS it would wait for the server.
            self._transport.abort()
            self._transport = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(failure)
        if self._stream_waiter is not None and not self._stream_waiter.done():
            if self._reader is not None and (self._reader.pieces or self._reader.is_complete):
                self._stream_waiter.set_result(None)
            else:
                self._stream_waiter.set_exception(failure)
