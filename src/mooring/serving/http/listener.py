"""The listener: the listening socket and all connections of a server.

    listening socket ──> accepted ──(handshake done)──> Connection
                             └─────(failed, too slow, or one of too many)──> closed

1. A port that is in use raises `PortTakenError` with one line. `0.0.0.0`, `::` and an empty host listen on IPv4 and
   IPv6, as in Go.
2. One timer serves all connections: idle ones are found every `check_interval_s`.
3. A connection over TLS begins with its handshake. A handshake that takes longer than `handshake_s_max` is ended.
4. At most `handshakes_max` connections are in their handshake. If there is one more, the oldest is closed: clients that
   never begin cannot keep others out.
5. If the process has no file descriptor left, accepting pauses for `PAUSE_S`.
6. At the end no connection is accepted and idle ones are closed. Requests in progress have `stop_s_max`.

Why not `create_server`: it notifies the protocol of a connection only after the handshake, so that nothing could
count or close the others.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from math import ceil
from types import TracebackType
from typing import Any, Self

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.connection import ConnectionOwner, Handler, ServerConnection
from mooring.serving.http.parser import ParseFailure, ServerLimits
from mooring.serving.http.response import DateHeader, Response

PAUSE_S = 1.0

log = logging.getLogger(__name__)


class Acceptor:
    """Accepts the connections of a listener."""

    def __init__(self, listener: ConnectionOwner, tls: ssl.SSLContext | None) -> None:
        self._listener = listener
        self._tls = tls
        self._handshakes: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._unstarted: set[socket.socket] = set()
        self.closed_for_newer = 0
        """How many connections were closed in their handshake because there were too many."""

    @property
    def handshakes(self) -> int:
        """Connections that are in their handshake."""
        return len(self._handshakes)

    async def accept_all(self, listening: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop, is_failing = asyncio.get_running_loop(), False
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                if not is_failing:
                    log.error("connections cannot be accepted: %s", error)
                is_failing = True
                await self._listener.clock.wait(PAUSE_S)
                continue
            is_failing = False
            self._begin(accepted)

    def close(self) -> None:
        """End every handshake."""
        for task in list(self._handshakes):
            task.cancel()

    def _begin(self, accepted: socket.socket) -> None:
        if len(self._handshakes) >= self._listener.limits.handshakes_max:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
            self.closed_for_newer += 1
        self._unstarted.add(accepted)
        task = self._listener.start(self._shake_hands(accepted))
        self._handshakes[task] = None
        task.add_done_callback(partial(self._ended, accepted))

    async def _shake_hands(self, accepted: socket.socket) -> None:
        self._unstarted.discard(accepted)
        accepted.setblocking(False)
        try:
            # From here on the transport closes the socket.
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: ServerConnection(self._listener),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._listener.limits.handshake_s_max if self._tls is not None else None,
            )
        except OSError as error:
            log.debug("a TLS handshake failed: %s", error)

    def _ended(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        if accepted in self._unstarted:  # cancelled before its first step
            self._unstarted.discard(accepted)
            accepted.close()


BACKLOG = 1_024
EVERYWHERE = ("", "0.0.0.0", "::")
OWNER_ONLY = 0o600


class PortTakenError(Exception):
    """The address is in use."""


def plain_error_response(failure: ParseFailure) -> Response:
    """The response to invalid HTTP."""
    match failure:
        case ParseFailure.TOO_LONG:
            return Response(431, b"431 Request Header Fields Too Large")
        case ParseFailure.UNKNOWN_METHOD:
            return Response(405, b"405 Method Not Allowed")
        case ParseFailure.UNREADABLE:
            return Response(400, b"400 Bad Request")


class HttpListener:
    """Listens inside `async with`."""

    def __init__(
        self,
        handler: Handler,
        clock: Clock,
        *,
        host: str = "",
        port: int = 0,
        unix_path: str = "",
        tls: ssl.SSLContext | None = None,
        limits: ServerLimits | None = None,
        error_response: Callable[[ParseFailure], Response] = plain_error_response,
        on_failure: Callable[[], None] = lambda: None,
        ends_with_client: bool = False,
        shares_address: bool | None = None,
        shares_port: bool | None = None,
    ) -> None:
        """Listen on a host and a port, or on a Unix socket that only its owner may use.

        `ends_with_client`: a handler is cancelled when its client disconnects.
        """
        self.handler = handler
        self.limits = limits or ServerLimits()
        self.error_response = error_response
        self.on_failure = on_failure
        self.ends_with_client = ends_with_client
        self.clock = clock
        self.dates = DateHeader(clock)
        self.idle_checks = self._check_count(self.limits.idle_s_max)
        self.linger_checks = self._check_count(self.limits.linger_s_max)
        self.is_stopping = False
        self.port = 0
        self._host = host
        self._requested_port = port
        self._unix_path = unix_path
        self._shares_address = shares_address
        self._shares_port = shares_port
        self.connections: dict[ServerConnection, None] = {}
        """Open connections, oldest first."""
        self.acceptor = Acceptor(self, tls)
        self._group = TaskGroup("http")
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._alarm: asyncio.TimerHandle | None = None

    # Listening

    async def __aenter__(self) -> Self:
        try:
            self._sockets = await self._listen()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            where = self._unix_path or f"{self._host}:{self._requested_port}"
            advice = "; choose another port" if error.errno == errno.EADDRINUSE and not self._unix_path else ""
            raise PortTakenError(f"cannot listen on {where}: {why}{advice}") from None
        if not self._unix_path:
            self.port = self._sockets[0].getsockname()[1]
        await self._group.__aenter__()
        for listening in self._sockets:
            self._accepting.append(
                self._group.start_background(self.acceptor.accept_all(listening), name=f"accept on {self.port}")
            )
        return self

    async def _listen(self) -> list[socket.socket]:
        if self._unix_path:
            sockets = [_unix_socket(self._unix_path)]
        elif self._host in EVERYWHERE:
            sockets = [_socket_everywhere(self._requested_port, shares_port=bool(self._shares_port))]
        else:
            found = await asyncio.get_running_loop().getaddrinfo(
                self._host, self._requested_port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            addresses = dict.fromkeys((family, address) for family, _, _, _, address in found)
            sockets = _sockets_on(
                addresses, shares_address=self._shares_address is not False, shares_port=bool(self._shares_port)
            )
        for listening in sockets:
            listening.setblocking(False)
            listening.listen(BACKLOG)
        return sockets

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_stopping = True
        for accepting in self._accepting:
            accepting.cancel()
        await self.clock.wait(0)  # the loop removes the sockets from its selector
        for listening in self._sockets:
            listening.close()
        self.acceptor.close()
        if self._alarm is not None:
            self._alarm.cancel()
        for connection in list(self.connections):
            if connection.is_idle:
                connection.close()
        try:
            async with asyncio.timeout(self.limits.stop_s_max):
                await self._group.__aexit__(None, None, None)
        except TimeoutError:
            log.warning("requests in progress were aborted after %g s", self.limits.stop_s_max)
        for connection in list(self.connections):
            connection.close()

    # Connections

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._group.start(work, name="connection")

    def add(self, connection: ServerConnection) -> bool:
        """False if the listener is stopping."""
        if self.is_stopping:
            return False
        self.connections[connection] = None
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(self.limits.check_interval_s, self._check_connections)
        return True

    def remove(self, connection: ServerConnection) -> None:
        self.connections.pop(connection, None)

    def _check_connections(self) -> None:
        self._alarm = None
        for connection in list(self.connections):
            connection.check()
        if self.connections and not self.is_stopping:
            self._alarm = asyncio.get_running_loop().call_later(self.limits.check_interval_s, self._check_connections)

    def _check_count(self, seconds: float) -> int:
        """The number of checks that takes at least this time: the first one may happen immediately."""
        return ceil(seconds / self.limits.check_interval_s) + 1


def _unix_socket(path: str) -> socket.socket:
    """Bind a Unix socket that only its owner may use."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
        os.chmod(path, OWNER_ONLY)
    except OSError:
        listening.close()
        raise
    return listening


def _sockets_on(
    addresses: Iterable[tuple[int, Any]], *, shares_address: bool, shares_port: bool
) -> list[socket.socket]:
    """A bound socket for each address of a host. Raises `OSError`."""
    bound: list[socket.socket] = []
    try:
        for family, address in addresses:
            bound.append(socket.socket(family, socket.SOCK_STREAM))
            if shares_address:
                bound[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shares_port:
                bound[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                bound[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound[-1].bind(address)
    except BaseException:
        for listening in bound:
            listening.close()
        raise
    return bound


def _socket_everywhere(port: int, *, shares_port: bool) -> socket.socket:
    """A dual-stack socket; IPv4 only where IPv6 is not available."""
    is_dual = socket.has_dualstack_ipv6()
    made = socket.socket(socket.AF_INET6 if is_dual else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if is_dual:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(("::" if is_dual else "0.0.0.0", port))
    except BaseException:
        made.close()
        raise
    return made
