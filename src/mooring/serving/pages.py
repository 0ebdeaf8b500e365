"""Requests and responses of pages, the error responses of Kubernetes, and what callers may read of a response.

A page that names objects (`NAMESPACE/NAME`) lists their namespaces in its response. The server that knows the caller
then masks the names in namespaces where the caller may not list pods: `hidden/1`, `hidden/2`. Within a response the
same name gets the same mask. A request that names an object in such a namespace is forbidden: its response would tell
whether the object exists. A long body is read in pieces, between which other requests go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mooring.kit.clock import Clock

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BINARY = "application/octet-stream"
METRICS = "text/plain; version=0.0.4; charset=utf-8"

DIGITS_MAX = 9
"""Digits of a number in a request."""


MayRead = Callable[[str], Awaitable[bool]]
"""Whether the caller may list the pods of a namespace; of all, if the namespace is empty."""


@dataclass(frozen=True, slots=True)
class PageResponse:
    """The response to a request."""

    body: bytes
    code: int = 200
    content_type: str = TEXT
    file_name: str = ""
    """For downloads."""
    stream: AsyncGenerator[bytes, None] | None = None
    """A body of unknown length, instead of `body`."""
    namespaces: frozenset[str] = frozenset()
    """The namespaces of the objects that the body names."""
    requested_namespaces: frozenset[str] = frozenset()
    """The namespaces of the objects that the request names."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers besides those of every response."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The part of a request that pages read."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: bytes = b""
    may_read: MayRead | None = None
    """For pages that look up what the request names. Pages of other processes do not have it."""

    def has(self, name: str) -> bool:
        return name in self.query

    def first(self, name: str) -> str:
        """The first value of a parameter of the query; empty if it is absent."""
        values = self.query.get(name)
        return values[0] if values else ""

    def number(self, name: str, default: float) -> float:
        """A number of the query; the default if it is absent or invalid."""
        try:
            return float(self.query[name][0])
        except (KeyError, IndexError, ValueError):
            return default


_NAME = re.compile(rb"(?<![A-Za-z0-9._/-])([a-z0-9][a-z0-9-]*)/([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)")
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9-]*")
_NO_NAME = re.compile(rb"[^A-Za-z0-9._/-]")
PIECE_BYTES = 64 * 1024
"""Searching so much for names takes a few milliseconds."""


def namespaces_of(keys: Iterable[str]) -> frozenset[str]:
    """The namespaces of keys (`NAMESPACE/NAME`). A namespace that cannot exist has no objects to hide."""
    named = {key.partition("/")[0] for key in keys if "/" in key}
    return frozenset(namespace for namespace in named if _NAMESPACE.fullmatch(namespace))


async def named_namespaces(body: bytes, namespaces: Collection[str], clock: Clock) -> frozenset[str]:
    """The namespaces among `namespaces` of which the body names objects."""
    named: set[str] = set()
    async for piece in _pieces(body, clock):
        named.update(found[1].decode() for found in _NAME.finditer(piece))
    return frozenset(named.intersection(namespaces))


async def _pieces(body: bytes, clock: Clock) -> AsyncIterator[bytes]:
    """The body in pieces that cut no name in two. Others run between them."""
    start = 0
    while start < len(body):
        cut = _NO_NAME.search(body, start + PIECE_BYTES)
        end = cut.start() if cut is not None else len(body)
        yield body[start:end]
        start = end
        if start < len(body):
            await clock.wait(0)


async def masked(request: PageRequest, response: PageResponse, may_read: MayRead, clock: Clock) -> PageResponse:
    """The response as the caller may see it.

    A filter is applied before names are masked, and the number of matches would reveal hidden names: it needs the
    permission to list the pods of all namespaces.
    """
    is_filtered = any(request.query.get("filter", ()))
    requested = response.requested_namespaces
    if not (response.namespaces or requested or is_filtered) or await may_read(""):
        return response
    if is_filtered:
        return text("forbidden: a filter needs the permission to list the pods of all namespaces\n", 403)
    for namespace in sorted(requested):
        if not await may_read(namespace):
            return text(f'forbidden: you cannot list pods in the namespace "{namespace}"\n', 403)
    hidden = {namespace for namespace in sorted(response.namespaces) if not await may_read(namespace)}
    masks: dict[bytes, bytes] = {}

    def mask(found: re.Match[bytes]) -> bytes:
        if found[1].decode() not in hidden:
            return found[0]
        return masks.setdefault(found[0], b"hidden/%d" % (len(masks) + 1))

    if not hidden:
        return response
    pieces = [_NAME.sub(mask, piece) async for piece in _pieces(response.body, clock)]
    return replace(response, body=b"".join(pieces))


def is_whole_number(found: str) -> bool:
    """Whether `int` reads it as a usual number: Python reads digits of all scripts, and fails on 4,300 of them."""
    return found.isascii() and found.isdecimal() and len(found) <= DIGITS_MAX


def text(content: str, code: int = 200) -> PageResponse:
    return PageResponse(content.encode(), code)


def as_json(content: object) -> PageResponse:
    return PageResponse(json.dumps(content, ensure_ascii=False).encode(), content_type=JSON)


def naming_pods(document: Mapping[str, Any], *lists: str) -> PageResponse:
    """A document as JSON that names pods in these lists, also of namespaces that no longer exist."""
    namespaces = {entry["pod"].partition("/")[0] for name in lists for entry in document[name]}
    return replace(as_json(document), namespaces=frozenset(namespaces))


def not_found() -> PageResponse:
    return text("404 page not found\n", 404)


def unauthorized() -> PageResponse:
    return _status("Unauthorized", "Unauthorized", 401)


def forbidden(user: str, verb: str, path: str, reason: str = "") -> PageResponse:
    message = f'forbidden: User "{_harmless(user)}" cannot {_harmless(verb)} path "{_harmless(path)}"'
    return _status(f"{message}: {reason}" if reason else message, "Forbidden", 403, details={})


def refused(message: str) -> PageResponse:
    return _status(message, "Forbidden", 403, details={})


def method_not_allowed() -> PageResponse:
    return _status(
        "the server does not allow this method on the requested resource", "MethodNotAllowed", 405, details={}
    )


def failed(message: str) -> PageResponse:
    return _status(f"Internal error occurred: {message}", "InternalError", 500)


def _status(message: str, reason: str, code: int, details: object | None = None) -> PageResponse:
    status: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details is not None:
        status["details"] = details
    status["code"] = code
    return PageResponse(json.dumps(status, indent=2).encode(), code, JSON)


def _harmless(text: str) -> str:
    """Escapes HTML, as Kubernetes does."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
