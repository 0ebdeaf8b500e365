"""The secure port: listening, and the way of a request.

    connection (TLS) ──> who is it? ──> may they? ──> the page of that path ──> answer
                            401            403               404

Comes in   pages by path (one that ends with a slash: everything below it), an authenticator, an authorizer, TLS
Goes out   a server that listens inside of an `async with`

 1. Every page is asked for permission, those that do not exist as well: a stranger does not learn what is there.
 2. A page that fails is a 500 in one line, and a traceback in the log; the server goes on.
 3. Pages may wait (a profile takes its time); everything else of the process goes on meanwhile.
"""

from __future__ import annotations

import inspect
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from aiohttp import web

from mooring.serving.answers import Answer, Question, failed, forbidden, not_found, unauthorized
from mooring.serving.authentication import Authenticator
from mooring.serving.authorization import Authorizer

STOP_S_MAX = 5.0
BODY_BYTES_MAX = 64 * 1024

Page = Callable[[Question], Answer | Awaitable[Answer]]

logger = logging.getLogger(__name__)


class PortTakenError(Exception):
    """Somebody else listens there already."""


class SecureServer:
    """Listens while inside of an `async with`."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext,
        shares_address: bool = False,
        shares_port: bool = False,
    ) -> None:
        self._pages = pages
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._host = host
        self._asked_port = port
        self._tls = tls
        self._shares_address = shares_address
        self._shares_port = shares_port
        # Somebody who follows a log that says nothing is missed by no write: the page ends when he goes.
        server = web.Server(self._serve, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=STOP_S_MAX)
        self.port = 0

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(
            self._runner,
            self._host or None,
            self._asked_port,
            ssl_context=self._tls,
            reuse_address=self._shares_address or None,
            reuse_port=self._shares_port or None,
        )
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            why = (error.strerror or str(error)).lower()
            raise PortTakenError(f"cannot listen on {self._host}:{self._asked_port}: {why}") from None
        self.port = self._runner.addresses[0][1]
        logger.info("serving securely on %s:%d", self._host, self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = await self._answer(request)
        except Exception as error:
            logger.error("%s %s failed", request.method, request.path, exc_info=error)
            answer = failed(str(error) or type(error).__name__)
        headers = {
            "Cache-Control": "no-cache, private",
            "Content-Type": answer.content_type,
            "Server": "mooring",  # the library would tell its version to strangers
            "X-Content-Type-Options": "nosniff",
        }
        if answer.file_name:
            headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
        if answer.stream is not None:
            return await _streamed(request, answer, answer.stream, headers)
        return web.Response(body=answer.body, status=answer.code, headers=headers)

    def _page_of(self, path: str) -> Page | None:
        page = self._pages.get(path)
        if page is None:
            beginning = next((known for known in self._pages if known.endswith("/") and path.startswith(known)), "")
            page = self._pages.get(beginning)
        return page

    async def _answer(self, request: web.BaseRequest) -> Answer:
        caller = await self._authenticator.caller(_certificate(request), _headers(request))
        if caller is None:
            return unauthorized()
        verb = request.method.lower()
        verdict = await self._authorizer.verdict(caller, verb, request.path)
        if not verdict.is_allowed:
            return forbidden(caller.name, verb, request.path, verdict.reason)
        page = self._page_of(request.path)
        if page is None:
            return not_found()
        answer = page(await _question(request))
        return await answer if inspect.isawaitable(answer) else answer


async def _streamed(
    request: web.BaseRequest, answer: Answer, stream: AsyncIterator[bytes], headers: Mapping[str, str]
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.code, headers=headers)
    try:
        await response.prepare(request)
        async for part in stream:
            await response.write(part)
        await response.write_eof()
    except ConnectionError:
        logger.info("whoever asked for %s did not wait for its end", request.path)
    return response


async def _question(request: web.BaseRequest) -> Question:
    query: dict[str, list[str]] = {}
    for name, value in request.query.items():
        query.setdefault(name, []).append(value)
    body = await request.content.read(BODY_BYTES_MAX) if request.body_exists else b""
    return Question(request.method, request.path, query, request.headers.get("Accept", ""), body)


def _certificate(request: web.BaseRequest) -> bytes | None:
    """What the client has shown, DER; it was verified when the connection was made."""
    connection: ssl.SSLObject | None = request.get_extra_info("ssl_object")
    return connection.getpeercert(binary_form=True) if connection is not None else None


def _headers(request: web.BaseRequest) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        headers.setdefault(name.lower(), []).append(value)
    return headers
