"""The listener: the listening socket and all connections of a server.

1. A port that is in use raises `PortTakenError` with one line. `0.0.0.0`, `::` and an empty host listen on IPv4 and
   IPv6, as in Go.
2. One timer serves all connections: idle ones are found every `look_s`.
3. At the end no connection is accepted and idle ones are closed. Requests in progress have `stop_s_max`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from math import ceil
from types import TracebackType
from typing import Any, Self

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.connection import Connection
from mooring.serving.http.parser import HttpLimits, ParseFailure
from mooring.serving.http.request import Request
from mooring.serving.http.response import DateHeader, Response, Stream

BACKLOG = 1_024
EVERYWHERE = ("", "0.0.0.0", "::")
OWNER_ONLY = 0o600

Handler = Callable[[Request], Awaitable[Response | Stream]]

log = logging.getLogger(__name__)


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


class Listener:
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
        limits: HttpLimits | None = None,
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
        self.limits = limits or HttpLimits()
        self.error_response = error_response
        self.on_failure = on_failure
        self.ends_with_client = ends_with_client
        self.clock = clock
        self.dates = DateHeader(clock)
        self.idle_looks = self._looks(self.limits.idle_s_max)
        self.linger_looks = self._looks(self.limits.linger_s_max)
        self.is_stopping = False
        self.port = 0
        self._host = host
        self._asked_port = port
        self._unix_path = unix_path
        self._tls = tls
        self._shares_address = shares_address
        self._shares_port = shares_port
        self.connections: dict[Connection, None] = {}
        """Open connections, oldest first."""
        self._group = TaskGroup("http")
        self._server: asyncio.Server | None = None
        self._alarm: asyncio.TimerHandle | None = None

    # Listening

    async def __aenter__(self) -> Self:
        try:
            self._server = await self._listen()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            where = self._unix_path or f"{self._host}:{self._asked_port}"
            raise PortTakenError(f"cannot listen on {where}: {why}") from None
        if not self._unix_path:
            self.port = self._server.sockets[0].getsockname()[1]
        await self._group.__aenter__()
        return self

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        if self._unix_path:
            server = await loop.create_unix_server(lambda: Connection(self), self._unix_path, backlog=BACKLOG)
            os.chmod(self._unix_path, OWNER_ONLY)
            return server
        if self._host in EVERYWHERE:
            everywhere = _socket_everywhere(self._asked_port, shares_port=bool(self._shares_port))
            return await loop.create_server(lambda: Connection(self), sock=everywhere, ssl=self._tls, backlog=BACKLOG)
        return await loop.create_server(
            lambda: Connection(self),
            self._host,
            self._asked_port,
            ssl=self._tls,
            backlog=BACKLOG,
            reuse_address=self._shares_address,
            reuse_port=self._shares_port,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_stopping = True
        if self._server is not None:
            self._server.close()
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

    def add(self, connection: Connection) -> bool:
        """False if the listener is stopping."""
        if self.is_stopping:
            return False
        self.connections[connection] = None
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(self.limits.look_s, self._look)
        return True

    def remove(self, connection: Connection) -> None:
        self.connections.pop(connection, None)

    def _look(self) -> None:
        self._alarm = None
        for connection in list(self.connections):
            connection.look()
        if self.connections and not self.is_stopping:
            self._alarm = asyncio.get_running_loop().call_later(self.limits.look_s, self._look)

    def _looks(self, seconds: float) -> int:
        """The number of looks that takes at least so long: the first one may come at once."""
        return ceil(seconds / self.limits.look_s) + 1


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
