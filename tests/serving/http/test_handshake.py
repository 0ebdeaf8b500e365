"""Connections with missing or incomplete TLS handshakes are closed and do not block other clients."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from mooring.kit.loop import run_real
from mooring.serving.http.listener import HttpListener
from mooring.serving.http.parser import ServerLimits
from mooring.serving.http.request import Request
from mooring.serving.http.response import Response
from mooring.serving.tls import ServingTls, serving_context
from tests.serving.http.loopback import CLOCK
from tests.waiting import LIMIT_S, until


async def hello(request: Request) -> Response:
    return Response(200, b"hello")


@asynccontextmanager
async def listening(limits: ServerLimits) -> AsyncIterator[HttpListener]:
    tls = serving_context(ServingTls("test"), CLOCK.wall_s())
    async with HttpListener(hello, CLOCK, host="127.0.0.1", port=0, tls=tls, limits=limits) as listener:
        yield listener


async def ask(port: int) -> bytes:
    """The body of a response over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.rpartition(b"\r\n\r\n")[2]


async def connect(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """TCP connections that send nothing."""
    return [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]


def run_scenario(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S):
            await scenario()

    run_real(main())


def test_a_connection_without_a_handshake_is_closed() -> None:
    async def scenario() -> None:
        async with listening(ServerLimits(handshake_s_max=0.1)) as listener:
            for reader, writer in await connect(listener.port, 20):
                assert await reader.read() == b""
                writer.close()
            await until(lambda: listener.acceptor.handshakes == 0)
            assert listener.acceptor.closed_for_newer == 0
            assert await ask(listener.port) == b"hello"

    run_scenario(scenario)


def test_the_oldest_of_too_many_handshakes_is_closed() -> None:
    async def scenario() -> None:
        async with listening(ServerLimits(handshakes_max=5, handshake_s_max=LIMIT_S)) as listener:
            silent = await connect(listener.port, 5)
            await until(lambda: listener.acceptor.handshakes == 5)
            assert await ask(listener.port) == b"hello"
            assert await silent[0][0].read() == b"", "the oldest connection is still open"
            silent += await connect(listener.port, 50)
            await until(lambda: listener.acceptor.closed_for_newer == 50)
            assert listener.acceptor.handshakes == 5
            assert [await ask(listener.port) for _ in range(3)] == [b"hello"] * 3
            closed = [await reader.read() for reader, _ in silent[:48]]
            assert closed == [b""] * 48
            for _, writer in silent:
                writer.close()

    run_scenario(scenario)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x00\xff", b"\x00" * 100])
def test_a_connection_without_tls_is_closed(data: bytes) -> None:
    async def scenario() -> None:
        async with listening(ServerLimits(handshake_s_max=0.2)) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(data)
            assert b"hello" not in await reader.read()
            writer.close()
            await until(lambda: listener.acceptor.handshakes == 0)
            assert await ask(listener.port) == b"hello"

    run_scenario(scenario)


def test_a_listener_stops_without_waiting_for_handshakes() -> None:
    async def scenario() -> None:
        async with listening(ServerLimits(handshake_s_max=LIMIT_S, stop_s_max=LIMIT_S)) as listener:
            silent = await connect(listener.port, 3)
            await until(lambda: listener.acceptor.handshakes == 3)
        for reader, writer in silent:
            assert await reader.read() == b""
            writer.close()

    run_scenario(scenario)
