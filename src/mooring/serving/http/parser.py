"""The request parser: bytes of a client to requests, with llhttp.

Input: pieces of bytes. Output: each request when its head is complete; bodies are filled as they arrive. Or one
`ParseFailure`, after which nothing is parsed.

 1. llhttp enforces the rules of HTTP strictly. It has no limits: those are in `ServerLimits`.
 2. Trailers after a chunked body are ignored.
 3. A request with `Upgrade` is handled as if it had none. llhttp stops there and skips the body; a new parser
    continues, fed with a head without `Upgrade`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from string import ascii_letters, digits
from urllib.parse import urlsplit

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserInvalidMethodError,
    HttpParserUpgrade,
    HttpRequestParser,
)

from mooring.serving.http.request import Body, BrokenBodyError, Fields, Request

_METHODS = {name.encode(): name for name in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")}
_IN_HOSTS = (ascii_letters + digits + "!$%&'()*+,-.:;=[]_~").encode()
"""Characters that Go's servers accept in Host."""
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_REQUEST_LINE = re.compile(rb"^([A-Za-z]+) /\S* HTTP/1", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of a connection before its client is authenticated, each with the behaviour beyond it."""

    handshake_s_max: float = 10.0
    """For the TLS handshake. Beyond it the connection is closed."""
    handshakes_max: int = 1_000
    """Connections that have not completed the handshake. Beyond it the oldest of them is closed."""
    target_bytes_max: int = 16 * 1024
    """Path with query. Beyond it: 431, and the connection is closed."""
    field_bytes_max: int = 64 * 1024
    """One header field. Beyond it: 431, and the connection is closed."""
    fields_max: int = 128
    """Header fields. Beyond it: 400, and the connection is closed."""
    body_ahead_bytes_max: int = 64 * 1024
    """Buffered body without a reader. Beyond it the connection stops reading."""
    requests_ahead_max: int = 8
    """Pipelined requests. Beyond it the connection stops reading."""
    idle_s_max: float = 75.0
    """Time without a complete head after the last response, without progress of sending it, or for a body that a
    handler waits for. Beyond it the connection is closed."""
    linger_s_max: float = 1.0
    """Time for the rest of an unread body. Beyond it the connection is closed."""
    check_interval_s: float = 1.0
    """The interval of timeout checks. The two limits above are kept to within twice this."""
    stop_s_max: float = 5.0
    """Time for requests in progress when the server stops. Beyond it they are aborted."""

    @property
    def head_bytes_max(self) -> int:
        """The limit on an incomplete head."""
        return self.target_bytes_max + self.field_bytes_max


class ParseFailure(Enum):
    """Why no more requests are parsed."""

    UNREADABLE = auto()
    TOO_LONG = auto()
    UNKNOWN_METHOD = auto()


class _ParseError(Exception):
    """Raised in callbacks of llhttp."""

    def __init__(self, failure: ParseFailure) -> None:
        super().__init__(failure.name)
        self.failure = failure


class RequestParser:
    """Parses the requests of one connection."""

    __slots__ = (
        "_fields",
        "_has_progressed",
        "_is_in_head",
        "_is_primed",
        "_is_upgrade",
        "_limits",
        "_parser",
        "_request",
        "_take",
        "_target",
        "_unfinished_bytes",
        "is_over",
    )

    def __init__(self, limits: ServerLimits, take: Callable[[Request | ParseFailure], None]) -> None:
        self._limits = limits
        self._take = take
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self._target = b""
        self._fields: Fields = []
        self._request: Request | None = None  # the request whose body is being received
        self._is_in_head = False
        self._has_progressed = False
        self._is_upgrade = False
        self._is_primed = False
        self._unfinished_bytes = 0
        self.is_over = False
        """Whether further bytes are ignored."""

    @property
    def is_ahead(self) -> bool:
        """Whether the buffer of the current body is full."""
        request = self._request
        return request is not None and request.body is not None and request.body.is_ahead

    def feed(self, data: bytes) -> None:
        """Parse more bytes."""
        if self._parser is None or self.is_over:
            return
        self._has_progressed = False
        try:
            self._parse(data)
        except HttpParserError as error:
            self._fail(_failure_of(error, data))
            return
        if self._is_in_head or self._request is not None:
            self._count_unfinished(data)

    def close(self) -> None:
        """Stop parsing."""
        if self._request is not None and self._request.body is not None:
            self._request.body.fail(ConnectionResetError("the connection was closed"))
        self.is_over = True
        # Break the reference cycle of parser and connection.
        self._request = self._parser = None
        self._take = _ignore

    def _parse(self, data: bytes) -> None:
        while data and self._parser is not None:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                self._decline()
                data = data[upgrade.args[0] :]
            else:
                return

    def _decline(self) -> None:
        self._is_upgrade = False
        request = self._request
        if request is None or request.body is None:
            self.on_message_complete()
            return
        length = request.body.length
        framing = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
        ending = b"" if request.is_kept_alive else b"Connection: close\r\n"
        self._is_primed = True
        # A new parser: one that expects the end of the connection ignores further input.
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b%b\r\n\r\n" % (ending, framing))
        self._is_primed = False

    def _count_unfinished(self, data: bytes) -> None:
        """Limits a field that never ends: llhttp buffers it however long it is.

        The piece in which the previous element ended does not count, because the position of its end is unknown.
        """
        self._unfinished_bytes = 0 if self._has_progressed else self._unfinished_bytes + len(data)
        if self._unfinished_bytes > self._limits.head_bytes_max:
            self._fail(ParseFailure.TOO_LONG)

    def _fail(self, failure: ParseFailure) -> None:
        if self.is_over:
            return  # bytes after the last request are ignored
        self.is_over = True
        if self._request is None:
            self._take(failure)
        elif self._request.body is not None:
            self._request.body.fail(BrokenBodyError("the body is malformed"))

    # Callbacks of llhttp

    def on_message_begin(self) -> None:
        self._has_progressed = True
        self._is_in_head = not self._is_primed

    def on_url(self, piece: bytes) -> None:
        if self._is_primed:
            return
        self._target += piece
        if len(self._target) > self._limits.target_bytes_max:
            raise _ParseError(ParseFailure.TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return
        self._fields.append((name.lower(), value))
        if len(value) > self._limits.field_bytes_max:
            raise _ParseError(ParseFailure.TOO_LONG)
        if len(self._fields) > self._limits.fields_max:
            raise _ParseError(ParseFailure.UNREADABLE)

    def on_headers_complete(self) -> None:
        if self._is_primed:
            return
        parser = self._parser
        assert parser is not None
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise _ParseError(ParseFailure.UNREADABLE)
        method = parser.get_method()
        path, query = _path_and_query(method, self._target)
        request = self._request = Request(
            _METHODS.get(method) or method.decode("ascii"),
            path,
            query,
            self._fields,
            is_old=version == "1.0",
            is_kept_alive=parser.should_keep_alive(),
        )
        self._check(request)
        self._is_upgrade = parser.should_upgrade()
        self._is_in_head, self._has_progressed = False, True
        self._target, self._fields = b"", []
        if request.has(b"transfer-encoding"):
            request.body = Body(None, self._limits.body_ahead_bytes_max)
        elif request.has(b"content-length") and (length := int(request.header(b"content-length"))):
            request.body = Body(length, self._limits.body_ahead_bytes_max)
        self._take(request)

    def on_body(self, piece: bytes) -> None:
        body = self._request.body if self._request is not None else None
        assert body is not None, "a body that no head has announced"
        self._has_progressed = True
        body.feed(piece)

    def on_message_complete(self) -> None:
        request = self._request
        if self._is_upgrade or request is None:
            return
        if request.body is not None:
            request.body.end()
        self._request = None
        self.is_over = not request.is_kept_alive

    def _check(self, request: Request) -> None:
        """Checks that llhttp does not make, or makes only after the head. Chunked encoding in HTTP/1.0 is rejected: a
        proxy would find another end of the request."""
        hosts = [value for name, value in self._fields if name == b"host"]
        has_host = not hosts[0].translate(None, _IN_HOSTS) if len(hosts) == 1 else not hosts and request.is_old
        encoding = request.header(b"transfer-encoding").lower()
        has_end = not encoding or (encoding == "chunked" and not request.is_old)
        if not has_host or not has_end:
            self._request = None
            raise _ParseError(ParseFailure.UNREADABLE)


def _ignore(parsed: Request | ParseFailure) -> None:
    pass


def _path_and_query(method: bytes, target: bytes) -> tuple[str, str]:
    text = target.partition(b"#")[0].decode("ascii")
    if not text.startswith("/") and not (text == "*" and method == b"OPTIONS"):
        text = _without_host(text)
    path, _, query = text.partition("?")
    if "%" in path and _BAD_ESCAPE.search(path):
        raise _ParseError(ParseFailure.UNREADABLE)
    return path, query


def _without_host(target: str) -> str:
    """The path of a request target in absolute form."""
    try:
        parts = urlsplit(target)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _ParseError(ParseFailure.UNREADABLE) from None
    if not is_address:
        raise _ParseError(ParseFailure.UNREADABLE)
    return (parts.path or "/") + ("?" + parts.query if parts.query else "")


def _failure_of(error: HttpParserError, data: bytes) -> ParseFailure:
    if isinstance(error, HttpParserCallbackError):
        cause = error.__context__
        if not isinstance(cause, _ParseError):
            raise error
        return cause.failure
    if isinstance(error, HttpParserInvalidMethodError):
        methods = _REQUEST_LINE.findall(data)
        if any(method not in _METHODS for method in methods):
            return ParseFailure.UNKNOWN_METHOD
    return ParseFailure.UNREADABLE
