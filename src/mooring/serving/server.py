"""The secure port: the way of a request.

    connection (TLS) ──> who is it? ──> may they? ──> the page of that path ──> answer
                            401            403               404

Comes in   pages by path (one that ends with a slash: everything below it), an authenticator, an authorizer, TLS
Goes out   a server that listens inside of an `async with`

 1. Every page is asked for permission, those that do not exist as well: a stranger does not learn what is there.
 2. A page that fails is a 500 in one line, and a traceback in the log; the server goes on.
 3. Pages may wait (a profile takes its time); everything else of the process goes on meanwhile.
 4. Somebody who follows a log that says nothing is missed by no write: the page ends when he goes.
"""

from __future__ import annotations

import inspect
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from mooring.kit.clock import Clock
from mooring.serving.authentication import Authenticator
from mooring.serving.authorization import Authorizer
from mooring.serving.http.body import BodyTooLargeError
from mooring.serving.http.listener import Listener
from mooring.serving.http.request import Request
from mooring.serving.http.response import Headers, Response, Stream
from mooring.serving.pages import Answer, Question, failed, forbidden, not_found, text, unauthorized

BODY_BYTES_MAX = 64 * 1024

Page = Callable[[Question], Answer | Awaitable[Answer]]

logger = logging.getLogger(__name__)


class SecureServer:
    """Listens while inside of an `async with`. Raises `PortTakenError`."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        authenticator: Authenticator,
        authorizer: Authorizer,
        clock: Clock,
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
        self._listener = Listener(
            self._serve,
            clock,
            host=host,
            port=port,
            tls=tls,
            ends_with_client=True,
            shares_address=shares_address or None,
            shares_port=shares_port or None,
        )

    @property
    def port(self) -> int:
        return self._listener.port

    async def __aenter__(self) -> Self:
        await self._listener.__aenter__()
        logger.info("serving securely on %s:%d", f"[{self._host}]" if ":" in self._host else self._host, self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.__aexit__(kind, error, trace)

    async def _serve(self, request: Request) -> Response | Stream:
        try:
            answer = await self._answer(request)
        except ConnectionError:
            raise
        except Exception as error:
            logger.error("%s %s failed", request.method, request.path, exc_info=error)
            answer = failed(str(error) or type(error).__name__)
        headers: Headers = (("Cache-Control", "no-cache, private"), ("X-Content-Type-Options", "nosniff"))
        if answer.file_name:
            headers = (*headers, ("Content-Disposition", f'attachment; filename="{answer.file_name}"'))
        if answer.stream is not None:
            return await _streamed(request, answer, answer.stream, headers)
        return Response(answer.code, answer.body, answer.content_type, headers)

    def _page_of(self, path: str) -> Page | None:
        page = self._pages.get(path)
        if page is None:
            beginning = next((known for known in self._pages if known.endswith("/") and path.startswith(known)), "")
            page = self._pages.get(beginning)
        return page

    async def _answer(self, request: Request) -> Answer:
        caller = await self._authenticator.caller(request.certificate, _headers(request))
        if caller is None:
            return unauthorized()
        verb, path = request.method.lower(), unquote(request.path)
        verdict = await self._authorizer.verdict(caller, verb, path)
        if not verdict.is_allowed:
            return forbidden(caller.name, verb, path, verdict.reason)
        page = self._page_of(path)
        if page is None:
            return not_found()
        try:
            body = await request.read(BODY_BYTES_MAX)
        except BodyTooLargeError:
            return text(f"more than {BODY_BYTES_MAX} bytes were sent\n", 413)
        query = {name: list(values) for name, values in request.query.items()}
        answer = page(Question(request.method, path, query, request.header(b"accept"), body))
        return await answer if inspect.isawaitable(answer) else answer


async def _streamed(request: Request, answer: Answer, pieces: AsyncIterator[bytes], headers: Headers) -> Stream:
    stream = request.stream(answer.code, answer.content_type, headers)
    try:
        async for piece in pieces:
            await stream.write(piece)
    except ConnectionError:
        logger.info("whoever asked for %s did not wait for its end", request.path)
        raise
    stream.finish()
    return stream


def _headers(request: Request) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in request.headers():
        headers.setdefault(name, []).append(value)
    return headers
