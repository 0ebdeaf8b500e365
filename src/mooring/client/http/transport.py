"""The transport of one API server: a pool of connections, and requests on them.

Inputs: a method, a path, an identity, a body. Output: the answer with its code; or a `NoAnswerError`.

The pool:

1. At most `wires_max` connections exist. Further requests wait in order.
2. The connection that was used last is used first, so that surplus connections become old. A connection that is idle
   for `IDLE_S` is closed.
3. A connection that comes back before its answer is complete is closed.
4. A request ends after `request_s_max`, including its time in the queue, or at most an eighth later: one timer checks
   all requests eight times in that period. A timer for each would cost a tenth of a request. Without `request_s_max`
   there is no limit.
5. After `renew`, no older connection is used again.

The transport:

6. One call is one request. Nothing is repeated here: `requests` decides that.
7. Watches have connections of their own, so that they do not delay requests.
8. A new client certificate means new connections.
9. `may_write` is asked immediately before the bytes of a write leave this process: after the rate limit, after the wait
   for a connection and after TLS. If it returns false, nothing is sent (`NotLeadingError`). A process that was
   suspended past its lease therefore drops every write that was waiting. What remains is the time between that check
   and the system call that sends.
"""

from __future__ import annotations

import asyncio
import platform
import ssl
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from mooring import __version__
from mooring.client.errors import NoAnswerError, NotLeadingError
from mooring.client.http.connection import Certificate, Connection, CredentialsError, Identity
from mooring.client.http.dial import DialError, Dialler, tls_context
from mooring.client.http.http_connection import HttpConnection, HttpResponse
from mooring.client.http.proxy import proxy_for
from mooring.kit.build import ARCHITECTURES

DRY_RUN = "?dryRun=All"
"""The end of the target of a request that changes nothing: it is no write."""
IDLE_S = 30.0
"""How long an idle connection is kept. Shorter than any server's idle timeout, so that the two do not race."""
CHECKS = 8


