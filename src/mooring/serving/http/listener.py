"""The listener: all connections of a server, from the first to the last.

Comes in   a handler, an address, certificates, what to say to those who speak no HTTP
Goes out   a server that listens inside of an `async with`

 1. A port that is taken is an error in one line, not a traceback. Everywhere (`0.0.0.0`, `::` or nothing) means the
    addresses of both versions, as in Go, whichever of the words was used.
 2. One alarm for all connections: who has been idle for too long is found by looking, every `look_s`.
 3. A connection over TLS begins with its handshake (`acceptor`), which has limits of its own.
 4. At the end nobody is let in any more, and idle connections are closed. Requests in progress have `stop_s_max`; what
    is left then is cut off.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from math import ceil
from types import TracebackType
from typing import Any, Self

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.acceptor import Acceptor
from mooring.serving.http.connection import Connection
from mooring.serving.http.limits import HttpLimits
from mooring.serving.http.reader import Refusal
from mooring.serving.http.request import Request
from mooring.serving.http.response import Dates, Response
from mooring.serving.http.stream import Stream

BACKLOG = 1_024
EVERYWHERE = ("", "0.0.0.0", "::")

Handler = Callable[[Request], Awaitable[Response | Stream]]

log = logging.getLogger(__name__)


class PortTakenError(Exception):
    """Somebody else listens there already."""


def plain_words(refusal: Refusal) -> Response:
    """What those are told who speak no HTTP."""
    match refusal:
        case Refusal.TOO_LONG:
            return Response(431, b"431 Request Header Fields Too Large")
        case Refusal.UNKNOWN_METHOD:
            return Response(405, b"405 Method Not Allowed")
        case Refusal.UNREADABLE:
            return Response(400, b"400 Bad Request")


class Listener:
    """Listens while inside of an `async with`."""

    def __init__(
        self,
        handler: Handler,
        clock: Clock,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        limits: HttpLimits | None = None,
        refusal_words: Callable[[Refusal], Response] = plain_words,
        on_failure: Callable[[], None] = lambda: None,
        ends_with_client: bool = False,
        shares_address: bool | None = None,
        shares_port: bool | None = None,
    ) -> None:
        """`ends_with_client`: a handler is cancelled when its client is gone."""
        self.handler = handler
        self.limits = limits or HttpLimits()
        self.refusal_words = refusal_words
        self.on_failure = on_failure
        self.ends_with_client = ends_with_client
        self.clock = clock
        self.dates = Dates(clock)
        self.idle_looks = self._looks(self.limits.idle_s_max)
        self.linger_looks = self._looks(self.limits.linger_s_max)
        self.is_stopping = False
        self.port = 0
        self._host = host
        self._asked_port = port
        self._shares_address = shares_address
        self._shares_port = shares_port
        self.connections: dict[Connection, None] = {}
        """Those that are open, in the order in which they came."""
        self.acceptor = Acceptor(self, tls)
        self._group = TaskGroup("http")
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._alarm: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------------------------------------ listening

    async def __aenter__(self) -> Self:
        try:
            self._sockets = await self._listen()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise PortTakenError(f"cannot listen on {self._host}:{self._asked_port}: {why}") from None
        self.port = self._sockets[0].getsockname()[1]
        await self._group.__aenter__()
        for listening in self._sockets:
            self._accepting.append(
                self._group.start_background(self.acceptor.accept_all(listening), name=f"accept on {self.port}")
            )
        return self

    async def _listen(self) -> list[socket.socket]:
        if self._host in EVERYWHERE:
            sockets = [_socket_everywhere(self._asked_port, shares_port=bool(self._shares_port))]
        else:
            found = await asyncio.get_running_loop().getaddrinfo(
                self._host, self._asked_port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
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
        await self.clock.wait(0)  # the loop lets go of the sockets
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
            log.warning("requests in progress were cut off: they took longer than %g s", self.limits.stop_s_max)
        for connection in list(self.connections):
            connection.close()

    # ---------------------------------------------------------------------------------------- for the connections

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._group.start(work, name="connection")

    def add(self, connection: Connection) -> bool:
        """False if it comes too late."""
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
        """At least so long: the first look may come at once."""
        return ceil(seconds / self.limits.look_s) + 1


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
        for each in bound:
            each.close()
        raise
    return bound


def _socket_everywhere(port: int, *, shares_port: bool) -> socket.socket:
    """One socket for both versions; for the older one alone on machines that have no other."""
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
