"""The server: listening for requests, and ending in order.

Comes in   a door, an address to listen on, certificates
Goes out   a running server; at its end every open request is answered or cut off, watches first

 1. Loopback is listened on unless somebody says otherwise.
 2. A port that is taken is an error in one line, not a traceback.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import BadHttpMethod

from mooring.apiserver.http.door import Door
from mooring.apiserver.http.limits import DoorLimits
from mooring.apiserver.http.reply import error_reply
from mooring.apiserver.registry.refusals import method_not_allowed

STOP_S_MAX = 5.0
"""How long open requests are waited for."""
HEADER_LINE_BYTES_MAX = 16 * 1024


class PortTakenError(Exception):
    """Somebody else listens there already."""


class ApiServer:
    """Listens while inside of an `async with`."""

    def __init__(
        self, door: Door, limits: DoorLimits, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None
    ) -> None:
        self._host = host
        self._asked_port = port
        self._tls = tls
        self._server = _Server(
            door.answer,
            request_factory=_request_factory(limits),
            access_log=None,
            keepalive_timeout=75.0,
            max_line_size=HEADER_LINE_BYTES_MAX,
            max_field_size=limits.header_bytes_max,
            auto_decompress=True,
            lingering_time=1.0,
        )
        self._runner = web.ServerRunner(self._server, shutdown_timeout=STOP_S_MAX)
        self.port = 0

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls is not None else 'http'}://{host}:{self.port}"

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, self._host, self._asked_port, ssl_context=self._tls, backlog=1_024, reuse_address=True
        )
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise PortTakenError(f"cannot listen on {self._host}:{self._asked_port}: {_reason(error)}") from None
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()


class _Handler(web.RequestHandler):
    """aiohttp's handler, in Kubernetes' words where the parser itself refuses a request."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, BadHttpMethod):
            reply = error_reply(method_not_allowed())
            return web.Response(body=reply.body, status=reply.code, content_type=reply.content_type)
        return super().handle_error(request, status, exc, message)


class _Server(web.Server):
    """Makes a handler of ours for each connection."""

    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=asyncio.get_running_loop(), **self._kwargs)


def _request_factory(limits: DoorLimits) -> Callable[..., web.BaseRequest]:
    """aiohttp has its own limit for bodies, which is below ours."""

    def make(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limits.body_bytes_max)

    return make


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
