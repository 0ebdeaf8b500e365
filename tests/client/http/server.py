"""A small API server for tests: the HTTP of Kubernetes in front of a client, with faults on demand.

    async with HttpServer(client) as server:
        server.faults = [Refuse(503), Reset(), CutWatch(after=2, how=Cut.HALF_A_LINE)]
        HttpClient(Connection(server.url), ...)

Input: requests with the paths of Kubernetes. Output: the responses of the client behind it: objects, Lists without the
kinds of their items, Status, lines of events.

 1. Each request takes the first fault that matches it; without one it is served.
 2. `requests` has all requests with their query, `headers` the headers of the last one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec
from aiohttp import web

from mooring.api.kinds import Kind, all_kinds
from mooring.client.errors import StatusError
from mooring.client.interface import Change, Client, Deletion, Listing, PatchForm, Propagation, Selection, WatchEvent

_KINDS = {(kind.api_version, kind.plural): kind for kind in all_kinds()}
_STATUS_NAMES = {400: "BadRequest", 404: "NotFound", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


class Cut(Enum):
    """How a watch ends."""

    ORDERLY = auto()
    RESET = auto()
    HALF_A_LINE = auto()
    """The first half of the next event, and then a complete response."""
    HALF_A_LINE_RESET = auto()
    EXPIRED_EVENT = auto()
    FAILED_EVENT = auto()
    GARBAGE = auto()


@dataclass(frozen=True)
class Refuse:
    """The request is rejected with a Status or with the response of a proxy."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    method: str = ""
    containing: str = ""
    """Only for requests whose URL contains this text."""


@dataclass(frozen=True)
class Reset:
    """The connection breaks, before or after the request is carried out."""

    is_carried_out: bool = False
    method: str = ""


@dataclass(frozen=True)
class Stall:
    """No response until the server stops."""

    method: str = ""


@dataclass(frozen=True)
class CutWatch:
    """A watch is served and ends after a number of events."""

    after: int
    how: Cut
    method: str = "WATCH"


ServerFault: TypeAlias = Refuse | Reset | Stall | CutWatch


