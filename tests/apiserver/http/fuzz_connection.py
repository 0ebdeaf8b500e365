"""A connection with pipelining for the fuzzer.

1. Requests are sent ahead and answered in order, so that the server always sees the same order.
2. If the server closes the connection early, `Closed` has the number of responses before.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

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
