"""Requests that violate HTTP, on a connection with pipelining, and the allowed answers; 0 for a closed connection."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mooring.kit.entropy import Entropy
from tests.cluster.running import ADMIN_TOKEN
from tests.waiting import LIMIT_S

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_TYPE = re.compile(rb"\r\ncontent-type: *([^\r;]*)", re.IGNORECASE)
_GZIP = re.compile(rb"\r\ncontent-encoding: *gzip", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FuzzAnswer:
    """The parts of a response that the fuzzer checks."""

    code: int
    content_type: str
    body: bytes
    is_stream: bool = False
    """Whether the response has no end: a watch."""
    is_compressed: bool = False


class Closed(Exception):
    """The server closed the connection; `answers` are the responses received before."""

    def __init__(self, answers: Sequence[FuzzAnswer]) -> None:
        super().__init__(f"closed after {len(answers)} answers")
        self.answers = answers


class Connection:
    """One TLS connection to the server."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        plain = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = tls.wrap_socket(plain, server_hostname="127.0.0.1")
        self._buffer = bytearray()
        self._must_close = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def exchange(self, requests: Sequence[tuple[str, bytes]]) -> list[FuzzAnswer]:
        """The answers to requests, each with its method. Raises `Closed`, or `TimeoutError` if the server hangs."""
        answers: list[FuzzAnswer] = []
        try:
            self.socket.sendall(b"".join([data for _, data in requests]))
            for method, _ in requests:
                answers.append(self.answer(method))
                if self._must_close:
                    raise Closed(answers)
        except (ConnectionError, ssl.SSLError):
            raise Closed(answers) from None
        return answers

    def answer(self, method: str, *, may_stream: bool = False) -> FuzzAnswer:
        """The next answer. Raises `ConnectionError` if there is none."""
        head = self._head()
        code = int(head[9:12])
        while code == 100:
            head = self._head()
            code = int(head[9:12])
        self._must_close = _CLOSE.search(head) is not None
        found = _TYPE.search(head)
        content_type = found[1].decode("latin-1") if found else ""
        if method == "HEAD" or code in (204, 304):
            return FuzzAnswer(code, content_type, b"")
        if _CHUNKED.search(head):
            if may_stream and code == 200:
                return FuzzAnswer(code, content_type, b"", is_stream=True)
            return FuzzAnswer(code, content_type, self._chunks())
        length = _LENGTH.search(head)
        body = self._take(int(length[1])) if length else b""
        return FuzzAnswer(code, content_type, body, is_compressed=_GZIP.search(head) is not None)

    def _head(self) -> bytes:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            self._more()
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        if not head.startswith(b"HTTP/"):
            raise AssertionError(f"an answer begins with {head[:200]!r}")
        return head

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._more()
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while True:
            while (end := self._buffer.find(b"\r\n")) < 0:
                self._more()
            size = int(self._buffer[:end], 16)
            del self._buffer[: end + 2]
            part = self._take(size + 2)
            if not size:
                return b"".join(parts)
            parts.append(part[:-2])

    def _more(self) -> None:
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        self._buffer += data


_HEAD = f"Host: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Type: application/json\r\n".encode()
_POST = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n" + _HEAD
_GET = b"GET /api/v1/namespaces HTTP/1.1\r\n" + _HEAD
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Rudeness:
    """Pieces of a request that violates HTTP, and the allowed status codes."""

    name: str
    pieces: tuple[bytes, ...]
    codes: tuple[int, ...]
    is_waiting: bool = True
    """Whether the client waits for the response."""
    is_tls: bool = True