class HttpServer:
    """Serves one client on a port of this machine."""

    def __init__(self, client: Client, *, security: ssl.SSLContext | None = None, can_watch_all: bool = False) -> None:
        self._client = client
        self._security = security
        self._can_watch_all = can_watch_all
        self._over = asyncio.Event()
        self._peers: set[object] = set()
        self.port = 0
        self.url = ""
        self.requests: list[str] = []
        self.headers: Mapping[str, str] = {}
        self.tokens: set[str] = set()
        """If not empty, a request needs one of these bearer tokens."""
        self.faults: list[ServerFault] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start to listen; a restart uses the same port."""
        self._over.clear()
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._security).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._security else 'http'}://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Close all connections."""
        self._over.set()
        await self._runner.cleanup()

    @property
    def connections(self) -> int:
        """The number of connections since the start."""
        return len(self._peers)

    # ----------------------------------------------------------------------------------------------- requests

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        is_watch = request.query.get("watch") == "true"
        self.requests.append(f"{'WATCH' if is_watch else request.method} {request.path_qs}")
        self.headers = request.headers
        if request.transport is not None:
            self._peers.add(request.transport.get_extra_info("peername"))
        fault = self._next_fault(self.requests[-1])
        match fault:
            case Refuse():
                body = fault.body if fault.body is not None else _status(StatusError("planned", code=fault.code))
                return web.Response(
                    status=fault.code, body=body, content_type=fault.content_type, headers=fault.headers
                )
            case Stall():
                await self._over.wait()
            case Reset(is_carried_out):
                if is_carried_out:
                    await self._answered(request)
                _reset(request)
        if self.tokens and request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return _refusal(StatusError("Unauthorized", code=401, reason="Unauthorized"))
        if is_watch:
            return await self._watch(request, fault if isinstance(fault, CutWatch) else None)
        return await self._answered(request)

    def _next_fault(self, asked: str) -> ServerFault | None:
        for index, fault in enumerate(self.faults):
            containing = fault.containing if isinstance(fault, Refuse) else ""
            if asked.startswith(fault.method) and containing in asked:
                return self.faults.pop(index)
        return None

    async def _answered(self, request: web.Request) -> web.Response:
        try:
            code, answer = await self._carried_out(request)
        except StatusError as error:
            return _refusal(error)
        return web.Response(status=code, body=answer, content_type="application/json")

    async def _carried_out(self, request: web.Request) -> tuple[int, bytes]:
        client, (kind, namespace, name, part) = self._client, _address(request.path)
        body = await request.read()
        plain: Any = msgspec.json.decode(body) if body else {}
        match request.method:
            case "GET" if name:
                return 200, await client.get(kind, namespace, name)
            case "GET":
                return 200, _list(kind, await self._list(kind, namespace, request.query))
            case "POST" if part == "binding":
                await client.bind(namespace, name, plain["metadata"].get("uid", ""), plain["target"]["name"])
                return 201, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
            case "POST":
                return 201, await client.create(kind, namespace, plain)
            case "PUT":
                return 200, await client.update(kind, namespace, name, plain, subresource=part)
            case "PATCH":
                form = PatchForm(request.content_type)
                return 200, await client.patch(kind, namespace, name, plain, form=form, subresource=part)
            case _:
                await client.delete(kind, namespace, name, _deletion(plain))
                return 200, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}'

    async def _list(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Listing:
        return await self._client.list(
            kind,
            _selection(namespace, query),
            limit=int(query.get("limit", 0)),
            continue_token=query.get("continue", ""),
            revision="" if query.get("resourceVersionMatch") == "NotOlderThan" else query.get("resourceVersion", ""),
        )

    # ------------------------------------------------------------------------------------------------ watches

    async def _watch(self, request: web.Request, cut: CutWatch | None) -> web.StreamResponse:
        kind, namespace, _, _ = _address(request.path)
        since, initial = request.query.get("resourceVersion", ""), b""
        if request.query.get("sendInitialEvents") == "true":
            if not self._can_watch_all:
                return _refusal(StatusError("sendInitialEvents: Forbidden", code=422, reason="Invalid"))
            listing = await self._list(kind, namespace, {})
            since, initial = listing.revision, _initial_lines(kind, listing)
        try:
            watch = self._client.watch(kind, _selection(namespace, request.query), since=since)
            await watch.__aenter__()
        except StatusError as error:
            return _refusal(error)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        try:
            await response.prepare(request)
            await response.write(initial)
            told, rest = 0, []
            while cut is None or told < cut.after:
                batch = list(await watch.next_batch())
                if cut is not None:
                    batch, rest = batch[: cut.after - told], batch[cut.after - told :]
                told += sum(event.change is not Change.BOOKMARK for event in batch)
                await response.write(b"".join(_line(event) for event in batch))
            half = _line((rest or await watch.next_batch())[0])[:-40] if "HALF" in cut.how.name else b""
            await self._end(request, response, cut.how, half)
        finally:
            await watch.__aexit__(None, None, None)
        return response

    async def _end(self, request: web.Request, response: web.StreamResponse, how: Cut, half: bytes) -> None:
        match how:
            case Cut.HALF_A_LINE | Cut.HALF_A_LINE_RESET:
                await response.write(half)
            case Cut.EXPIRED_EVENT:
                await response.write(_error_line(StatusError("too old resource version", code=410, reason="Expired")))
            case Cut.FAILED_EVENT:
                await response.write(_error_line(StatusError("etcd is ill", code=500, reason="InternalError")))
            case Cut.GARBAGE:
                await response.write(b"<html>a proxy has lost its patience</html>\n")
        if "RESET" in how.name:
            _reset(request)
        await response.write_eof()


# --- formats of Kubernetes ---------------------------------------------------------------------------------------


def _address(path: str) -> tuple[Kind, str, str, str]:
    steps = path.strip("/").split("/")
    steps = steps[1:]
    api_version = steps.pop(0)
    if path.startswith("/apis/"):
        api_version = f"{api_version}/{steps.pop(0)}"
    namespace = ""
    if steps[0] == "namespaces" and len(steps) > 2:
        namespace, steps = steps[1], steps[2:]
    kind = _KINDS[api_version, steps[0]]
    name, part = (*steps[1:], "", "")[:2]
    return kind, namespace, name, part


def _selection(namespace: str, query: Mapping[str, str]) -> Selection:
    return Selection(namespace, query.get("labelSelector", ""), query.get("fieldSelector", ""))


def _deletion(options: Mapping[str, Any]) -> Deletion:
    preconditions = options.get("preconditions", {})
    policy = options.get("propagationPolicy")
    return Deletion(
        grace_s=options.get("gracePeriodSeconds"),
        uid=preconditions.get("uid", ""),
        revision=preconditions.get("resourceVersion", ""),
        propagation=Propagation(policy) if policy else None,
    )


def _list(kind: Kind, listing: Listing) -> bytes:
    head = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()
    metadata: dict[str, object] = {"resourceVersion": listing.revision}
    if listing.continue_token:
        metadata["continue"] = listing.continue_token
    if listing.remaining is not None:
        metadata["remainingItemCount"] = listing.remaining
    return b'{"kind":"%bList","apiVersion":"%b","metadata":%b,"items":[%b]}\n' % (
        kind.kind.encode(),
        kind.api_version.encode(),
        msgspec.json.encode(metadata),
        b",".join(b"{" + item.removeprefix(head) for item in listing.items),
    )


def _line(event: WatchEvent) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event.change.value.encode(), event.raw)


def _initial_lines(kind: Kind, listing: Listing) -> bytes:
    lines = [b'{"type":"ADDED","object":%b}\n' % item for item in listing.items]
    bookmark = {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": {"resourceVersion": listing.revision, "annotations": {"k8s.io/initial-events-end": "true"}},
    }
    lines.append(b'{"type":"BOOKMARK","object":%b}\n' % msgspec.json.encode(bookmark))
    return b"".join(lines)


def _error_line(error: StatusError) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % _status(error)


def _status(error: StatusError) -> bytes:
    causes = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in error.causes]
    details: dict[str, object] = {**error.details, "causes": causes}
    if error.retry_after_s is not None:
        details["retryAfterSeconds"] = int(error.retry_after_s)
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason or _STATUS_NAMES.get(error.code, ""),
        "details": details,
        "code": error.code,
    }
    return msgspec.json.encode(status)


def _refusal(error: StatusError) -> web.Response:
    return web.Response(status=error.code, body=_status(error), content_type="application/json")


def _reset(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def sent(asked: Sequence[str], start: str) -> list[str]:
    """The requests that begin with a text."""
    return [request for request in asked if request.startswith(start)]
