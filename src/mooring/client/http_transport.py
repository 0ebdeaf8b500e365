"""The transport: one request out, one answer back, over connections that are kept.

Comes in   a method, an address on the server, headers, a body
Goes out   the answer with its code; or `NoAnswerError`

 1. One call is one request. Nothing is sent a second time here: whether it may be is somebody else's decision.
 2. Watches have connections of their own, so that however many are open, requests are not held up.
 3. Everything ends: a request after `request_s_max`, a connection attempt after `CONNECT_S_MAX`, a watch when its time
    is over. A peer that is gone without a word is noticed after about a minute (`_KEEPALIVE`).
 4. Another client certificate means other connections: the old ones are not used again, and close when they are idle.

Why aiohttp's own second attempt is switched off: it repeats a PUT or a DELETE whose answer was lost, and the second one
then says that the object has changed or is gone.
"""

from __future__ import annotations

import platform
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, NamedTuple

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from mooring import __version__
from mooring.client.errors import NoAnswerError
from mooring.client.http_connection import Certificate, Connection, Identity
from mooring.client.http_proxy import proxy_for
from mooring.client.http_tls import tls_context

CONNECT_S_MAX = 30.0
IDLE_S = 30.0
"""How long a connection waits for its next request; shorter than any server's own patience, or we would race."""
WATCH_BUFFER_BYTES = 1 << 20
HEADER_BYTES_MAX = 1 << 16
LARGE_BYTES = 1 << 20
"""A body of this size is written in pieces, so that others get their turn in between."""

_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionLostError(NoAnswerError):
    """A connection that stood broke before the answer was there. Who only reads may ask again at once."""


class HttpTransport:
    """Sockets to one API server."""

    def __init__(
        self,
        connection: Connection,
        *,
        in_flight_max: int,
        request_s_max: float,
        component: str,
        environment: Mapping[str, str],
    ) -> None:
        self._connection = connection
        self._base = connection.server
        self._in_flight_max = in_flight_max
        self._timeout = aiohttp.ClientTimeout(total=request_s_max, sock_connect=CONNECT_S_MAX)
        self._user_agent = user_agent(component)
        self._proxy = connection.proxy or proxy_for(connection.server, environment) or None
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None
        self._security: ssl.SSLContext | bool = True
        self._certificate: Certificate | None = None
        self._identity: Identity | None = None
        self._headers: dict[str, CIMultiDict[str]] = {}
        if connection.is_secure:
            self._security = tls_context(connection, None)
        self._options = self._route()

    async def close(self) -> None:
        """End every connection."""
        for session in (self._requests, self._watches):
            if session is not None:
                await session.close()
        self._requests = self._watches = None

    async def ask(self, method: str, target: str, identity: Identity, content_type: str, body: bytes | None) -> Answer:
        """One request, and the whole of its answer."""
        if self._requests is None:
            self._requests = self._session(self._in_flight_max, 1 << 18)
        if identity is not self._identity:
            self._assume(identity)
        try:
            async with self._requests.request(
                method,
                URL(self._base + target, encoded=True),
                data=body if body is None or len(body) < LARGE_BYTES else BytesIO(body),
                headers=self._headers_for(content_type),
                timeout=self._timeout,
                **self._options,
            ) as response:
                return Answer(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, OSError) as error:
            raise self._no_answer(method, target, error) from error

    @asynccontextmanager
    async def stream(self, target: str, identity: Identity, s_max: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """A request whose answer is read bit by bit while it is being written."""
        if self._watches is None:
            self._watches = self._session(0, WATCH_BUFFER_BYTES)
        if identity is not self._identity:
            self._assume(identity)
        timeout = aiohttp.ClientTimeout(total=s_max, sock_connect=CONNECT_S_MAX)
        try:
            response = await self._watches.get(
                URL(self._base + target, encoded=True), headers=self._headers_for(""), timeout=timeout, **self._options
            )
        except (aiohttp.ClientError, OSError) as error:
            raise self._no_answer("GET", target, error) from error
        try:
            yield response
        finally:
            _abandon(response)

    def cut(self, target: str, error: Exception) -> NoAnswerError:
        """The error of a stream that broke."""
        return self._no_answer("GET", target, error)

    # ------------------------------------------------------------------------------------------ how it is sent

    def _session(self, connections_max: int, buffer_bytes: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=connections_max, keepalive_timeout=IDLE_S, socket_factory=_kept_alive_socket
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            # Uncompressed: on the networks of a control plane packing costs more than sending, and kube-scheduler
            # asks for the same.
            skip_auto_headers=("Accept-Encoding",),
            read_bufsize=buffer_bytes,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        session._retry_connection = False
        return session

    def _route(self) -> dict[str, Any]:
        route: dict[str, Any] = {"allow_redirects": False, "ssl": self._security}
        if self._proxy is not None:
            route["proxy"] = self._proxy
        if self._connection.server_name:
            route["server_hostname"] = self._connection.server_name
        return route

    def _assume(self, identity: Identity) -> None:
        if self._connection.is_secure and identity.certificate != self._certificate:
            self._security = tls_context(self._connection, identity.certificate)
            self._certificate = identity.certificate
            self._options = self._route()
        self._identity = identity
        self._headers.clear()

    def _headers_for(self, content_type: str) -> CIMultiDict[str]:
        headers = self._headers.get(content_type)
        if headers is None:
            headers = CIMultiDict({"User-Agent": self._user_agent, "Accept": "application/json"})
            if content_type:
                headers["Content-Type"] = content_type
            if self._identity is not None and self._identity.authorization:
                headers["Authorization"] = self._identity.authorization
            headers.extend(self._connection.impersonation)
            self._headers[content_type] = headers
        return headers

    def _no_answer(self, method: str, target: str, error: Exception) -> NoAnswerError:
        what = f"{method} {self._base}{target.partition('?')[0]}"
        if isinstance(error, TimeoutError):
            return NoAnswerError(f"{what}: no answer in time")
        lost = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientPayloadError, ConnectionError)
        is_lost = isinstance(error, lost) and not isinstance(error, aiohttp.ClientConnectorError)
        kind = ConnectionLostError if is_lost else NoAnswerError
        return kind(f"{what}: {_words(error)}")


def user_agent(component: str = "") -> str:
    """`mooring/0.1.0 (linux/amd64) scheduler`: the part in front of the slash is also who owns what we write."""
    machine = platform.machine()
    return f"mooring/{__version__} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)}) {component}".rstrip()


def _words(error: Exception) -> str:
    """What went wrong, without what only a programmer wants to know."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the server cannot be trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__


def _abandon(response: aiohttp.ClientResponse) -> None:
    # Not politely: over TLS that would wait for a server that has no reason to listen to a reader who has gone.
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def _kept_alive_socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # not every system has all of them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
