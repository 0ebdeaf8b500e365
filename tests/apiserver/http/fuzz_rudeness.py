"""Requests that violate HTTP, and the status codes that are allowed as an answer; 0 for a closed connection."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from mooring.kit.entropy import Entropy
from tests.apiserver.http.fuzz_connection import Connection
from tests.cluster.running import ADMIN_TOKEN
from tests.waiting import LIMIT_S

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
