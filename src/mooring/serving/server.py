"""The secure port: authenticates and authorizes a request and calls the page of its path.

    connection (TLS) ──> authentication ──> authorization ──> page of the path ──> response
                              401                403               404

With a console (`serving.console`), the cookie of its session authenticates the requests that it may make.

Input: pages by path (a path that ends with a slash covers everything below it), an authenticator, an authorizer, TLS.
Output: a server that listens inside `async with`.

 1. Unknown paths are authorized as well: an unauthorized client does not learn which paths exist.
 2. An exception in a page is a 500 response and a traceback in the log.
 3. Pages may wait.
 4. Names of objects in namespaces that the caller may not read are masked in responses.
 5. A page ends when its client disconnects, even if it writes nothing, such as `kubectl logs -f` of a silent container.
"""

from __future__ import annotations

import inspect
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from mooring.kit.clock import Clock
from mooring.serving.authentication import DelegatingAuthenticator
from mooring.serving.authorization import DelegatingAuthorizer
from mooring.serving.console import DATA, LIVE, ROOT, STALLED_S_MAX, ConsolePaths, LiveStreams, headers_below
from mooring.serving.http.listener import HttpListener
from mooring.serving.http.long_running import LongRunningRequests, Pieces
from mooring.serving.http.request import BodyTooLargeError, Request
from mooring.serving.http.response import Headers, Response, Stream
from mooring.serving.pages import PageRequest, PageResponse, failed, forbidden, masked, not_found, text, unauthorized
from mooring.serving.users import User, anonymous

BODY_BYTES_MAX = 1 << 20
"""The largest body is the request of a plan with many pods."""

Page = Callable[[PageRequest], PageResponse | Awaitable[PageResponse]]

logger = logging.getLogger(__name__)


class SecureServer:
    """Listens inside `async with`. Raises `PortTakenError`."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        authenticator: DelegatingAuthenticator,
        authorizer: DelegatingAuthorizer,
        clock: Clock,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext,
        shares_address: bool = False,
        shares_port: bool = False,
        console: ConsolePaths | None = None,
    ) -> None:
        self._pages = pages
        self._clock = clock
        self._console = console
        self._live = LiveStreams(clock)
        self._long_running = LongRunningRequests(STALLED_S_MAX)
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._host = host
        self._listener = HttpListener(
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
        self._long_running.end()
        await self._listener.__aexit__(kind, error, trace)

    async def _serve(self, request: Request) -> Response | Stream:
        try:
            response = await self._respond(request)
        except ConnectionError:
            raise
        except Exception as error:
            logger.error("%s %s failed", request.method, request.path, exc_info=error)
            response = failed(str(error) or type(error).__name__)
        headers = _headers_of(response, headers_below(request.path))
        if response.stream is not None:
            return await self._streamed(request, response, response.stream, headers)
        return Response(response.code, response.body, response.content_type, headers)

    async def _streamed(self, request: Request, response: PageResponse, pieces: Pieces, headers: Headers) -> Stream:
        stream = request.stream(response.code, response.content_type, headers)
        try:
            await self._long_running.send(request, stream, pieces)
        except ConnectionError:
            logger.info("the client of %s disconnected before the end", request.path)
            raise
        stream.finish()
        return stream

    def _page_of(self, path: str) -> Page | None:
        page = self._pages.get(path)
        if page is None:
            beginning = next((known for known in self._pages if known.endswith("/") and path.startswith(known)), "")
            page = self._pages.get(beginning)
        return page

    async def _respond(self, request: Request) -> PageResponse:
        open_response = self._console.open_response(request) if self._console is not None else None
        if open_response is not None:
            return open_response
        caller = await self._caller(request)
        path = unquote(request.path)
        if caller is None:
            return self._unauthorized(path)
        denied = await self._denied(caller, request.method, path)
        if denied is not None:
            return denied
        query = {name: list(values) for name, values in request.query.items()}
        if self._console is not None and path.startswith(ROOT):
            if path == LIVE:
                requested = PageRequest(request.method, path, query)
                return self._live.response(requested, partial(self._live_page, request), caller.name)
            if self._page_of(path) is None:
                return self._console.response(path, request, caller)
        try:
            body = await request.read(BODY_BYTES_MAX)
        except BodyTooLargeError:
            return text(f"more than {BODY_BYTES_MAX} bytes were sent\n", 413)
        may_read = partial(self._authorizer.may_list_pods, caller)
        requested = PageRequest(request.method, path, query, body, may_read)
        return await self._page_response(requested, caller)

    async def _caller(self, request: Request) -> User | None:
        if self._console is not None and not request.certificate and not request.has(b"authorization"):
            user = self._console.session_user(request)
            if user is not None:
                return user
        return await self._authenticator.caller(request.certificate, _headers(request))

    def _unauthorized(self, path: str) -> PageResponse:
        if self._console is None or not path.startswith(ROOT) or path.startswith(DATA):
            return unauthorized()
        return self._console.unauthorized()

    async def _denied(self, caller: User, method: str, path: str) -> PageResponse | None:
        """The response to a request that is not allowed; None if it is."""
        verb = method.lower()
        decision = await self._authorizer.decide(caller, verb, path)
        if decision.is_allowed:
            return None
        if caller == anonymous() and self._console is not None and path.startswith(ROOT):
            return self._unauthorized(path)
        return forbidden(caller.name, verb, path, decision.reason)

    async def _page_response(self, requested: PageRequest, caller: User) -> PageResponse:
        page = self._page_of(requested.path)
        if page is None:
            return not_found()
        answer = page(requested)
        response = await answer if inspect.isawaitable(answer) else answer
        return await masked(requested, response, partial(self._authorizer.may_list_pods, caller), self._clock)

    async def _live_page(self, request: Request, requested: PageRequest) -> PageResponse:
        """One page of a live stream, authenticated and authorized again."""
        caller = await self._caller(request)
        if caller is None:
            return unauthorized()
        return await self._denied(caller, requested.method, requested.path) or await self._page_response(
            requested, caller
        )


def _headers_of(response: PageResponse, more: Headers) -> Headers:
    headers = (*response.headers, *more)
    for name, value in (("Cache-Control", "no-cache, private"), ("X-Content-Type-Options", "nosniff")):
        if not any(known == name for known, _ in headers):
            headers = (*headers, (name, value))
    if response.file_name:
        headers = (*headers, ("Content-Disposition", f'attachment; filename="{response.file_name}"'))
    return headers


def _headers(request: Request) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in request.headers():
        headers.setdefault(name, []).append(value)
    return headers
