"""The listener: addresses, idle connections, stopping; missing or incomplete TLS handshakes."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.connection import ServerConnection
from mooring.serving.http.listener import HttpListener, PortTakenError
from mooring.serving.http.parser import ServerLimits
from mooring.serving.http.request import Request
from mooring.serving.http.response import Response, Stream
from mooring.serving.tls import ServingTls, serving_context, trust
from tests.serving.callers import Authority
from tests.serving.http.loopback import CLOCK, QUICK, Client, get, listening, run_scenario
from tests.waiting import LIMIT_S, until


async def hello(request: Request) -> Response:
    return Response(200, b"hello")


def test_a_used_port_is_reported_in_one_line() -> None:
    async def scenario() -> None:
        async with listening(hello) as listener:
            second = HttpListener(hello, CLOCK, host="127.0.0.1", port=listener.port, tls=None)
            with pytest.raises(PortTakenError, match=f"^cannot listen on 127.0.0.1:{listener.port}: "):
                async with second:
                    pass

    run_scenario(scenario)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_unspecified_addresses_listen_on_ipv4_and_ipv6(host: str) -> None:
    async def scenario() -> None:
        async with HttpListener(hello, CLOCK, host=host, port=0, tls=None) as listener:
            for address in ("127.0.0.1", "::1"):
                reader, writer = await asyncio.open_connection(address, listener.port)
                writer.write(get().encode())
                assert (await reader.read(1_000)).endswith(b"hello"), address
                writer.close()
            with pytest.raises(PortTakenError, match="in use"):
                async with HttpListener(hello, CLOCK, host=host, port=listener.port, tls=None):
                    pass

    run_scenario(scenario)


def test_without_ipv6_the_listener_uses_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)

    async def scenario() -> None:
        async with HttpListener(hello, CLOCK, host="::", port=0, tls=None) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(get().encode())
            assert (await reader.read(1_000)).endswith(b"hello")
            writer.close()

    run_scenario(scenario)


def test_idle_connections_are_closed_when_the_listener_stops() -> None:
    async def scenario() -> None:
        async with listening(hello) as listener:
            silent, used = Client(listener), Client(listener)
            await silent.__aenter__()
            await used.__aenter__()
            used.send(get())
            await used.read("hello")
        assert await silent.read_all() == await used.read_all() == ""

    run_scenario(scenario)


def test_a_running_request_is_answered_when_the_listener_stops() -> None:
    gate = asyncio.Event()

    async def waits(request: Request) -> Response:
        await gate.wait()
        return Response(200, b"at last")

    async def scenario() -> None:
        limits = ServerLimits(stop_s_max=LIMIT_S)
        async with TaskGroup("test") as group, listening(waits, limits) as listener:
            client = Client(listener)
            await client.__aenter__()
            client.send(get() + get())
            await until(lambda: any(not connection.is_idle for connection in listener.connections))
            group.start(_soon(gate), name="opener")
        answer = await client.read_all()
        assert answer.count("at last") == 1
        assert "Connection: close" in answer

    run_scenario(scenario)


async def _soon(gate: asyncio.Event) -> None:
    await CLOCK.wait(0.02)
    gate.set()


def test_a_request_that_takes_too_long_is_cancelled_when_the_listener_stops() -> None:
    async def endless(request: Request) -> Stream:
        stream = request.stream(200, "a/b")
        await asyncio.Event().wait()
        return stream

    async def scenario() -> None:
        async with listening(endless, QUICK) as listener:
            client = Client(listener)
            await client.__aenter__()
            client.send(get())
            await client.read("\r\n\r\n")
        assert await client.read_all() == ""

    run_scenario(scenario)


def test_closed_connections_are_freed_without_garbage_collection() -> None:
    def left() -> int:
        return sum([isinstance(found, ServerConnection | Request) for found in gc.get_objects()])

    async def scenario() -> None:
        gc.collect()
        gc.disable()  # reference cycles would hide leaks
        try:
            async with listening(hello) as listener:
                for _ in range(5):
                    async with Client(listener) as client:
                        client.send(get())
                        await client.read("hello")
                await until(lambda: not listener.connections)
                await until(lambda: not left())
        finally:
            gc.enable()

    run_scenario(scenario)


def test_the_handler_gets_the_client_certificate(tmp_path: Path) -> None:
    authority = Authority("clients", wall_s=CLOCK.wall_s())
    tls = serving_context(ServingTls("test"), CLOCK.wall_s())
    trust(tls, authority.pem)
    (tmp_path / "somebody").write_bytes(authority.client_pem("somebody", []))
    plain, shown = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
    for context in (plain, shown):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    shown.load_cert_chain(tmp_path / "somebody")

    async def certificate_status(request: Request) -> Response:
        assert request.certificate == request.certificate
        return Response(200, b"somebody" if request.certificate else b"nobody")

    async def body_of(port: int, context: ssl.SSLContext) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(get("/", "Connection: close").encode())
        answer = await reader.read()
        writer.close()
        return answer.rpartition(b"\r\n")[2]

    async def scenario() -> None:
        async with HttpListener(certificate_status, CLOCK, host="127.0.0.1", port=0, tls=tls) as listener:
            assert await body_of(listener.port, shown) == b"somebody"
            assert await body_of(listener.port, plain) == b"nobody"

    run_scenario(scenario)


@asynccontextmanager
async def listening_with_tls(limits: ServerLimits) -> AsyncIterator[HttpListener]:
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


def run_within_limit(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S):
            await scenario()

    run_real(main())


def test_a_connection_without_a_handshake_is_closed() -> None:
    async def scenario() -> None:
        async with listening_with_tls(ServerLimits(handshake_s_max=0.1)) as listener:
            for reader, writer in await connect(listener.port, 20):
                assert await reader.read() == b""
                writer.close()
            await until(lambda: listener.acceptor.handshakes == 0)
            assert listener.acceptor.closed_for_newer == 0
            assert await ask(listener.port) == b"hello"

    run_within_limit(scenario)


def test_the_oldest_of_too_many_handshakes_is_closed() -> None:
    async def scenario() -> None:
        async with listening_with_tls(ServerLimits(handshakes_max=5, handshake_s_max=LIMIT_S)) as listener:
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

    run_within_limit(scenario)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x00\xff", b"\x00" * 100])
def test_a_connection_without_tls_is_closed(data: bytes) -> None:
    async def scenario() -> None:
        async with listening_with_tls(ServerLimits(handshake_s_max=0.2)) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(data)
            assert b"hello" not in await reader.read()
            writer.close()
            await until(lambda: listener.acceptor.handshakes == 0)
            assert await ask(listener.port) == b"hello"

    run_within_limit(scenario)


def test_a_listener_stops_without_waiting_for_handshakes() -> None:
    async def scenario() -> None:
        async with listening_with_tls(ServerLimits(handshake_s_max=LIMIT_S, stop_s_max=LIMIT_S)) as listener:
            silent = await connect(listener.port, 3)
            await until(lambda: listener.acceptor.handshakes == 3)
        for reader, writer in silent:
            assert await reader.read() == b""
            writer.close()

    run_within_limit(scenario)
