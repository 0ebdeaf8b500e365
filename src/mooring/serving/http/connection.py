"""One connection: its requests, in order.

   bytes ──> parser ──> pending requests ──> handler ──> response ──> bytes
                             (one at a time, in order)

1. Responses are sent in the order of the requests, also with pipelining.
2. The connection stops reading while bodies or requests are pending beyond the limits.
3. A connection has one task, from its first request on.
4. An exception in a handler is a 500 response and is counted; if the response has begun, the connection is aborted.
5. Timeouts are counted in calls of `check`, which the listener makes every `check_interval_s`, not with a timer per
   connection.
6. After the last response the rest of a body is read for a while: a client whose connection is closed while it sends
   sees an error instead of the response.
7. If a client sent `Expect: 100-continue` and got no `100 Continue`, the connection closes after the response: it
   is not known whether a body follows.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, cast

from mooring.kit.clock import Clock
from mooring.serving.http.parser import ParseFailure, RequestParser, ServerLimits
from mooring.serving.http.request import BrokenBodyError, Request
from mooring.serving.http.response import DateHeader, Headers, Response, Stream, closing_line, head_beginning

JOINED_BYTES_MAX = 64 * 1024
"""Up to this size head and body are joined: a copy is cheaper than a second write."""
SLICE_BYTES = 1024 * 1024
"""A larger body is sent in slices, between which other connections are served: encrypting 1 MiB takes a millisecond."""

Handler = Callable[[Request], Awaitable[Response | Stream]]

log = logging.getLogger(__name__)


class ConnectionOwner(Protocol):
    """The listener, as its connections use it."""

    handler: Handler
    limits: ServerLimits
    clock: Clock
    dates: DateHeader
    error_response: Callable[[ParseFailure], Response]
    on_failure: Callable[[], None]
    ends_with_client: bool
    idle_checks: int
    linger_checks: int
    is_stopping: bool

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    def add(self, connection: ServerConnection) -> bool: ...

    def remove(self, connection: ServerConnection) -> None: ...


class ServerConnection(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_backlog_bytes",
        "_certificate",
        "_checks_left",
        "_current",
        "_drained",
        "_listener",
        "_next",
        "_reader",
        "_task",
        "_transport",
        "_waiting",
        "is_full",
        "is_held",
        "is_open",
        "on_lost",
    )

    def __init__(self, listener: ConnectionOwner) -> None:
        self._listener = listener
        self._reader = RequestParser(listener.limits, self._take)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[Request | ParseFailure] = []
        self._current: Request | None = None
        self._next: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._certificate: bytes | bool = False
        self._checks_left = listener.idle_checks
        self._backlog_bytes = 0
        self.is_open = False
        self.is_full = False
        """Whether the send buffer is full."""
        self.is_held = False
        """Whether reading is paused."""
        self.on_lost: Callable[[], None] | None = None
        """Called when the client disconnects, for responses that wait for other events."""

    # Transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True
        if not self._listener.add(self):
            self.close()
            return
        # TCP keepalive detects clients that vanish, after hours.
        connected: socket.socket | None = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        if self._is_ahead():
            self._hold()

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        _resolve(self._drained)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._listener.remove(self)
        self._reader.close()
        _resolve(self._next)
        _resolve(self._drained)
        if self.on_lost is not None:
            self.on_lost()
        if self._listener.ends_with_client and self._current is not None and self._task is not None:
            self._task.cancel()
        self._transport = None

    # Requests

    def _take(self, parsed: Request | ParseFailure) -> None:
        self._waiting.append(parsed)
        if self._task is None:
            self._task = self._listener.start(self._serve())
        else:
            _resolve(self._next)

    async def _serve(self) -> None:
        try:
            while self.is_open:
                if self._waiting:
                    await self._serve_one(self._waiting.pop(0))
                    if self._waiting:  # a pipelining client gets no more turns than others
                        await self._listener.clock.wait(0)
                else:
                    self._next = asyncio.get_running_loop().create_future()
                    await self._next
        except ConnectionError:
            pass  # the client is gone
        except Exception:
            # A bug. A task that raises would end all connections, so only this one is aborted.
            self._listener.on_failure()
            log.exception("a connection failed")
            self.abort()
        finally:
            self._current = None
            self.close()

    async def _serve_one(self, parsed: Request | ParseFailure) -> None:
        if isinstance(parsed, ParseFailure):
            self._reject(parsed)
            return
        self._checks_left = 0
        self._current = parsed
        parsed.connection = self
        self._release()
        try:
            response = await self._listener.handler(parsed)
        except BrokenBodyError:
            self._reject(ParseFailure.UNREADABLE)
            return
        except Exception as error:
            if isinstance(error, ConnectionError) and not self.is_open:
                raise
            response = self._failed(parsed)
        await self._conclude(parsed, response)

    def _failed(self, request: Request) -> Response:
        self._listener.on_failure()
        log.exception("%s %s failed", request.method, request.path)
        return Response(500, b"500 Internal Server Error")

    async def _conclude(self, request: Request, response: Response | Stream) -> None:
        """Send the response, and wait until it is sent and the body was received."""
        is_last = self._is_last(request)
        if isinstance(response, Response):
            if request.has_begun or not self.is_open:
                raise ConnectionAbortedError("the response is incomplete")
            self._checks_left = self._listener.idle_checks
            await self._send(request, response, is_last=is_last)
        self._checks_left = self._listener.idle_checks
        if self.is_full:
            await self.wait_drained()
        body = request.body
        if body is not None and not body.is_complete and not self._listener.is_stopping:
            self._checks_left = self._listener.linger_checks
            body.drop()
            self._release()
            await body.wait_dropped()
            self._checks_left = self._listener.idle_checks
        self._current = None
        if is_last or self._listener.is_stopping:
            self.close()

    def _is_last(self, request: Request) -> bool:
        if request.holds_body_back:
            request.is_kept_alive = False
        return not request.is_kept_alive or self._listener.is_stopping

    def _reject(self, failure: ParseFailure) -> None:
        # Request and parser error are not logged: they may contain a token.
        log.info("invalid HTTP from %s: %s", self.peer, failure.name)
        response = self._listener.error_response(failure)
        if self.is_open:
            head = response.head(self._listener.dates.line(), b"Connection: close\r\n", is_old=False)
            self.write(head + response.body)
        self.close()

    # Responses

    async def _send(self, request: Request, response: Response, *, is_last: bool) -> None:
        closing = closing_line(is_kept_alive=not is_last, is_old=request.is_old)
        head = response.head(self._listener.dates.line(), closing, is_old=request.is_old)
        body = response.body
        if request.method == "HEAD" or not body:
            self.write(head)
        elif len(body) <= JOINED_BYTES_MAX:
            self.write(head + body)
        else:
            self.write(head)
            await self._write_in_slices(body)

    async def _write_in_slices(self, body: bytes) -> None:
        for start in range(0, len(body), SLICE_BYTES):
            if start:
                await self._listener.clock.wait(0)
            if self.must_wait:
                await self.wait_drained()
            self.write(body[start : start + SLICE_BYTES])

    def stream(self, request: Request, code: int, content_type: str, headers: Headers) -> Stream:
        """Begin a streamed response."""
        if not self.is_open:
            raise ConnectionResetError("the client is gone")
        if request.is_old:
            request.is_kept_alive = False
        framing = b"" if request.is_old else b"Transfer-Encoding: chunked\r\n"
        closing = closing_line(is_kept_alive=not self._is_last(request), is_old=request.is_old)
        beginning = head_beginning(code, content_type, headers, is_old=request.is_old)
        request.has_begun = True
        self.write(b"%b%b%b%b\r\n" % (beginning, framing, self._listener.dates.line(), closing))
        return Stream(self, code, is_chunked=not request.is_old, is_head_only=request.method == "HEAD")

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    @property
    def must_wait(self) -> bool:
        """Whether a writer must wait: the send buffer is full, or the connection has just broken.

        A broken transport discards writes until it calls `connection_lost` in the next iteration of the loop, which
        never comes if a writer does not wait.
        """
        return self.is_full or (self._transport is not None and self._transport.is_closing())

    async def wait_drained(self) -> None:
        """Wait until the client can receive more. Raises `ConnectionError` if the connection is closed."""
        while self.must_wait and self.is_open:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        if not self.is_open:
            raise ConnectionResetError("the client is gone")

    # Reading

    def wants_body(self, request: Request) -> None:
        """A handler waits for the body."""
        self._release()
        self._checks_left = self._listener.idle_checks
        if request.holds_body_back:
            request.is_continue_sent = True
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def has_body(self) -> None:
        """No handler waits for the body any more."""
        self._checks_left = 0

    def _is_ahead(self) -> bool:
        return self._reader.is_ahead or len(self._waiting) >= self._listener.limits.requests_ahead_max

    def _hold(self) -> None:
        if not self.is_held and self._transport is not None:
            self.is_held = True
            self._transport.pause_reading()

    def _release(self) -> None:
        if self.is_held and self._transport is not None and not self._is_ahead():
            self.is_held = False
            self._transport.resume_reading()

    # Properties

    @property
    def is_idle(self) -> bool:
        return self._current is None and not self._waiting

    @property
    def backlog_bytes(self) -> int:
        """Bytes in the send buffer."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def peer(self) -> str:
        address = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(address[0]) if address else "unknown"

    @property
    def certificate(self) -> bytes | None:
        if self._certificate is False:
            tls: ssl.SSLObject | None = None
            if self._transport is not None:
                tls = self._transport.get_extra_info("ssl_object")
            self._certificate = (tls.getpeercert(binary_form=True) if tls is not None else None) or True
        return self._certificate if isinstance(self._certificate, bytes) else None

    # Closing

    def check(self) -> None:
        """Called periodically: closes the connection after its timeout."""
        if not self._checks_left:
            return  # a handler is running
        if self.is_full or not self.is_open:
            backlog_bytes = self.backlog_bytes
            if backlog_bytes != self._backlog_bytes:
                self._backlog_bytes, self._checks_left = backlog_bytes, self._listener.idle_checks
        self._checks_left -= 1
        if not self._checks_left:
            self.abort() if self.is_full or not self.is_open else self.close()

    def close(self) -> None:
        """Accept no more requests; pending data is still sent."""
        self.is_open = False
        self._checks_left = self._checks_left or self._listener.idle_checks
        self._reader.close()
        if self._transport is not None:
            self._transport.close()
        _resolve(self._next)

    def abort(self) -> None:
        """Close immediately."""
        self.is_open = False
        self._reader.close()
        if self._transport is not None:
            self._transport.abort()
        _resolve(self._next)


def _resolve(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
