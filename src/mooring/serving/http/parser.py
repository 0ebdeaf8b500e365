"""The reader: bytes of a client, cut anywhere, into requests.

Comes in   pieces of bytes
Goes out   requests as soon as their heads are whole; their bodies are filled as they arrive. Or a `Refusal`, once:
           behind what is no request nothing can be found

 1. The rules of HTTP are llhttp's, and strict. It has no limits: those are ours, in words and in memory.
 2. Fields behind the last chunk of a body are not looked at.
 3. Whoever wants to speak something else (`Upgrade`) is heard as if he had not asked. llhttp stops there and skips the
    body; another parser goes on, which is told a head without the wish.
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

from mooring.serving.http.body import Body, BrokenBodyError
from mooring.serving.http.request import Fields, Request

_METHODS = {name.encode(): name for name in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")}
_IN_HOSTS = (ascii_letters + digits + "!$%&'()*+,-.:;=[]_~").encode()
"""What Go's servers let pass: not just what is in names."""
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_REQUEST_LINE = re.compile(rb"^([A-Za-z]+) /\S* HTTP/1", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a connection may do."""

    target_bytes_max: int = 16 * 1024
    """What is asked for, with its query. Answer beyond it: 431, and the connection is closed."""
    field_bytes_max: int = 64 * 1024
    """One field of a head. Answer beyond it: 431, and the connection is closed."""
    fields_max: int = 128
    """Fields of a head. Answer beyond it: 400, and the connection is closed."""
    body_ahead_bytes_max: int = 64 * 1024
    """Of a body that nobody has asked for yet. Beyond it nothing more is read from the connection."""
    requests_ahead_max: int = 8
    """Requests that wait for the answers before theirs. Beyond it nothing more is read from the connection."""
    idle_s_max: float = 75.0
    """Without a whole head since the last answer, or without taking any of it; for a body that somebody waits for.
    Beyond it the connection is closed."""
    linger_s_max: float = 1.0
    """For the rest of a body that nobody wanted. Beyond it the connection is closed."""
    look_s: float = 1.0
    """How often connections are looked at. The two limits before this one are kept to within twice as much."""
    stop_s_max: float = 5.0
    """For the requests in progress when the server stops. Beyond it they are cut off."""

    @property
    def head_bytes_max(self) -> int:
        """A head that has not come to its end by then will not be waited for."""
        return self.target_bytes_max + self.field_bytes_max


class Refusal(Enum):
    """Why there will be no more requests."""

    UNREADABLE = auto()
    TOO_LONG = auto()
    UNKNOWN_METHOD = auto()


class _RefusedError(Exception):
    """Leaves the parser's call-backs."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.name)
        self.refusal = refusal


class RequestReader:
    """Reads the requests of one connection."""

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

    def __init__(self, limits: HttpLimits, take: Callable[[Request | Refusal], None]) -> None:
        self._limits = limits
        self._take = take
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self._target = b""
        self._fields: Fields = []
        self._request: Request | None = None  # whose body comes
        self._is_in_head = False
        self._has_progressed = False
        self._is_upgrade = False
        self._is_primed = False
        self._unfinished_bytes = 0
        self.is_over = False
        """Whether nothing more is read: what comes is not looked at."""

    @property
    def is_ahead(self) -> bool:
        """Whether what comes is more than somebody has asked for."""
        request = self._request
        return request is not None and request.body is not None and request.body.is_ahead

    def feed(self, data: bytes) -> None:
        """Some more."""
        if self._parser is None or self.is_over:
            return
        self._has_progressed = False
        try:
            self._parse(data)
        except HttpParserError as error:
            self._refuse(_refusal_of(error, data))
            return
        if self._is_in_head or self._request is not None:
            self._count_unfinished(data)

    def close(self) -> None:
        """Nobody listens any more."""
        if self._request is not None and self._request.body is not None:
            self._request.body.fail(ConnectionResetError("the connection has ended"))
        self.is_over = True
        # The parser holds on to us, and we to the connection: nobody should have to look for such rings.
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
        # Another one: a parser to which the connection ends with this request hears nothing more.
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b%b\r\n\r\n" % (ending, framing))
        self._is_primed = False

    def _count_unfinished(self, data: bytes) -> None:
        """The parser keeps a field until it is whole, however long it is: bound what leads to nothing.

        Not from the first byte on: of a piece in which something ended, nobody knows where the rest begins.
        """
        self._unfinished_bytes = 0 if self._has_progressed else self._unfinished_bytes + len(data)
        if self._unfinished_bytes > self._limits.head_bytes_max:
            self._refuse(Refusal.TOO_LONG)

    def _refuse(self, refusal: Refusal) -> None:
        if self.is_over:
            return  # what follows a last request is nobody's
        self.is_over = True
        if self._request is None:
            self._take(refusal)
        elif self._request.body is not None:
            self._request.body.fail(BrokenBodyError("what comes is no body"))

    # ------------------------------------------------------------------------------- called back by the parser

    def on_message_begin(self) -> None:
        self._has_progressed = True
        self._is_in_head = not self._is_primed

    def on_url(self, piece: bytes) -> None:
        if self._is_primed:
            return
        self._target += piece
        if len(self._target) > self._limits.target_bytes_max:
            raise _RefusedError(Refusal.TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return
        self._fields.append((name.lower(), value))
        if len(value) > self._limits.field_bytes_max:
            raise _RefusedError(Refusal.TOO_LONG)
        if len(self._fields) > self._limits.fields_max:
            raise _RefusedError(Refusal.UNREADABLE)

    def on_headers_complete(self) -> None:
        if self._is_primed:
            return
        parser = self._parser
        assert parser is not None
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise _RefusedError(Refusal.UNREADABLE)
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
        """What llhttp lets pass, or notices only behind the head. Chunks of an old client are somebody's trick: no
        proxy before us that speaks HTTP/1.0 would find their end where we do."""
        hosts = [value for name, value in self._fields if name == b"host"]
        has_host = not hosts[0].translate(None, _IN_HOSTS) if len(hosts) == 1 else not hosts and request.is_old
        encoding = request.header(b"transfer-encoding").lower()
        has_end = not encoding or (encoding == "chunked" and not request.is_old)
        if not has_host or not has_end:
            self._request = None
            raise _RefusedError(Refusal.UNREADABLE)


def _ignore(found: Request | Refusal) -> None:
    pass


def _path_and_query(method: bytes, target: bytes) -> tuple[str, str]:
    text = target.partition(b"#")[0].decode("ascii")
    if not text.startswith("/") and not (text == "*" and method == b"OPTIONS"):
        text = _without_host(text)
    path, _, query = text.partition("?")
    if "%" in path and _BAD_ESCAPE.search(path):
        raise _RefusedError(Refusal.UNREADABLE)
    return path, query


def _without_host(target: str) -> str:
    """What a proxy would be asked for, as we would be."""
    try:
        parts = urlsplit(target)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _RefusedError(Refusal.UNREADABLE) from None
    if not is_address:
        raise _RefusedError(Refusal.UNREADABLE)
    return (parts.path or "/") + ("?" + parts.query if parts.query else "")


def _refusal_of(error: HttpParserError, data: bytes) -> Refusal:
    if isinstance(error, HttpParserCallbackError):
        cause = error.__context__
        if not isinstance(cause, _RefusedError):
            raise error
        return cause.refusal
    if isinstance(error, HttpParserInvalidMethodError):
        methods = _REQUEST_LINE.findall(data)
        if any(method not in _METHODS for method in methods):
            return Refusal.UNKNOWN_METHOD
    return Refusal.UNREADABLE
