"""Heads of responses, byte for byte; streams."""

from __future__ import annotations

import asyncio

import pytest

from mooring.kit.clock import VirtualClock
from mooring.serving.http.connection import ServerConnection
from mooring.serving.http.listener import HttpListener
from mooring.serving.http.request import Request
from mooring.serving.http.response import DateHeader, Headers, Response, Stream, closing_line, framed, http_date
from tests.serving.http.loopback import CLOCK, Client, get, listening, run_scenario
from tests.waiting import until

DATE = b"Date: D\r\n"
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nX: y\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("response", "is_old", "head"),
    [
        pytest.param(
            Response(200, b"abc", "a/b"),
            False,
            "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 3\r\nDate: D\r\n\r\n",
            id="a response",
        ),
        pytest.param(
            Response(404, b"", "", (("X", "1"), ("X", "2"))),
            True,
            "HTTP/1.0 404 Not Found\r\nX: 1\r\nX: 2\r\nContent-Length: 0\r\nDate: D\r\n\r\n",
            id="HTTP/1.0 with own headers",
        ),
        pytest.param(Response(204, b"", ""), False, "HTTP/1.1 204 No Content\r\nDate: D\r\n\r\n", id="no content"),
        pytest.param(
            Response(299, b"", ""), False, "HTTP/1.1 299 \r\nContent-Length: 0\r\nDate: D\r\n\r\n", id="an unknown code"
        ),
        pytest.param(
            Response(304, b"", "", (("Warning", "a\r\nX: b\nc"),)),
            False,
            "HTTP/1.1 304 Not Modified\r\nWarning: a  X: b c\r\nDate: D\r\n\r\n",
            id="line breaks in a header value",
        ),
    ],
)
def test_heads_of_responses(response: Response, is_old: bool, head: str) -> None:
    assert response.head(DATE, b"", is_old=is_old).decode() == head


def test_a_response_header_may_contain_non_ascii_characters() -> None:
    headers: Headers = (("Warning", "ä"),)
    assert "Warning: ä\r\n".encode() in Response(200, b"", "", headers).head(DATE, b"", is_old=False)


@pytest.mark.parametrize(
    ("is_kept_alive", "is_old", "line"),
    [
        pytest.param(True, False, b"", id="HTTP/1.1, kept alive"),
        pytest.param(False, False, b"Connection: close\r\n", id="HTTP/1.1, closed"),
        pytest.param(True, True, b"Connection: keep-alive\r\n", id="HTTP/1.0, kept alive"),
        pytest.param(False, True, b"", id="HTTP/1.0, closed"),
    ],
)
def test_connection_header_of_a_response(is_kept_alive: bool, is_old: bool, line: bytes) -> None:
    assert closing_line(is_kept_alive=is_kept_alive, is_old=is_old) == line


@pytest.mark.parametrize(
    ("second", "text"),
    [
        pytest.param(0, "Thu, 01 Jan 1970 00:00:00 GMT", id="the first second"),
        pytest.param(1_794_821_126, "Mon, 16 Nov 2026 09:25:26 GMT", id="a second of 2026"),
    ],
)
def test_http_dates_are_in_english(second: int, text: str) -> None:
    assert http_date(second) == text


def test_the_date_header_is_cached_for_a_second() -> None:
    clock = VirtualClock()
    dates = DateHeader(clock)
    first = dates.line()
    assert dates.line() is first
    clock.advance_to(clock.now_s() + 1.0)
    assert dates.line() != first


async def three_pieces(request: Request) -> Stream:
    stream = request.stream(200, "a/b", [("X", "y")])
    await stream.write(b"one")
    assert stream.write_nowait(framed(b"two"))
    await stream.write(b"")
    stream.finish()
    return stream


