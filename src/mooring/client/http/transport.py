"""The transport: one request out, one answer back, over connections that are kept.

Comes in   a method, an address on the server, headers, a body
Goes out   the answer with its code; or `NoAnswerError`

    dial         how a connection is made        pool      how it is kept
    wire         a request on it                 answer    how its answer is read

 1. One call is one request. Nothing is sent a second time here: whether it may be is somebody else's decision.
 2. Watches have connections of their own, so that however many are open, requests are not held up.
 3. Everything ends: a request after about `request_s_max`, a connection attempt after `CONNECT_S_MAX`, a watch when its
    time is over.
 4. Another client certificate means other connections: the old ones are not used again.
"""

from __future__ import annotations

import asyncio
import platform
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from mooring import __version__
from mooring.client.errors import NoAnswerError
from mooring.client.http.answer import Answer
from mooring.client.http.connection import Certificate, Connection, CredentialsError, Identity
from mooring.client.http.dial import DialError, Dialler
from mooring.client.http.pool import WirePool
from mooring.client.http.proxy import proxy_for
from mooring.client.http.tls import tls_context
from mooring.client.http.wire import Wire

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ConnectionLostError(NoAnswerError):
    """A connection that stood broke before the answer was there. Who only reads may ask again at once."""


class HttpStream:
    """An answer that is read while it is being written. Reading raises `OSError`."""

    def __init__(self, wire: Wire, code: int) -> None:
        self._wire = wire
        self.code = code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._wire.stream_headers

    async def read_any(self) -> bytes:
        """What has come since, as soon as there is something; nothing at the end."""
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
        """End the connection at once. A polite end over TLS would wait for the server."""
        self._wire.abort()


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
        self._user_agent = user_agent(component)
        self._dialler = Dialler(connection, connection.proxy or proxy_for(connection.server, environment))
        self._pool = WirePool(self._dial, wires_max=in_flight_max or sys.maxsize, request_s_max=request_s_max)
        self._security: ssl.SSLContext | None = None
        self._certificate: Certificate | None = None
        self._identity: Identity | None = None
        self._heads: dict[str, bytes] = {}
        self._target_start = self._dialler.target_start.encode()
        if connection.is_secure:
            self._security = tls_context(connection, None)

    async def close(self) -> None:
        """End every connection."""
        self._pool.close()

    async def ask(self, method: str, target: str, identity: Identity, content_type: str, body: bytes | None) -> Answer:
        """One request, and the whole of its answer."""
        if identity is not self._identity:
            self._assume(identity)
        request = self._request(method, target, content_type, body)
        try:
            wire = self._pool.take_nowait() or await self._pool.take()
            try:
                return await wire.ask(request)
            finally:
                self._pool.give_back(wire)
        except OSError as error:
            raise self._no_answer(method, target, error) from error

    @asynccontextmanager
    async def stream(self, target: str, identity: Identity, s_max: float) -> AsyncIterator[HttpStream]:
        """A request whose answer is read bit by bit while it is being written."""
        if identity is not self._identity:
            self._assume(identity)
        try:
            wire = await self._dial()
        except OSError as error:
            raise self._no_answer("GET", target, error) from error
        alarm = asyncio.get_running_loop().call_later(s_max, wire.abort, TimeoutError())
        try:
            try:
                code = await wire.open_stream(self._request("GET", target, "", None))
            except OSError as error:
                raise self._no_answer("GET", target, error) from error
            yield HttpStream(wire, code)
        finally:
            alarm.cancel()
            wire.abort()

    def cut(self, target: str, error: OSError) -> NoAnswerError:
        """The error of a stream that broke."""
        return self._no_answer("GET", target, error)

    # ------------------------------------------------------------------------------------------ how it is sent

    async def _dial(self) -> Wire:
        return await self._dialler.dial(self._security)

    def _assume(self, identity: Identity) -> None:
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
        """The end of the first line, and the headers that all requests have. Uncompressed answers are asked for: on the
        networks of a control plane packing costs more than sending, and kube-scheduler asks for the same."""
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
                raise CredentialsError(f"the header {name!r} has a line break or the like in it, and cannot be sent")
        return "".join([" HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in headers)]).encode()

    def _no_answer(self, method: str, target: str, error: OSError) -> NoAnswerError:
        what = f"{method} {self._base}{target.partition('?')[0]}"
        if isinstance(error, TimeoutError):
            return NoAnswerError(f"{what}: no answer in time")
        kind = NoAnswerError if isinstance(error, DialError) else ConnectionLostError
        return kind(f"{what}: {str(error) or type(error).__name__}")


def user_agent(component: str = "") -> str:
    """`mooring/0.1.0 (linux/amd64) scheduler`: the part in front of the slash is also who owns what we write."""
    machine = platform.machine()
    return f"mooring/{__version__} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)}) {component}".rstrip()
