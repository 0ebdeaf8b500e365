"""HttpConnection: one request at a time, streams, and errors of waiting requests.

ResponseReader: responses split at any position, limits, and invalid responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from mooring.client.http.http_connection import (
    STREAM_BYTES_MAX,
    BrokenResponseError,
    HttpConnection,
    ResponseReader,
    ResponseTooLongError,
    headers_in,
)
from mooring.kit.loop import run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class FakeTransport:
    """A transport that records calls of the connection."""

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


def run_scenario(scenario: Callable[[HttpConnection, FakeTransport], Awaitable[None]]) -> None:
    async def main() -> None:
        connection, transport = HttpConnection(asyncio.get_running_loop()), FakeTransport()
        connection.connection_made(cast(asyncio.Transport, transport))
        assert connection.is_idle
        await scenario(connection, transport)

    run(main())


def test_requests_and_responses_of_a_connection() -> None:
    async def scenario(connection: HttpConnection, transport: FakeTransport) -> None:
        for _ in range(2):
            waiter = connection.send(b"GET / HTTP/1.1\r\n\r\n")
            assert not connection.is_idle
            connection.data_received(OK[:20])
            connection.data_received(OK[20:])
            answer = await waiter
            assert (answer.code, answer.body, answer.headers["Content-Length"]) == (200, b"{}", "2")
            assert connection.is_idle
        assert transport.written == [b"GET / HTTP/1.1\r\n\r\n"] * 2

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("event", "error", "words"),
    [
        pytest.param(
            lambda connection: connection.connection_lost(None), ConnectionError, "the server hung up", id="end of file"
        ),
        pytest.param(
            lambda connection: connection.connection_lost(ConnectionResetError("reset")),
            ConnectionResetError,
            "reset",
            id="a reset",
        ),
        pytest.param(
            lambda connection: connection.data_received(b"220 mail\r\n"), ConnectionError, "speak HTTP", id="not HTTP"
        ),
        pytest.param(
            lambda connection: connection.abort(TimeoutError("late")), TimeoutError, "late", id="an abort by the client"
        ),
    ],
)
def test_the_error_that_ended_a_connection_is_raised_by_requests(
    event: Callable[[HttpConnection], None], error: type[OSError], words: str
) -> None:
    async def scenario(connection: HttpConnection, transport: FakeTransport) -> None:
        waiter = connection.send(b"GET / HTTP/1.1\r\n\r\n")
        event(connection)
        with pytest.raises(error, match=words):
            await waiter
        assert transport.is_aborted
        assert not connection.is_idle
        with pytest.raises(error, match=words):
            await connection.send(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(error, match=words):
            await connection.open_stream(b"GET / HTTP/1.1\r\n\r\n")

    run_scenario(scenario)


def test_an_unexpected_response_closes_the_connection() -> None:
    async def scenario(connection: HttpConnection, transport: FakeTransport) -> None:
        connection.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        assert transport.is_aborted
        assert not connection.is_idle

    run_scenario(scenario)


def test_a_response_without_a_length_ends_with_its_connection() -> None:
    async def scenario(connection: HttpConnection, transport: FakeTransport) -> None:
        waiter = connection.send(b"GET / HTTP/1.1\r\n\r\n")
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nhello")
        connection.connection_lost(None)
        assert (await waiter).body == b"hello"
        assert not connection.is_idle

    run_scenario(scenario)


def test_a_stream_is_read_in_pieces() -> None:
    async def scenario(connection: HttpConnection, transport: FakeTransport) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, connection.data_received, STREAM + b"3\r\none\r\n")
        assert await connection.open_stream(b"GET / HTTP/1.1\r\n\r\n") == 200
        assert connection.stream_headers["Transfer-Encoding"] == "chunked"
        assert await connection.read_any() == b"one"
        loop.call_later(1.0, connection.data_received, b"3\r\ntwo\r\n5\r\nthr")
        assert await connection.read_any() == b"twothr"
        connection.data_received(b"ee\r\n0\r\n\r\n")
        assert [await connection.read_any(), await connection.read_any()] == [b"ee", b""]

    run_scenario(scenario)


def test_data_received_before_an_error_is_read_before_the_error_is_raised() -> None:
    async def scenario(connection: HttpConnection, transport: FakeTransport) -> None:
        asyncio.get_running_loop().call_later(1.0, connection.data_received, STREAM + b"3\r\none\r\n")
        await connection.open_stream(b"GET / HTTP/1.1\r\n\r\n")
        connection.connection_lost(None)
        assert await connection.read_any() == b"one"
        with pytest.raises(ConnectionError, match="in the middle of an answer"):
            await connection.read_any()

    run_scenario(scenario)


def test_a_slow_reader_pauses_the_transport() -> None:
    async def scenario(connection: HttpConnection, transport: FakeTransport) -> None:
        asyncio.get_running_loop().call_later(1.0, connection.data_received, STREAM)
        await connection.open_stream(b"GET / HTTP/1.1\r\n\r\n")
        large = b"x" * (STREAM_BYTES_MAX // 2 + 1)
        for _ in range(2):
            assert not transport.is_paused
            connection.data_received(b"%x\r\n%b\r\n" % (len(large), large))
        assert transport.is_paused
        assert await connection.read_any() == large * 2
        assert not transport.is_paused

    run_scenario(scenario)


OK_HEAD = b"HTTP/1.1 200 OK\r\n"


def read(answer: bytes, piece_bytes: int, *, has_ended: bool = False) -> ResponseReader:
    reader = ResponseReader()
    for start in range(0, len(answer), piece_bytes):
        reader.feed(answer[start : start + piece_bytes])
    if has_ended:
        reader.end()
    return reader


@pytest.mark.parametrize("piece_bytes", [1, 2, 7, 10_000], ids=lambda count: f"in pieces of {count}")
@pytest.mark.parametrize(
    ("answer", "code", "body", "keeps_alive"),
    [
        pytest.param(OK_HEAD + b"Content-Length: 5\r\n\r\nhello", 200, b"hello", True, id="a length"),
        pytest.param(OK_HEAD + b"content-length:5\r\n\r\nhello", 200, b"hello", True, id="a length in lower case"),
        pytest.param(OK_HEAD + b"Content-Length: 0\r\n\r\n", 200, b"", True, id="an empty body"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True, id="204"),
        pytest.param(
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
            200,
            b"hello world",
            True,
            id="chunks",
        ),
        pytest.param(
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\nA\r\n0123\r\n6789\r\n0\r\nTrailer: x\r\n\r\n",
            200,
            b"0123\r\n6789",
            True,
            id="chunks with line breaks and a trailer",
        ),
        pytest.param(
            b"HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
            409,
            b"{}",
            False,
            id="connection: close",
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, b"{}", False, id="HTTP/1.0"),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n" + OK_HEAD + b"Content-Length: 2\r\n\r\n{}",
            200,
            b"{}",
            True,
            id="after 100 Continue",
        ),
    ],
)
def test_complete_responses_are_read_in_any_pieces(
    answer: bytes, code: int, body: bytes, keeps_alive: bool, piece_bytes: int
) -> None:
    reader = read(answer, piece_bytes)
    assert reader.is_complete
    assert (reader.code, reader.answer().body, reader.keeps_alive) == (code, body, keeps_alive)


@pytest.mark.parametrize("piece_bytes", [1, 10_000])
def test_a_response_without_a_length_ends_at_end_of_file(piece_bytes: int) -> None:
    reader = read(OK_HEAD + b"\r\nhello", piece_bytes, has_ended=True)
    assert (reader.is_complete, reader.answer().body, reader.keeps_alive) == (True, b"hello", False)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OK_HEAD + b"Content-Length: 2\r\n\r\n{}HTTP", id="behind a length"),
        pytest.param(
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nHTTP", id="behind the last chunk"
        ),
    ],
)
def test_a_connection_with_extra_data_is_not_reused(answer: bytes) -> None:
    reader = read(answer, 10_000)
    assert (reader.is_complete, reader.answer().body, reader.keeps_alive) == (True, b"{}", False)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(b"", "the server hung up", id="empty"),
        pytest.param(OK_HEAD, "the server hung up", id="truncated head"),
        pytest.param(OK_HEAD + b"Content-Length: 5\r\n\r\nhell", "in the middle of an answer", id="truncated body"),
        pytest.param(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhell", "in the middle", id="truncated chunk"),
        pytest.param(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n", "in the middle", id="no last chunk"),
        pytest.param(
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\nmany\r\n",
            "began a chunk with b'many'",
            id="an invalid chunk size",
        ),
        pytest.param(
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",
            "began a chunk with b'-5'",
            id="a negative chunk size",
        ),
        pytest.param(OK_HEAD + b"Transfer-Encoding: gzip\r\n\r\n", "wanted chunks", id="gzip transfer encoding"),
        pytest.param(
            OK_HEAD + b"Content-Length: many\r\n\r\n", "announced an answer of b'many' bytes", id="an invalid length"
        ),
        pytest.param(b"SSH-2.0-OpenSSH_9\r\n", "does not speak HTTP", id="another protocol"),
        pytest.param(b"HTTP/2 200\r\n\r\n", "does not speak HTTP/1.1", id="another version"),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x16", "does not speak HTTP", id="TLS"),
    ],
)
def test_invalid_responses_are_rejected(answer: bytes, words: str) -> None:
    with pytest.raises(BrokenResponseError, match=words.replace("(", r"\(")):
        read(answer, 10_000, has_ended=True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(OK_HEAD + b"X: " + b"x" * 200, "a head of more than 100 bytes", id="a head"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 200,
            "a line of more than",
            id="a chunk's line",
        ),
    ],
)
def test_heads_and_chunk_lines_have_a_size_limit(monkeypatch: pytest.MonkeyPatch, answer: bytes, words: str) -> None:
    monkeypatch.setattr("mooring.client.http.http_connection.HEADER_BYTES_MAX", 100)
    with pytest.raises(BrokenResponseError, match=words):
        read(answer, 10)


def test_header_names_are_normalized() -> None:
    head = b"HTTP/1.1 429 Too Many\r\nRETRY-AFTER:  3 \r\ncontent-type: text/plain\r\nX-Odd\r\n"
    assert headers_in(head) == {"Retry-After": "3", "Content-Type": "text/plain"}


@pytest.mark.parametrize(
    ("head", "body"),
    [
        pytest.param(b"Content-Length: 5\r\n\r\n", b"hello", id="a length"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n", b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", id="chunks"),
        pytest.param(b"\r\n", b"hello", id="the end of the connection"),
    ],
)
def test_a_body_has_a_size_limit(head: bytes, body: bytes) -> None:
    reader = ResponseReader(5)
    reader.feed(OK_HEAD + head + body)
    assert reader.answer().body == b"hello"
    with pytest.raises(ResponseTooLongError, match="more than 4 bytes"):
        ResponseReader(4).feed(OK_HEAD + head + body)
