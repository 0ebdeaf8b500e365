"""A wire carries one request at a time, and whoever waits on it is told how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from mooring.client.http.wire import STREAM_BYTES_MAX, Wire
from mooring.kit.loop import run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class FakeTransport:
    """What a wire does to its socket."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_aborted = False
        self.is_paused = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def play(scenario: Callable[[Wire, FakeTransport], Awaitable[None]]) -> None:
    async def playing() -> None:
        wire, transport = Wire(asyncio.get_running_loop()), FakeTransport()
        wire.connection_made(cast(asyncio.Transport, transport))
        assert wire.is_idle
        await scenario(wire, transport)

    run(playing())


def test_a_request_and_its_answer() -> None:
    async def scenario(wire: Wire, transport: FakeTransport) -> None:
        for _ in range(2):
            waiter = wire.ask(b"GET / HTTP/1.1\r\n\r\n")
            assert not wire.is_idle
            wire.data_received(OK[:20])
            wire.data_received(OK[20:])
            answer = await waiter
            assert (answer.code, answer.body, answer.headers["Content-Length"]) == (200, b"{}", "2")
            assert wire.is_idle
        assert transport.written == [b"GET / HTTP/1.1\r\n\r\n"] * 2

    play(scenario)


@pytest.mark.parametrize(
    ("happens", "error", "words"),
    [
        pytest.param(lambda wire: wire.connection_lost(None), ConnectionError, "the server hung up", id="an end"),
        pytest.param(
            lambda wire: wire.connection_lost(ConnectionResetError("reset")),
            ConnectionResetError,
            "reset",
            id="a reset",
        ),
        pytest.param(lambda wire: wire.data_received(b"220 mail\r\n"), ConnectionError, "speak HTTP", id="nonsense"),
        pytest.param(lambda wire: wire.abort(TimeoutError("late")), TimeoutError, "late", id="the end of patience"),
    ],
)
def test_what_ends_a_wire_is_told(happens: Callable[[Wire], None], error: type[OSError], words: str) -> None:
    async def scenario(wire: Wire, transport: FakeTransport) -> None:
        waiter = wire.ask(b"GET / HTTP/1.1\r\n\r\n")
        happens(wire)
        with pytest.raises(error, match=words):
            await waiter
        assert transport.is_aborted
        assert not wire.is_idle
        with pytest.raises(error, match=words):
            await wire.ask(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(error, match=words):
            await wire.open_stream(b"GET / HTTP/1.1\r\n\r\n")

    play(scenario)


def test_what_nobody_asked_for_ends_a_wire() -> None:
    async def scenario(wire: Wire, transport: FakeTransport) -> None:
        wire.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        assert transport.is_aborted
        assert not wire.is_idle

    play(scenario)


def test_a_server_that_keeps_no_connection_is_not_asked_on_it_again() -> None:
    async def scenario(wire: Wire, transport: FakeTransport) -> None:
        waiter = wire.ask(b"GET / HTTP/1.1\r\n\r\n")
        wire.data_received(b"HTTP/1.1 200 OK\r\n\r\nhello")
        wire.connection_lost(None)
        assert (await waiter).body == b"hello"
        assert not wire.is_idle

    play(scenario)


def test_a_stream_is_read_as_it_comes() -> None:
    async def scenario(wire: Wire, transport: FakeTransport) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, wire.data_received, STREAM + b"3\r\none\r\n")
        assert await wire.open_stream(b"GET / HTTP/1.1\r\n\r\n") == 200
        assert wire.stream_headers["Transfer-Encoding"] == "chunked"
        assert await wire.read_any() == b"one"
        loop.call_later(1.0, wire.data_received, b"3\r\ntwo\r\n5\r\nthr")
        assert await wire.read_any() == b"twothr"
        wire.data_received(b"ee\r\n0\r\n\r\n")
        assert [await wire.read_any(), await wire.read_any()] == [b"ee", b""]

    play(scenario)


def test_what_came_before_a_cut_is_read_before_it_is_told() -> None:
    async def scenario(wire: Wire, transport: FakeTransport) -> None:
        asyncio.get_running_loop().call_later(1.0, wire.data_received, STREAM + b"3\r\none\r\n")
        await wire.open_stream(b"GET / HTTP/1.1\r\n\r\n")
        wire.connection_lost(None)
        assert await wire.read_any() == b"one"
        with pytest.raises(ConnectionError, match="in the middle of an answer"):
            await wire.read_any()

    play(scenario)


def test_a_stream_is_not_read_faster_than_its_reader_takes_it() -> None:
    async def scenario(wire: Wire, transport: FakeTransport) -> None:
        asyncio.get_running_loop().call_later(1.0, wire.data_received, STREAM)
        await wire.open_stream(b"GET / HTTP/1.1\r\n\r\n")
        large = b"x" * (STREAM_BYTES_MAX // 2 + 1)
        for _ in range(2):
            assert not transport.is_paused
            wire.data_received(b"%x\r\n%b\r\n" % (len(large), large))
        assert transport.is_paused
        assert await wire.read_any() == large * 2
        assert not transport.is_paused

    play(scenario)