def test_a_chunk_has_its_length_in_hexadecimal() -> None:
    assert framed(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"


def test_an_empty_piece_is_not_a_chunk() -> None:
    assert framed(b"") == b""


def test_a_stream_is_sent_in_chunks_and_the_connection_stays_open() -> None:
    async def scenario() -> None:
        async with listening(three_pieces) as listener, Client(listener) as client:
            for _ in range(2):
                client.send(get())
                answer = await client.read("0\r\n\r\n")
                assert answer.startswith(HEAD)
                assert answer.endswith("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")

    run_scenario(scenario)


@pytest.mark.parametrize(
    "kept", [pytest.param((), id="without a header"), pytest.param(("Connection: keep-alive",), id="with keep-alive")]
)
def test_a_stream_to_an_http_1_0_client_ends_with_the_connection(kept: tuple[str, ...]) -> None:
    async def scenario() -> None:
        async with listening(three_pieces) as listener, Client(listener) as client:
            client.send(get("/", *kept, version="1.0"))
            head, _, body = (await client.read_all()).partition("\r\n\r\n")
            assert head.startswith("HTTP/1.0 200 OK\r\n")
            assert "chunked" not in head
            assert "keep-alive" not in head
            assert body == "onetwo"

    run_scenario(scenario)


def test_a_stream_for_a_head_request_has_no_body() -> None:
    async def scenario() -> None:
        async with listening(three_pieces) as listener, Client(listener) as client:
            client.send(get(method="HEAD") + get("/", "Connection: close", method="HEAD"))
            first, second, rest = (await client.read_all()).split("\r\n\r\n")
            assert first.startswith(HEAD)
            assert second.startswith(HEAD)
            assert rest == ""

    run_scenario(scenario)


def test_write_waits_for_a_client_that_does_not_read() -> None:
    written: list[int] = []

    async def endless(request: Request) -> Stream:
        stream = request.stream(200, "a/b")
        while True:
            await stream.write(b"x" * 100_000)
            written.append(len(written))

    async def scenario() -> None:
        async with listening(endless) as listener, Client(listener) as client:
            client.send(get())
            await client.read("\r\n\r\n")
            before = -1
            while before != len(written):
                before = len(written)
                await client.reader.readexactly(1)
                await CLOCK.wait(0.002)
            assert before < 1_000
            await client.reader.readexactly(5_000_000)
            await until(lambda: len(written) > before)

    run_scenario(scenario)


class BreakingTransport(asyncio.Transport):
    """Breaks at the first write. As in uvloop, later writes succeed; the protocol is notified one turn later."""

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__()
        self._connection = connection
        self._is_broken = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_broken:
            self._is_broken = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    def is_closing(self) -> bool:
        return self._is_broken


def test_a_writer_that_never_waits_gets_an_error_if_the_client_disconnects() -> None:
    async def scenario() -> None:
        connection = ServerConnection(HttpListener(three_pieces, CLOCK, host="", port=0, tls=None))
        connection.connection_made(BreakingTransport(connection))
        stream = Stream(connection, 200, is_chunked=True)
        with pytest.raises(ConnectionResetError):
            for _ in range(1_000):
                await stream.write(b"x")

    run_scenario(scenario)


def test_writes_to_a_closed_connection_fail_or_return_false() -> None:
    results: list[object] = []

    async def late(request: Request) -> Stream:
        stream = request.stream(200, "a/b")
        await until(lambda: not request.connection.is_open)
        results.append(stream.write_nowait(framed(b"x")))
        try:
            await stream.write(b"x")
        except ConnectionError as error:
            results.append(type(error))
        try:
            request.stream(200, "a/b")
        except ConnectionError as error:
            results.append(type(error))
        raise ConnectionResetError

    async def scenario() -> None:
        async with listening(late) as listener:
            async with Client(listener) as client:
                client.send(get())
                await client.read("\r\n\r\n")
            await until(lambda: len(results) == 3)
        assert results == [False, ConnectionResetError, ConnectionResetError]

    run_scenario(scenario)


def test_an_unfinished_stream_is_aborted() -> None:
    failures: list[str] = []

    async def fails(request: Request) -> Stream:
        stream = request.stream(200, "a/b")
        await stream.write(b"half")
        raise RuntimeError("a bug")

    async def scenario() -> None:
        async with listening(fails, on_failure=lambda: failures.append("one")) as listener, Client(listener) as client:
            client.send(get())
            answer = await client.read_all()
            assert answer.endswith("4\r\nhalf\r\n")
        assert failures == ["one"]

    run_scenario(scenario)
