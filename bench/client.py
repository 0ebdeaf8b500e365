"""A fast HTTP client: many requests in flight on a few TLS connections, with little work for each.

The official client costs ten times as much CPU as the server, and would be what is measured.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from typing import NamedTuple


class Answer(NamedTuple):
    status: int
    body: bytes


class Connection(asyncio.Protocol):
    """One connection; requests may be sent before earlier ones are answered."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiting: deque[asyncio.Future[Answer]] = deque()
        self._lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._waiting:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            found = self._body(head, end + 4)
            if found is None:
                return
            body, read_to = found
            del self._buffer[:read_to]
            self._waiting.popleft().set_result(Answer(int(head[9:12]), body))

    def _body(self, head: bytes, start: int) -> tuple[bytes, int] | None:
        """The body that starts there, and where it ends; nothing if it has not arrived."""
        if b"transfer-encoding: chunked" in head:
            return dechunked(self._buffer, start)
        length = int(head.split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
        end = start + length
        return (bytes(self._buffer[start:end]), end) if len(self._buffer) >= end else None

    def connection_lost(self, error: Exception | None) -> None:
        self._lost.set()
        while self._waiting:
            self._waiting.popleft().set_exception(ConnectionError(f"the server closed the connection: {error}"))

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        assert self._transport is not None, "not connected"
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._transport.write(request)
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def wait_closed(self) -> None:
        """Wait until the socket is closed: a TLS connection sends a close notification first."""
        await self._lost.wait()


def dechunked(buffer: bytes | bytearray, start: int) -> tuple[bytes, int] | None:
    """A chunked body that starts there, and where it ends; nothing if its last chunk has not arrived."""
    body = b""
    while (line_end := buffer.find(b"\r\n", start)) >= 0:
        size = int(buffer[start:line_end], 16)
        start = line_end + 2
        if len(buffer) < start + size + 2:
            return None
        if size == 0:
            return body, start + 2
        body += buffer[start : start + size]
        start += size + 2
    return None


def request(token: str, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
    """A request as it goes over the wire."""
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def unverified() -> ssl.SSLContext:
    """For servers that sign their own certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def connect(host: str, port: int, count: int) -> list[Connection]:
    loop, context = asyncio.get_running_loop(), unverified()
    return [(await loop.create_connection(Connection, host, port, ssl=context))[1] for _ in range(count)]


@asynccontextmanager
async def connected(host: str, port: int, count: int) -> AsyncIterator[list[Connection]]:
    connections = await connect(host, port, count)
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))


async def ask_all(connections: Sequence[Connection], requests: Sequence[bytes]) -> tuple[list[Answer], float]:
    """All requests, spread over the connections, one in flight on each; the answers, and how long it took."""
    answers: list[Answer] = []

    async def ask_some(connection: Connection, some: Sequence[bytes]) -> None:
        for request in some:
            answers.append(await connection.ask(request))

    began_s = perf_counter()
    shares = [requests[index :: len(connections)] for index in range(len(connections))]
    async with asyncio.TaskGroup() as group:
        for connection, share in zip(connections, shares):
            group.create_task(ask_some(connection, share))
    return answers, perf_counter() - began_s
