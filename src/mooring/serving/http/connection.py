"""One client: its requests, one after the other.

    bytes ──> reader ──> waiting ──> the handler ──> answer ──> bytes
                              (one at a time, in order)

Comes in   bytes, when the loop has them
Goes out   answers

 1. Answers leave in the order of their requests, however many were sent ahead.
 2. A connection is read no further than somebody works it off: neither bodies nor requests pile up.
 3. One task for a connection, from its first request on. Whoever waits for the next one costs no more than that.
 4. A handler that fails is a 500, and counted; if some of its answer is on the way, the connection is cut off instead.
 5. Patience is counted in looks of the listener, not in alarms: `look` is called every `look_s`.
 6. After a last answer the rest of a body is still taken for a while. Whoever is closed in the middle of sending finds
    the connection broken, and not the answer.
 7. A client that was not told to send its body may send it or something else. Nobody could tell, so nothing follows.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from mooring.serving.http.body import BrokenBodyError
from mooring.serving.http.parser import Refusal, RequestReader
from mooring.serving.http.request import Request
from mooring.serving.http.response import Headers, Response, Stream, closing_line, head_beginning

if TYPE_CHECKING:
    from mooring.serving.http.listener import Listener

JOINED_BYTES_MAX = 64 * 1024
"""Up to here a head and a body are put together: a copy is cheaper than a second write."""

log = logging.getLogger(__name__)


class Connection(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_backlog_bytes",
        "_certificate",
        "_current",
        "_drained",
        "_listener",
        "_looks_left",
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

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._reader = RequestReader(listener.limits, self._take)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[Request | Refusal] = []
        self._current: Request | None = None
        self._next: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._certificate: bytes | bool = False
        self._looks_left = listener.idle_looks
        self._backlog_bytes = 0
        self.is_open = False
        self.is_full = False
        """Whether the client takes no more for now."""
        self.is_held = False
        """Whether we take no more for now."""
        self.on_lost: Callable[[], None] | None = None
        """Called when the client is gone, for answers that wait for something else."""

    # ----------------------------------------------------------------------------------- told by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True
        if not self._listener.add(self):
            self.close()
            return
        # Whoever vanishes without a word is noticed by the system, after hours, instead of never.
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
        _wake(self._drained)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._listener.remove(self)
        self._reader.close()
        _wake(self._next)
        _wake(self._drained)
        if self.on_lost is not None:
            self.on_lost()
        if self._listener.ends_with_client and self._current is not None and self._task is not None:
            self._task.cancel()
        self._transport = None

    # -------------------------------------------------------------------------------------------- its requests

    def _take(self, found: Request | Refusal) -> None:
        self._waiting.append(found)
        if self._task is None:
            self._task = self._listener.start(self._serve())
        else:
            _wake(self._next)

    async def _serve(self) -> None:
        try:
            while self.is_open:
                if self._waiting:
                    await self._serve_one(self._waiting.pop(0))
                    if self._waiting:  # who sends many requests ahead has no more turns than others
                        await self._listener.clock.wait(0)
                else:
                    self._next = asyncio.get_running_loop().create_future()
                    await self._next
        except ConnectionError:
            pass  # nobody is there any more
        except Exception:
            # A bug, and this client's trouble: all other connections would end with a task that fails.
            self._listener.on_failure()
            log.exception("a connection failed")
            self.abort()
        finally:
            self._current = None
            self.close()

    async def _serve_one(self, found: Request | Refusal) -> None:
        if isinstance(found, Refusal):
            self._refuse(found)
            return
        self._looks_left = 0
        self._current = found
        found.connection = self
        self._release()
        try:
            answer = await self._listener.handler(found)
        except BrokenBodyError:
            self._refuse(Refusal.UNREADABLE)
            return
        except Exception as error:
            if isinstance(error, ConnectionError) and not self.is_open:
                raise
            answer = self._failed(found)
        await self._conclude(found, answer)

    def _failed(self, request: Request) -> Response:
        self._listener.on_failure()
        log.exception("%s %s failed", request.method, request.path)
        return Response(500, b"500 Internal Server Error")

    async def _conclude(self, request: Request, answer: Response | Stream) -> None:
        """Send the answer, and wait until it is taken and the request has passed by."""
        is_last = self._is_last(request)
        if isinstance(answer, Response):
            if request.has_begun or not self.is_open:
                raise ConnectionAbortedError("the answer is cut off")
            self._send(request, answer, is_last=is_last)
        self._looks_left = self._listener.idle_looks
        if self.is_full:
            await self.wait_drained()
        body = request.body
        if body is not None and not body.is_complete and not self._listener.is_stopping:
            self._looks_left = self._listener.linger_looks
            body.drop()
            self._release()
            await body.wait_dropped()
            self._looks_left = self._listener.idle_looks
        self._current = None
        if is_last or self._listener.is_stopping:
            self.close()

    def _is_last(self, request: Request) -> bool:
        if request.holds_body_back:
            request.is_kept_alive = False
        return not request.is_kept_alive or self._listener.is_stopping

    def _refuse(self, refusal: Refusal) -> None:
        # Neither the request nor the parser's words are logged: a token may be in them.
        log.info("what %s sends is not HTTP: %s", self.peer, refusal.name)
        answer = self._listener.refusal_words(refusal)
        if self.is_open:
            head = answer.head(self._listener.dates.line(), b"Connection: close\r\n", is_old=False)
            self.write(head + answer.body)
        self.close()

    # ----------------------------------------------------------------------------------------------- answering

    def _send(self, request: Request, answer: Response, *, is_last: bool) -> None:
        closing = closing_line(is_kept_alive=not is_last, is_old=request.is_old)
        head = answer.head(self._listener.dates.line(), closing, is_old=request.is_old)
        body = answer.body
        if request.method == "HEAD" or not body:
            self.write(head)
        elif len(body) <= JOINED_BYTES_MAX:
            self.write(head + body)
        else:
            self.write(head)
            self.write(body)

    def stream(self, request: Request, code: int, content_type: str, headers: Headers) -> Stream:
        """Begin an answer that goes on."""
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
        """Whether a writer must wait: the client takes no more for now, or the connection has just broken.

        A broken transport takes everything and throws it away until it calls `connection_lost`. It does that on the
        next turn of the loop, which never comes if a writer goes on without waiting.
        """
        return self.is_full or (self._transport is not None and self._transport.is_closing())

    async def wait_drained(self) -> None:
        """Until the client can take more. Raises `ConnectionError` if he is gone."""
        while self.must_wait and self.is_open:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        if not self.is_open:
            raise ConnectionResetError("the client is gone")

    # ------------------------------------------------------------------------------------------------- reading

    def wants_body(self, request: Request) -> None:
        """Somebody waits for the body of the request that is answered."""
        self._release()
        self._looks_left = self._listener.idle_looks
        if request.holds_body_back:
            request.is_told_to_send = True
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def has_body(self) -> None:
        """Nobody waits for it any more."""
        self._looks_left = 0

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

    # ---------------------------------------------------------------------------------------- what is known of it

    @property
    def is_idle(self) -> bool:
        return self._current is None and not self._waiting

    @property
    def backlog_bytes(self) -> int:
        """What the client has not taken yet, as far as we still have it."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def peer(self) -> str:
        address = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(address[0]) if address else "somebody"

    @property
    def certificate(self) -> bytes | None:
        if self._certificate is False:
            tls: ssl.SSLObject | None = None
            if self._transport is not None:
                tls = self._transport.get_extra_info("ssl_object")
            self._certificate = (tls.getpeercert(binary_form=True) if tls is not None else None) or True
        return self._certificate if isinstance(self._certificate, bytes) else None

    # -------------------------------------------------------------------------------------------------- its end

    def look(self) -> None:
        """Called every now and then: the end of our patience."""
        if not self._looks_left:
            return  # somebody works on its request, and looks after himself
        if self.is_full or not self.is_open:
            backlog_bytes = self.backlog_bytes
            if backlog_bytes != self._backlog_bytes:
                self._backlog_bytes, self._looks_left = backlog_bytes, self._listener.idle_looks
        self._looks_left -= 1
        if not self._looks_left:
            self.abort() if self.is_full or not self.is_open else self.close()

    def close(self) -> None:
        """No more requests; what was written is still sent, as long as somebody takes it."""
        self.is_open = False
        self._looks_left = self._looks_left or self._listener.idle_looks
        self._reader.close()
        if self._transport is not None:
            self._transport.close()
        _wake(self._next)

    def abort(self) -> None:
        """At once."""
        self.is_open = False
        self._reader.close()
        if self._transport is not None:
            self._transport.abort()
        _wake(self._next)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
