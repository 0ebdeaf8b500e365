"""The HTTP server: listen, and stop in order.

Input: a handler, an address to listen on, certificates. Output: a running server. At its end every open request is
answered or cancelled, watches first.

1. The server listens on loopback by default.
2. A malformed request is rejected with kube-apiserver's message.
3. A write completes after its client disconnects: handlers are not cancelled. Long-running requests end with their
   client.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from types import TracebackType
from typing import Self

from mooring.apiserver.errors import method_not_allowed
from mooring.apiserver.http.handler import RequestHandler
from mooring.apiserver.http.rendering import error_reply
from mooring.apiserver.http.request import RequestLimits
from mooring.serving.http.listener import HttpListener, plain_error_response
from mooring.serving.http.parser import ParseFailure, ServerLimits
from mooring.serving.http.response import Response


class HttpServer:
    """Listens while inside of an `async with`. Raises `PortTakenError`."""

    def __init__(
        self,
        handler: RequestHandler,
        limits: RequestLimits,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._handler = handler
        self._host = host
        self._is_secure = tls is not None
        self._listener = HttpListener(
            handler.answer,
            handler.clock,
            host=host,
            port=port,
            tls=tls,
            limits=ServerLimits(field_bytes_max=limits.header_bytes_max),
            error_response=_error_response,
            on_failure=handler.on_failure,
            shares_address=True,
        )

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._is_secure else 'http'}://{host}:{self.port}"

    async def __aenter__(self) -> Self:
        await self._listener.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handler.end_long_running()
        await self._listener.__aexit__(kind, error, trace)


def unix_listener(handler: RequestHandler, limits: RequestLimits, path: Path) -> HttpListener:
    """Listens for the same requests on a Unix socket, without TLS, while inside of an `async with`."""
    return HttpListener(
        handler.answer,
        handler.clock,
        unix_path=str(path),
        limits=ServerLimits(field_bytes_max=limits.header_bytes_max),
        error_response=_error_response,
        on_failure=handler.on_failure,
    )


def _error_response(error: ParseFailure) -> Response:
    if error is not ParseFailure.UNKNOWN_METHOD:
        return plain_error_response(error)
    reply = error_reply(method_not_allowed())
    return Response(reply.code, reply.body, reply.content_type)
