"""The server: listening for requests, and ending in order.

Comes in   a door, an address to listen on, certificates
Goes out   a running server; at its end every open request is answered or cut off, watches first

 1. Loopback is listened on unless somebody says otherwise.
 2. A port that is taken is an error in one line, not a traceback.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError, LineTooLong

from mooring.apiserver.http.door import Door
from mooring.apiserver.http.lasting import ConnectionHandler
from mooring.apiserver.http.limits import DoorLimits
from mooring.apiserver.http.reply import Reply, error_reply, text_reply
from mooring.apiserver.registry.refusals import method_not_allowed

log = logging.getLogger(__name__)

STOP_S_MAX = 5.0
"""How long open requests are waited for."""
HEADER_LINE_BYTES_MAX = 16 * 1024

_METHOD = re.compile(r"b'[A-Za-z]+ /\S* HTTP/1")


class PortTakenError(Exception):
    """Somebody else listens there already."""


class ApiServer:
    """Listens while inside of an `async with`."""

    def __init__(
        self, door: Door, limits: DoorLimits, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None
    ) -> None:
        self._door = door
        self._host = host
        self._asked_port = port
        self._tls = tls
        self._server = _Server(
            door.answer,
            door.on_failure,
            request_factory=_request_factory(limits),
            access_log=None,
            keepalive_timeout=75.0,
            max_line_size=HEADER_LINE_BYTES_MAX,
            max_field_size=limits.header_bytes_max,
            # kube-apiserver takes a compressed body for what it is not, too.
            auto_decompress=False,
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
        self._door.end_lasting()
        await self._runner.cleanup()


class _Handler(ConnectionHandler):
    """aiohttp's handler, in kube-apiserver's words where the parser itself refuses a request."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError | ConnectionError):
            if isinstance(self._manager, _Server):
                self._manager.on_failure()
            return super().handle_error(request, status, exc, message)
        if isinstance(exc, ConnectionError):
            return web.Response(status=400)  # nobody is there to read it
        # Neither the request nor the parser's words are logged: a token may be in them.
        log.info("what %s sends is not HTTP: %s", request.remote, type(exc).__name__)
        reply = _unreadable(exc)
        response = web.Response(body=reply.body, status=reply.code, headers={"Content-Type": reply.content_type})
        response.force_close()
        return response


class _Server(web.Server):
    """Makes a handler of ours for each connection."""

    def __init__(
        self, handler: Callable[..., Awaitable[web.StreamResponse]], on_failure: Callable[[], None], **kwargs: Any
    ):
        super().__init__(handler, **kwargs)
        self.on_failure = on_failure

    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=asyncio.get_running_loop(), **self._kwargs)


def _unreadable(error: HttpProcessingError) -> Reply:
    """The answer to what is no request."""
    if isinstance(error, BadHttpMethod) and _METHOD.search(error.message):
        return error_reply(method_not_allowed())
    if isinstance(error, LineTooLong):
        return text_reply(431, "431 Request Header Fields Too Large")
    return text_reply(400, "400 Bad Request")


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
