"""A wire: one connection to a server, and at most one request on it at a time.

Comes in   requests as bytes; what the event loop reads
Goes out   answers, whole (`ask`) or as they are being written (`open_stream`, `read_any`)

                ask, open_stream                 answer complete, server keeps the connection
    idle ─────────────────────────> busy ─────────────────────────> idle
      └── server hangs up ──> gone <──┴── broken answer, time over, `abort`

 1. A wire that is gone stays so; whoever waits on it is told why.
 2. What arrives while nobody waits for an answer (a server that gives up an idle connection says so) ends the wire: it
    would be taken for the answer to the next request.
 3. A stream is not read faster than its reader takes it: beyond `STREAM_BYTES_MAX` the server has to wait.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Mapping
from typing import cast

from mooring.client.http.answer import Answer, AnswerReader, BrokenAnswerError, headers_in

STREAM_BYTES_MAX = 1 << 20
READ_BYTES_MAX = 1 << 18

_arriving = memoryview(bytearray(READ_BYTES_MAX))
"""Where an event loop puts what it reads, for all wires: it is emptied before the next one reads. Without it, a new
buffer of this size would be made for each kilobyte that comes over TLS, which costs several times the decryption."""


class Wire(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._stream_waiter: asyncio.Future[None] | None = None
        self._is_stream = False
        self._is_paused = False
        self._failure: OSError | None = None
        self.generation = 0
        """For whoever keeps wires: of which credentials it is."""
        self.has_rested = False
        """For whoever keeps wires: whether it lay idle when he last looked."""

    @property
    def is_idle(self) -> bool:
        """Whether a request may be sent on it."""
        return self._reader is None and self._failure is None and self._transport is not None

    def ask(self, request: bytes, *, body_bytes_max: int = sys.maxsize) -> asyncio.Future[Answer]:
        """Send a request. Whoever stops waiting for the answer must abort the wire."""
        waiter = self._waiter = self._loop.create_future()
        if self._transport is None:  # it went between being taken and being asked
            waiter.set_exception(self._failure or ConnectionResetError("the server hung up"))
            return waiter
        self._reader = AnswerReader(body_bytes_max)
        self._transport.write(request)
        return waiter

    async def go_secret(self, security: ssl.SSLContext, server_name: str) -> None:
        """From here on over TLS: behind a proxy that has opened a tunnel."""
        assert self._transport is not None, "a wire goes secret before it is connected, or after it is gone"
        transport = await self._loop.start_tls(self._transport, self, security, server_hostname=server_name)
        self._transport = transport
        self._reader, self._is_stream = None, False

    def abort(self, failure: OSError | None = None) -> None:
        """End it, at once."""
        self._break(failure or ConnectionAbortedError("the connection was given up"))

    # ------------------------------------------------------------------------------------------------ streams

    async def open_stream(self, request: bytes) -> int:
        """Send a request whose answer is read bit by bit; the code of the answer."""
        if self._transport is None:
            raise self._failure or ConnectionResetError("the server hung up")
        reader = self._reader = AnswerReader()
        self._is_stream = True
        self._transport.write(request)
        while not reader.code:
            await self._wait_for_more()
        return reader.code

    @property
    def stream_headers(self) -> Mapping[str, str]:
        assert self._reader is not None, "a stream has headers once it is open"
        return headers_in(self._reader.head)

    async def read_any(self) -> bytes:
        """What has come since; nothing at the end of the answer."""
        reader = self._reader
        assert reader is not None, "a stream is read after it was opened"
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

    def _more(self, reader: AnswerReader) -> None:
        if not self._is_paused and len(reader.pieces) > 1 and sum(map(len, reader.pieces)) > STREAM_BYTES_MAX:
            self._is_paused = True
            assert self._transport is not None
            self._transport.pause_reading()
        waiter, self._stream_waiter = self._stream_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # ----------------------------------------------------------------------------------------- the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, but not by name

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
        except BrokenAnswerError as error:
            self._break(error)
            return
        if self._is_stream:
            self._more(reader)
        elif reader.is_complete:
            self._answered(reader)

    def connection_lost(self, error: Exception | None) -> None:
        reader = self._reader
        if reader is not None and self._failure is None:
            try:
                reader.end()
            except BrokenAnswerError as broken:
                error = error or broken
            else:
                error = None
        if reader is not None and error is None and not self._is_stream:
            self._answered(reader)
        self._break(error if isinstance(error, OSError) else ConnectionResetError(str(error or "the server hung up")))

    # ----------------------------------------------------------------------------------------------- endings

    def _answered(self, reader: AnswerReader) -> None:
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
            # Not politely: over TLS that would wait for a server that has no reason to listen.
            self._transport.abort()
            self._transport = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(failure)
        if self._stream_waiter is not None and not self._stream_waiter.done():
            if self._reader is not None and (self._reader.pieces or self._reader.is_complete):
                self._stream_waiter.set_result(None)
            else:
                self._stream_waiter.set_exception(failure)
