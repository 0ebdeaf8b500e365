"""Pages of the components of a cluster that its API server serves: /debug/queue, /debug/decisions, metrics.

The API server authenticates and authorizes the requests for them (`nonResourceURLs`), then calls the page. If a
component runs in the worker process, the page of the API server forwards the request over a Unix socket:

    client ── TLS ── API server ── page of this process
                         └──────── Unix socket ── worker process ── page

1. The socket is in the folder of the worker's other socket, which only the owner of the cluster may enter.
2. The first two lines of a body on the socket have the namespaces of the objects that the response and the request
   name: the API server masks names that the caller may not read, and rejects requests for them.
3. While the component does not answer, because it starts or has failed, the response is a 503.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from mooring.client.http.dial import connect_unix
from mooring.client.http.exchange import HttpUrl, encode_request
from mooring.client.http.transport import HttpStream
from mooring.kit.clock import Clock
from mooring.serving.http.listener import HttpListener
from mooring.serving.http.request import BodyTooLargeError, Request
from mooring.serving.http.response import Response, Stream
from mooring.serving.pages import PageRequest, PageResponse, failed, not_found, text
from mooring.serving.server import BODY_BYTES_MAX, Page

FORWARD_S_MAX = 10.0
"""How long the worker process may take for a page: a busy scheduler yields every few milliseconds."""
PLAN_S_MAX = 55.0
"""How long it may take for a plan, which may wait for other plans."""
PLAN_PATHS = frozenset({"/plan", "/console/data/fits", "/console/data/plan"})

SCHEDULER_PATHS = (
    *("/console/data/about", "/console/data/explain", "/console/data/fits", "/console/data/history"),
    *("/console/data/learn", "/console/data/manifest", "/console/data/node", "/console/data/nodes"),
    *("/console/data/nodes/version", "/console/data/past/nodes"),
    *("/console/data/overview", "/console/data/past", "/console/data/past/at", "/console/data/plan"),
    *("/console/data/pod", "/console/data/queue", "/console/data/workloads"),
    *("/console/do/pause", "/console/do/resume", "/console/do/step"),
    *("/debug/cache", "/debug/decisions", "/debug/queue", "/metrics", "/metrics/resources", "/plan"),
)
"""The pages of the scheduler that the API server serves. Its own /metrics contains those of the scheduler."""

logger = logging.getLogger(__name__)


def pages_listener(pages: Mapping[str, Page], clock: Clock, path: Path) -> HttpListener:
    """Serves the pages on a Unix socket, inside of an `async with`. The socket of an earlier process is replaced."""
    with suppress(FileNotFoundError):
        path.unlink()

    async def serve(request: Request) -> Response | Stream:
        page = pages.get(request.path)
        query = {name: list(values) for name, values in request.query.items()}
        try:
            body = await request.read(BODY_BYTES_MAX)
        except BodyTooLargeError:
            return Response(413, f"\n\nmore than {BODY_BYTES_MAX} bytes were sent\n".encode())
        response = await _answer(page, PageRequest(request.method, request.path, query, body=body))
        named, requested = (
            ",".join(sorted(namespaces)) for namespaces in (response.namespaces, response.requested_namespaces)
        )
        return Response(response.code, f"{named}\n{requested}\n".encode() + response.body, response.content_type)

    return HttpListener(serve, clock, unix_path=str(path), ends_with_client=True)


async def _answer(page: Page | None, request: PageRequest) -> PageResponse:
    if page is None:
        return not_found()
    try:
        response = page(request)
        return await response if inspect.isawaitable(response) else response
    except Exception as error:
        logger.error("%s failed", request.path, exc_info=error)
        return failed(str(error) or type(error).__name__)


def forwarding_pages(paths: Iterable[str], socket_path: Path) -> dict[str, Page]:
    """Pages that the worker process answers."""

    async def forward(request: PageRequest) -> PageResponse:
        try:
            async with asyncio.timeout(PLAN_S_MAX if request.path in PLAN_PATHS else FORWARD_S_MAX):
                return await _forwarded(request, str(socket_path))
        except (OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            return text(f"the worker process does not answer, it starts or has failed: {why}\n", 503)

    return dict.fromkeys(paths, forward)


async def _forwarded(request: PageRequest, socket_path: str) -> PageResponse:
    query = urlencode(request.query, doseq=True)
    url = HttpUrl.parse(f"http://localhost{request.path}{'?' if query else ''}{query}")
    headers = (("Connection", "close"), ("Content-Type", "application/json"))
    wire = await connect_unix(socket_path)
    try:
        stream = HttpStream(wire, await wire.open_stream(encode_request(request.method, url, headers, request.body)))
        named, requested, body = (await stream.read_all()).split(b"\n", 2)
        return PageResponse(
            body,
            stream.code,
            stream.headers.get("Content-Type", ""),
            namespaces=_names_in(named),
            requested_namespaces=_names_in(requested),
        )
    finally:
        wire.abort()


def _names_in(line: bytes) -> frozenset[str]:
    return frozenset(line.decode().split(",")) if line else frozenset()
