"""One request: what its head says, and its body when somebody wants it.

Comes in   a head that has been read
Goes out   a method, a path, a query, fields by their names in lower case; the body; or the beginning of a stream

 1. Names are bytes in lower case, as the parser hands them out; values become texts when somebody asks for them, which
    is for a few of them only.
 2. What a client may say twice is kept twice; `header` is the first.
 3. A parameter that cannot be read (a broken escape, a semicolon) is left out, and the others count, as in Go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from mooring.serving.http.body import Body

if TYPE_CHECKING:
    from mooring.serving.http.connection import Connection
    from mooring.serving.http.response import Stream

QUERIES_KEPT_MAX = 256
_UNREADABLE = re.compile(r";|%(?![0-9A-Fa-f]{2})")

Fields = list[tuple[bytes, bytes]]


class Request:
    """One request."""

    __slots__ = (
        "_fields",
        "_first",
        "_query",
        "body",
        "connection",
        "has_begun",
        "is_kept_alive",
        "is_old",
        "is_told_to_send",
        "method",
        "path",
    )

    connection: Connection
    """Whom it came from; told by the connection itself."""

    def __init__(
        self, method: str, path: str, query: str, fields: Fields, *, is_old: bool, is_kept_alive: bool
    ) -> None:
        """`is_old`: of HTTP/1.0."""
        self.method = method
        self.path = path
        """As it was sent, escapes and all."""
        self.is_old = is_old
        self.is_kept_alive = is_kept_alive
        self.body: Body | None = None
        self.has_begun = False
        """Whether some of the answer is on its way."""
        self.is_told_to_send = False
        """Whether a client that asked was told to send the body."""
        self._query = query
        self._fields = fields
        self._first = dict(reversed(fields))

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        return _parsed(self._query) if self._query else _NO_QUERY

    # ------------------------------------------------------------------------------------------------ fields

    def has(self, name: bytes) -> bool:
        return name in self._first

    def header(self, name: bytes) -> str:
        """The first value of a field; empty if there is none."""
        value = self._first.get(name)
        return "" if value is None else value.decode("utf-8", "surrogateescape")

    def headers(self, prefix: bytes = b"") -> list[tuple[str, str]]:
        """All fields whose names begin like this."""
        return [
            (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
            for name, value in self._fields
            if name.startswith(prefix)
        ]

    @property
    def header_bytes(self) -> int:
        return sum([len(name) + len(value) for name, value in self._fields])

    # -------------------------------------------------------------------------------------------- connection

    @property
    def holds_body_back(self) -> bool:
        """Whether the client waits to be told to send the body."""
        if self.body is None or self.body.is_complete or self.is_told_to_send or self.is_old:
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
        """Begin an answer that goes on. Raises `ConnectionError` if the client is gone."""
        return self.connection.stream(self, code, content_type, tuple(headers))

    @property
    def certificate(self) -> bytes | None:
        """What the client has shown (DER); it was verified when the connection was made."""
        return self.connection.certificate


_NO_QUERY: Mapping[str, Sequence[str]] = {}


@lru_cache(maxsize=QUERIES_KEPT_MAX)
def _parsed(query: str) -> Mapping[str, Sequence[str]]:
    """Kept: clients ask the same again and again, with other paths."""
    parameters: dict[str, list[str]] = {}
    if _UNREADABLE.search(query):
        query = "&".join([part for part in query.split("&") if not _UNREADABLE.search(part)])
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(name, []).append(value)
    return parameters
