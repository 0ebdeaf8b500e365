"""One request: method, path, query, headers, body.

1. Header names are lower-case bytes, as the parser returns them. Values are decoded when they are read, because few
   are.
2. Repeated headers are kept; `header` returns the first.
3. A query parameter that cannot be parsed (invalid escape, semicolon) is dropped, as in Go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import parse_qsl

from mooring.serving.http.body import Body
from mooring.serving.http.response import Headers, Stream

QUERIES_CACHED_MAX = 256
_UNREADABLE = re.compile(r";|%(?![0-9A-Fa-f]{2})")

Fields = list[tuple[bytes, bytes]]


class RequestConnection(Protocol):
    """The connection of a request, as its handler uses it."""

    on_lost: Callable[[], None] | None
    """Called when the client disconnects."""

    @property
    def is_open(self) -> bool: ...

    @property
    def backlog_bytes(self) -> int: ...

    @property
    def certificate(self) -> bytes | None: ...

    def stream(self, request: Request, code: int, content_type: str, headers: Headers) -> Stream: ...

    def wants_body(self, request: Request) -> None: ...

    def has_body(self) -> None: ...

    def abort(self) -> None: ...


class Request:
    """One request."""

    __slots__ = (
        "_fields",
        "_first",
        "_query",
        "body",
        "connection",
        "has_begun",
        "is_continue_sent",
        "is_kept_alive",
        "is_old",
        "method",
        "path",
    )

    connection: RequestConnection
    """Set by the connection."""

    def __init__(
        self, method: str, path: str, query: str, fields: Fields, *, is_old: bool, is_kept_alive: bool
    ) -> None:
        """`is_old`: HTTP/1.0."""
        self.method = method
        self.path = path
        """As sent by the client, with escapes."""
        self.is_old = is_old
        self.is_kept_alive = is_kept_alive
        self.body: Body | None = None
        self.has_begun = False
        """Whether a part of the response was sent."""
        self.is_continue_sent = False
        """Whether `100 Continue` was sent."""
        self._query = query
        self._fields = fields
        self._first = dict(reversed(fields))

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        return _parsed(self._query) if self._query else _NO_QUERY

    # Headers

    def has(self, name: bytes) -> bool:
        return name in self._first

    def header(self, name: bytes) -> str:
        """The first value of a header; empty if it is absent."""
        value = self._first.get(name)
        return "" if value is None else value.decode("utf-8", "surrogateescape")

    def headers(self, prefix: bytes = b"") -> list[tuple[str, str]]:
        """All headers whose names start with the prefix."""
        return [
            (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
            for name, value in self._fields
            if name.startswith(prefix)
        ]

    @property
    def header_bytes(self) -> int:
        return sum([len(name) + len(value) for name, value in self._fields])

    # Connection

    @property
    def holds_body_back(self) -> bool:
        """Whether the client waits for `100 Continue`."""
        if self.body is None or self.body.is_complete or self.is_continue_sent or self.is_old:
            return False
        return self.header(b"expect").lower() == "100-continue"

    async def read(self, bytes_max: int) -> bytes:
        """The whole body. Raises `BodyTooLargeError`, or `ConnectionError` if the client is gone."""
        body = self.body
        if body is None:
            return b""
        body.expect(bytes_max)
        if body.is_complete:
            return await body.read()
        self.connection.wants_body(self)
        try:
            return await body.read()
        finally:
            self.connection.has_body()

    def stream(self, code: int, content_type: str, headers: Sequence[tuple[str, str]] = ()) -> Stream:
        """Begin a streamed response. Raises `ConnectionError` if the client is gone."""
        return self.connection.stream(self, code, content_type, tuple(headers))

    @property
    def certificate(self) -> bytes | None:
        """The client certificate (DER), verified by TLS."""
        return self.connection.certificate


_NO_QUERY: Mapping[str, Sequence[str]] = {}


@lru_cache(maxsize=QUERIES_CACHED_MAX)
def _parsed(query: str) -> Mapping[str, Sequence[str]]:
    """Cached: clients repeat the same queries with other paths."""
    parameters: dict[str, list[str]] = {}
    if _UNREADABLE.search(query):
        query = "&".join([part for part in query.split("&") if not _UNREADABLE.search(part)])
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(name, []).append(value)
    return parameters