class ConnectionPool:
    """Connections to one server."""

    def __init__(
        self, dial: Callable[[], Awaitable[HttpConnection]], *, wires_max: int, request_s_max: float | None
    ) -> None:
        self._dial = dial
        self._wires_max = wires_max
        self._request_s_max = request_s_max
        self._idle: list[HttpConnection] = []  # the last used one at the end
        # Connections in use, and waiters, with the number of the check at which they started.
        self._busy: dict[HttpConnection, int] = {}
        self._waiters: deque[tuple[asyncio.Future[HttpConnection | None], int]] = deque()
        self._dialling = 0
        self._generation = 0
        self._checks = 0
        self._check_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    def take_nowait(self) -> HttpConnection | None:
        """An idle wire, if there is one."""
        idle = self._idle
        while idle:
            wire = idle.pop()
            if wire.is_idle:
                return self._lend(wire, self._checks)
        return None

    async def take(self) -> HttpConnection:
        """A wire: an idle one, a new one, or the next one that is returned to the pool. Raises `OSError`."""
        wire = self.take_nowait()
        if wire is not None:
            return wire
        since = self._checks
        self._schedule_check()
        if len(self._busy) + self._dialling >= self._wires_max:
            wire = await self._wait_for_turn(since)
            if wire is not None:
                return self._lend(wire, since)
        else:
            self._dialling += 1
        generation = self._generation
        try:
            async with asyncio.timeout(self._request_s_max):
                wire = await self._dial()
        except BaseException:
            self._dialling -= 1
            self._let_dial()
            raise
        self._dialling -= 1
        wire.generation = generation
        return self._lend(wire, since)

    def give_back(self, wire: HttpConnection) -> None:
        """Return a connection after its request has ended in any way."""
        del self._busy[wire]
        if not wire.is_idle or wire.generation != self._generation:
            wire.abort()
            self._let_dial()
            return
        if self._waiters:
            waiter = self._next_waiter()
            if waiter is not None:
                # It counts as busy until the waiter runs, or another request could take it.
                self._busy[wire] = self._checks
                waiter.set_result(wire)
                return
        wire.has_rested = False
        self._idle.append(wire)
        if self._idle_timer is None:
            self._idle_timer = asyncio.get_running_loop().call_later(IDLE_S / 2, self._close_old)

    def renew(self) -> None:
        """From now on, use only new connections."""
        self._generation += 1
        self._close_idle()

    def close(self) -> None:
        """Close every connection."""
        self.renew()
        for wire in list(self._busy):
            wire.abort()
        for timer in (self._check_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        self._check_timer = self._idle_timer = None

    # ------------------------------------------------------------------------------------------- waiting

    def _lend(self, wire: HttpConnection, since: int) -> HttpConnection:
        self._busy[wire] = since
        self._schedule_check()
        return wire

    async def _wait_for_turn(self, since: int) -> HttpConnection | None:
        """A returned wire; None: the caller may dial a new one, which is already counted."""
        waiter: asyncio.Future[HttpConnection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append((waiter, since))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter.result())
            raise

    def _pass_on(self, wire: HttpConnection | None) -> None:
        if wire is not None:
            self.give_back(wire)
        else:
            self._dialling -= 1
            self._let_dial()

    def _next_waiter(self) -> asyncio.Future[HttpConnection | None] | None:
        while self._waiters:
            waiter, _ = self._waiters.popleft()
            if not waiter.done():
                return waiter
        return None

    def _let_dial(self) -> None:
        """Let waiters dial, as many as the limit allows."""
        while len(self._busy) + self._dialling < self._wires_max:
            waiter = self._next_waiter()
            if waiter is None:
                return
            self._dialling += 1
            waiter.set_result(None)

    # ------------------------------------------------------------------------------------------------- timers

    def _check_overdue(self) -> None:
        self._checks += 1
        for wire, since in list(self._busy.items()):
            if self._checks - since > CHECKS:
                wire.abort(TimeoutError())
        while self._waiters and self._checks - self._waiters[0][1] > CHECKS:
            waiter, _ = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(TimeoutError())
        self._check_timer = None
        if self._busy or self._waiters or self._dialling:
            self._schedule_check()

    def _schedule_check(self) -> None:
        if self._check_timer is None and self._request_s_max is not None:
            check_s = self._request_s_max / CHECKS
            self._check_timer = asyncio.get_running_loop().call_later(check_s, self._check_overdue)

    def _close_old(self) -> None:
        self._idle_timer = None
        kept = [wire for wire in self._idle if wire.is_idle and not wire.has_rested]
        for wire in self._idle:
            if wire.has_rested:
                wire.abort()
            wire.has_rested = True
        self._idle = kept
        if kept:
            self._idle_timer = asyncio.get_running_loop().call_later(IDLE_S / 2, self._close_old)

    def _close_idle(self) -> None:
        for wire in self._idle:
            wire.abort()
        self._idle.clear()


class ConnectionLostError(NoAnswerError):
    """An open connection broke before the answer arrived. A read may be repeated at once."""


class HttpStream:
    """An answer that is read as it arrives. Reading raises `OSError`."""

    def __init__(self, wire: HttpConnection, code: int) -> None:
        self._wire = wire
        self.code = code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._wire.stream_headers

    async def read_any(self) -> bytes:
        """The next bytes, as soon as there are some; empty at the end."""
        return await self._wire.read_any()

    async def read_all(self) -> bytes:
        pieces = []
        while piece := await self._wire.read_any():
            pieces.append(piece)
        return b"".join(pieces)

    async def read_first(self, bytes_max: int) -> bytes:
        """The body, or its first `bytes_max` bytes."""
        body = b""
        while len(body) < bytes_max and (piece := await self._wire.read_any()):
            body += piece
        return body[:bytes_max]

    def close(self) -> None:
        """End the connection immediately. A TLS shutdown would wait for the server."""
        self._wire.abort()


class HttpTransport:
    """Requests to one API server."""

    def __init__(
        self,
        connection: Connection,
        *,
        in_flight_max: int,
        request_s_max: float,
        component: str,
        product: str,
        environment: Mapping[str, str],
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        self._connection = connection
        self._may_write = may_write
        self._base = connection.server
        self._user_agent = user_agent(component, product)
        self._dialler = Dialler(connection, connection.proxy or proxy_for(connection.server, environment))
        self._pool = ConnectionPool(self._dial, wires_max=in_flight_max or sys.maxsize, request_s_max=request_s_max)
        self._security: ssl.SSLContext | None = None
        self._certificate: Certificate | None = None
        self._identity: Identity | None = None
        self._heads: dict[str, bytes] = {}
        self._target_start = self._dialler.target_start.encode()
        if connection.is_secure:
            self._security = tls_context(connection, None)

    async def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    async def send(
        self, method: str, target: str, identity: Identity, content_type: str, body: bytes | None
    ) -> HttpResponse:
        """Send one request and wait for the complete answer. Raises `NoAnswerError` and `NotLeadingError`."""
        if identity is not self._identity:
            self._use_identity(identity)
        request = self._request(method, target, content_type, body)
        try:
            wire = self._pool.take_nowait() or await self._pool.take()
            try:
                is_write = method != "GET" and not target.endswith(DRY_RUN)
                if is_write and self._may_write is not None and not self._may_write():
                    raise NotLeadingError("this process is not the leader any more: nothing was sent")
                return await wire.send(request)
            finally:
                self._pool.give_back(wire)
        except OSError as error:
            raise self._no_answer(method, target, error) from error

    @asynccontextmanager
    async def stream(self, target: str, identity: Identity, s_max: float) -> AsyncIterator[HttpStream]:
        """Send a GET whose answer is read as it arrives, on a connection of its own. Raises `NoAnswerError`."""
        if identity is not self._identity:
            self._use_identity(identity)
        try:
            wire = await self._dial()
        except OSError as error:
            raise self._no_answer("GET", target, error) from error
        timer = asyncio.get_running_loop().call_later(s_max, wire.abort, TimeoutError())
        try:
            try:
                code = await wire.open_stream(self._request("GET", target, "", None))
            except OSError as error:
                raise self._no_answer("GET", target, error) from error
            yield HttpStream(wire, code)
        finally:
            timer.cancel()
            wire.abort()

    def cut(self, target: str, error: OSError) -> NoAnswerError:
        """The error of a broken stream."""
        return self._no_answer("GET", target, error)

    # ------------------------------------------------------------------------------------------ requests

    async def _dial(self) -> HttpConnection:
        return await self._dialler.dial(self._security)

    def _use_identity(self, identity: Identity) -> None:
        if self._connection.is_secure and identity.certificate != self._certificate:
            self._security = tls_context(self._connection, identity.certificate)
            self._certificate = identity.certificate
            self._pool.renew()
        self._identity = identity
        self._heads.clear()

    def _request(self, method: str, target: str, content_type: str, body: bytes | None) -> bytes:
        head = self._heads.get(content_type)
        if head is None:
            head = self._heads[content_type] = self._head(content_type)
        if body is None:
            return b"%b %b%b%b\r\n" % (method.encode(), self._target_start, target.encode(), head)
        return b"%b %b%b%bContent-Length: %d\r\n\r\n%b" % (
            method.encode(),
            self._target_start,
            target.encode(),
            head,
            len(body),
            body,
        )

    def _head(self, content_type: str) -> bytes:
        """The end of the first line, and the headers of every request. There is no Accept-Encoding: on the network of a
        control plane compression costs more than it saves, and kube-scheduler disables it too."""
        headers = [("Host", self._dialler.host), ("User-Agent", self._user_agent), ("Accept", "application/json")]
        if content_type:
            headers.append(("Content-Type", content_type))
        if self._identity is not None and self._identity.authorization:
            headers.append(("Authorization", self._identity.authorization))
        if self._dialler.proxy_authorization:
            headers.append(("Proxy-Authorization", self._dialler.proxy_authorization))
        headers += self._connection.impersonation
        for name, value in headers:
            if not (name + value).isprintable():
                raise CredentialsError(f"the header {name!r} contains a control character and cannot be sent")
        return "".join([" HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in headers)]).encode()

    def _no_answer(self, method: str, target: str, error: OSError) -> NoAnswerError:
        what = f"{method} {self._base}{target.partition('?')[0]}"
        if isinstance(error, TimeoutError):
            return NoAnswerError(f"{what}: no answer in time")
        kind = NoAnswerError if isinstance(error, DialError) else ConnectionLostError
        return kind(f"{what}: {str(error) or type(error).__name__}")


def user_agent(component: str = "", product: str = "mooring") -> str:
    """`mooring/0.1.0 (linux/amd64) scheduler`. The product is the default field manager."""
    machine = platform.machine()
    return f"{product}/{__version__} ({sys.platform}/{ARCHITECTURES.get(machine, machine)}) {component}".rstrip()