RUDE: tuple[Rudeness, ...] = (
    Rudeness("garbage", (b"\x00\x01\x02\xff" * 50 + b"\r\n\r\n",), (0, 400)),
    Rudeness("no version", (b"GET /\r\n\r\n",), (0, 400, 403)),
    Rudeness("strange version", (b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",), (0, 400, 401, 403, 505)),
    Rudeness("no host", (b"GET /version HTTP/1.1\r\n\r\n",), (200, 400)),
    Rudeness("long line", (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",), (0, 400, 414, 431)),
    Rudeness("long header", (_GET + b"X: " + b"a" * 200_000 + b"\r\n\r\n",), (0, 400, 431)),
    Rudeness(
        "many headers", (_GET + b"".join(b"X-%d: a\r\n" % n for n in range(9_000)) + b"\r\n",), (0, 200, 400, 431)
    ),
    Rudeness("bad header", (_GET + b"X Y: a\r\n\r\n",), (0, 400)),
    Rudeness("header without a colon", (_GET + b"XY\r\n\r\n",), (0, 400)),
    Rudeness("NUL in a header", (_GET + b"X: a\x00b\r\n\r\n",), (0, 200, 400)),
    Rudeness("negative length", (_POST + b"Content-Length: -1\r\n\r\n",), (0, 400)),
    Rudeness("two lengths", (_POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",), (0, 400)),
    Rudeness(
        "length and chunks", (_POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",), (0, 400)
    ),
    Rudeness("bad chunk", (_POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",), (0, 400)),
    Rudeness("cut chunk", (_POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}",), (0,), is_waiting=False),
    Rudeness("huge length", (_POST + b"Content-Length: 99999999999999\r\n\r\n{}",), (413,)),
    Rudeness("large body", (_POST + b"Content-Length: %d\r\n\r\n" % (4 * _MEGABYTE), b" " * 4 * _MEGABYTE), (0, 413)),
    Rudeness(
        "large chunks",
        (
            _POST + b"Transfer-Encoding: chunked\r\n\r\n",
            *[b"100000\r\n" + b" " * _MEGABYTE + b"\r\n"] * 4,
            b"0\r\n\r\n",
        ),
        (0, 413),
    ),
    Rudeness("cut body", (_POST + b"Content-Length: 500\r\n\r\n{",), (0,), is_waiting=False),
    Rudeness("cut headers", (_GET[:-10],), (0,), is_waiting=False),
    Rudeness("nothing at all", (b"",), (0,), is_waiting=False),
    Rudeness("expect", (_POST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n", b"{}"), (400, 422)),
    Rudeness("expect what", (_POST + b"Content-Length: 2\r\nExpect: frob\r\n\r\n", b"{}"), (400, 417, 422)),
    Rudeness("one byte after the other", (_POST + b"Content-Length: 8\r\n\r\n", *[b" "] * 8), (400, 422)),
    Rudeness("gone before the answer", (_GET + b"\r\n",), (0,), is_waiting=False),
    Rudeness("gone in a watch", (_GET.replace(b"spaces ", b"spaces?watch=1 ") + b"\r\n",), (0,), is_waiting=False),
    Rudeness("plain text to TLS", (_GET + b"\r\n",), (0, 400), is_tls=False),
    Rudeness("CONNECT", (b"CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n",), (400, 401, 403, 404, 405)),
    Rudeness("a whole address", (_GET.replace(b"/api", b"http://example.com/api", 1) + b"\r\n",), (200, 400, 403, 404)),
    Rudeness("HTTP/2", (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",), (0, 400, 401, 403, 404, 405)),
)


def be_rude(way: Rudeness, port: int, tls: ssl.SSLContext, entropy: Entropy) -> int:
    """Send the request and return the status code, 0 for none. Raises `TimeoutError` if the server hangs."""
    if not way.is_tls:
        return _without_tls(way, port)
    with Connection(port, tls) as connection:
        try:
            for piece in way.pieces:
                connection.socket.sendall(piece)
            if not way.is_waiting:
                return 0
            return connection.answer("GET").code
        except (ConnectionError, ssl.SSLError):
            return 0


def _without_tls(way: Rudeness, port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as plain:
        plain.sendall(b"".join(way.pieces))
        try:
            answer = plain.recv(4_096)
        except ConnectionError:
            return 0
        return int(answer[9:12]) if answer.startswith(b"HTTP/1.") else 0
