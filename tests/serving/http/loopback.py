"""A listener on loopback for tests, clients that send given bytes, and requests that are parsed from bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.serving.http.connection import Handler
from mooring.serving.http.listener import HttpListener
from mooring.serving.http.parser import ParseFailure, RequestParser, ServerLimits
from mooring.serving.http.request import Request
from tests.waiting import LIMIT_S

CLOCK = SystemClock()
QUICK = ServerLimits(check_interval_s=0.02, idle_s_max=0.1, linger_s_max=0.04, stop_s_max=0.2)
"""Short times, so that tests of timeouts are fast. Timeouts count checks, not seconds: on a busy machine checks are
rarer, not fewer."""


@asynccontextmanager
async def listening(
    handler: Handler, limits: ServerLimits | None = None, **options: Any
) -> AsyncIterator[HttpListener]:
    async with (
        asyncio.timeout(LIMIT_S),
        HttpListener(handler, CLOCK, host="127.0.0.1", port=0, tls=None, limits=limits, **options) as listener,
    ):
        yield listener


def run_scenario(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_real(scenario())


class Client:
    """A client with one connection."""

    def __init__(self, listener: HttpListener) -> None:
        self._port = listener.port

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()

    def send(self, text: str | bytes) -> None:
        self.writer.write(text.encode("latin-1") if isinstance(text, str) else text)

    async def read(self, end: str) -> str:
        """Read up to a text."""
        return (await self.reader.readuntil(end.encode())).decode("latin-1")

    async def read_all(self) -> str:
        """Read until the server closes the connection."""
        parts: list[bytes] = []
        try:
            while part := await self.reader.read(1 << 16):
                parts.append(part)
        except ConnectionError:
            pass
        self.writer.close()
        return b"".join(parts).decode("latin-1")


def get(path: str = "/", *headers: str, method: str = "GET", version: str = "1.1") -> str:
    lines = [f"{method} {path} HTTP/{version}", "Host: h", *headers, "", ""]
    return "\r\n".join(lines)


def post(body: str, path: str = "/", *headers: str) -> str:
    return get(path, f"Content-Length: {len(body)}", *headers, method="POST") + body


def read(*pieces: bytes, limits: ServerLimits | None = None) -> list[Request | ParseFailure]:
    """The parsed requests and failures of bytes that arrive in pieces."""
    found: list[Request | ParseFailure] = []
    reader = RequestParser(limits or ServerLimits(), found.append)
    for piece in pieces:
        reader.feed(piece)
    return found


def request(method: str, target: str, headers: Mapping[str, str] | None = None) -> Request:
    """One request without a body."""
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {"Host": "h", **(headers or {})}.items()]
    (found,) = read("\r\n".join([*lines, "", ""]).encode())
    assert isinstance(found, Request)
    return found
