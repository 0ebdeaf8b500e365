"""One connection: requests and responses as bytes."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress

import pytest

from mooring.serving.http.connection import SLICE_BYTES, ServerConnection
from mooring.serving.http.listener import HttpListener
from mooring.serving.http.parser import ServerLimits
from mooring.serving.http.request import BodyTooLargeError, Request
from mooring.serving.http.response import Response
from tests.serving.http.loopback import CLOCK, QUICK, Client, get, listening, post, run_scenario
from tests.waiting import until

CHUNKS = get("/", "Transfer-Encoding: chunked", method="POST")


async def echo(request: Request) -> Response:
    """Returns method, path and body of the request; below `/unread` does not read the body."""
    if request.path.startswith("/unread"):
        return Response(404, b"not read")
    try:
        body = await request.read(100)
    except BodyTooLargeError:
        return Response(413, b"too much")
    if request.path == "/fails":
        raise RuntimeError("a bug")
    return Response(200, f"{request.method} {request.path} {body.decode()}".encode())


def codes_and_bodies(responses: str) -> list[str]:
    """Status codes and bodies of responses."""
    texts = re.split(r"(?=HTTP/1\.\d \d{3} )", responses)[1:]
    return [f"{text[9:12]} {text.partition(chr(13) + chr(10) + chr(13) + chr(10))[2]}" for text in texts]


@pytest.mark.parametrize(
    ("sent", "responses"),
    [
        pytest.param(get("/a"), ["200 GET /a "], id="a request"),
        pytest.param(post("x", "/a") + get("/b"), ["200 POST /a x", "200 GET /b "], id="pipelined requests"),
        pytest.param(get("/a", method="HEAD") + get("/b"), ["200 ", "200 GET /b "], id="HEAD"),
        pytest.param(CHUNKS + "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", ["200 POST / abc"], id="chunks"),
        pytest.param(post("x" * 101) + get("/b"), ["413 too much", "200 GET /b "], id="a body that is too long"),
        pytest.param(
            CHUNKS + "65\r\n" + "x" * 101 + "\r\n0\r\n\r\n" + get("/b"),
            ["413 too much", "200 GET /b "],
            id="chunks that exceed the limit",
        ),
        pytest.param(post("x", "/unread") + get("/b"), ["404 not read", "200 GET /b "], id="an unread body"),
        pytest.param(
            post("x" * 200_000, "/unread") + get("/b"), ["404 not read", "200 GET /b "], id="a long unread body"
        ),
        pytest.param(
            get("/fails") + get("/b"), ["500 500 Internal Server Error", "200 GET /b "], id="a handler that fails"
        ),
        pytest.param("".join(get(f"/{n}") for n in range(50)), [f"200 GET /{n} " for n in range(50)], id="many"),
        pytest.param(get("/a", "Upgrade: x", "Connection: Upgrade"), ["200 GET /a "], id="an upgrade request"),
    ],
)
def test_responses_are_sent_in_order_on_one_connection(sent: str, responses: list[str]) -> None:
    async def scenario() -> None:
        async with listening(echo) as listener, Client(listener) as client:
            client.send(sent + get("/end"))
            assert codes_and_bodies(await client.read("GET /end ")) == [*responses, "200 GET /end "]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("sent", "responses"),
    [
        pytest.param(get("/a", "Connection: close"), ["200 GET /a "], id="connection: close"),
        pytest.param(
            get("/a", "Connection: close") + get("/b"), ["200 GET /a "], id="a request after connection: close"
        ),
        pytest.param(get("/a", version="1.0"), ["200 GET /a "], id="HTTP/1.0"),
        pytest.param(get("/a") + "garbage\r\n\r\n", ["200 GET /a ", "400 400 Bad Request"], id="garbage"),
        pytest.param(
            get("/a") + get(method="FROB"), ["200 GET /a ", "405 405 Method Not Allowed"], id="an unknown method"
        ),
        pytest.param(get("/" + "a" * 17_000), ["431 431 Request Header Fields Too Large"], id="a long path"),
        pytest.param(CHUNKS + "1\r\na\r\nzz\r\n", ["400 400 Bad Request"], id="an invalid chunk"),
        pytest.param(
            get("/unread", "Transfer-Encoding: chunked") + "zz", ["404 not read"], id="an unread invalid chunk"
        ),
    ],
)
def test_responses_after_which_the_connection_is_closed(sent: str, responses: list[str]) -> None:
    async def scenario() -> None:
        async with listening(echo) as listener, Client(listener) as client:
            client.send(sent)
            received = await client.read_all()
            assert codes_and_bodies(received) == responses
            assert received.startswith("HTTP/1.0") or "Connection: close" in received or "not read" in received

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        pytest.param(
            post("xx", "/", "Expect: 100-continue")[:-2], "HTTP/1.1 100 Continue\r\n\r\n", id="the body is read"
        ),
        pytest.param(post("x" * 101, "/", "Expect: 100-continue")[:-101], "HTTP/1.1 413 ", id="the body is too long"),
        pytest.param(post("xx", "/unread", "Expect: 100-continue")[:-2], "HTTP/1.1 404 ", id="the body is not read"),
    ],
)
def test_expect_100_continue_is_answered_before_the_body(sent: str, answer: str) -> None:
    async def scenario() -> None:
        async with listening(echo) as listener, Client(listener) as client:
            client.send(sent)
            assert (await client.reader.readexactly(len(answer))).decode() == answer
            if "100" in answer:
                client.send("xx")
                assert codes_and_bodies(await client.read("POST / xx")) == ["200 POST / xx"]
            else:
                assert "Connection: close" in await client.read_all()

    run_scenario(scenario)


@pytest.mark.parametrize(
    "body",
    [pytest.param("x" * 101, id="the body is too long"), pytest.param("xx", id="the body is not read")],
)
def test_the_connection_is_closed_after_a_rejected_expect_100_continue(body: str) -> None:
    """The body may never arrive, and the server would read the next request as the body."""
    path = "/" if len(body) > 100 else "/unread"

    async def scenario() -> None:
        async with listening(echo, QUICK) as listener, Client(listener) as client:
            client.send(post(body, path, "Expect: 100-continue")[: -len(body)])
            received = await client.read_all()
            assert received.count("HTTP/1.1") == received.count("Connection: close") == 1

    run_scenario(scenario)


def test_a_client_that_sends_an_unread_body_gets_the_response() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(echo) as listener:
            with socket.create_connection(("127.0.0.1", listener.port)) as client:
                client.setblocking(False)
                await loop.sock_sendall(client, post("x" * 5_000_000, "/unread", "Connection: close").encode())
                assert codes_and_bodies((await loop.sock_recv(client, 1_000)).decode()) == ["404 not read"]

    run_scenario(scenario)


def test_a_client_with_many_pipelined_requests_does_not_delay_others() -> None:
    asked: list[str] = []

    async def record_path(request: Request) -> Response:
        asked.append(request.path)
        return Response(200, request.path.encode())

    async def scenario() -> None:
        async with listening(record_path) as listener, Client(listener) as pipelining, Client(listener) as other:
            await until(lambda: len(listener.connections) == 2)
            pipelining.send("".join(get(f"/{number}") for number in range(1_000)))
            other.send(get("/other"))
            await other.read("/other")
        assert asked.index("/other") < 500

    run_scenario(scenario)


def test_a_connection_error_raised_by_a_handler_is_an_internal_error() -> None:
    async def refused(request: Request) -> Response:
        raise ConnectionRefusedError("another server does not listen")

    async def scenario() -> None:
        async with listening(refused) as listener, Client(listener) as client:
            client.send(get("/", "Connection: close"))
            assert codes_and_bodies(await client.read_all()) == ["500 500 Internal Server Error"]

    run_scenario(scenario)


def test_an_invalid_response_closes_only_its_connection() -> None:
    failures: list[str] = []

    async def broken(request: Request) -> Response:
        headers = (("X", "\ud800"),) if request.path == "/broken" else ()  # a lone surrogate cannot be encoded
        return Response(200, b"hello", headers=headers)

    async def scenario() -> None:
        async with (
            listening(broken, on_failure=lambda: failures.append("one")) as listener,
            Client(listener) as other,
            Client(listener) as client,
        ):
            client.send(get("/broken"))
            assert await client.read_all() == ""
            other.send(get())
            assert codes_and_bodies(await other.read("hello")) == ["200 hello"]

    run_scenario(scenario)
    assert failures == ["one"]


def test_failures_of_handlers_are_counted() -> None:
    failures: list[str] = []

    async def scenario() -> None:
        async with listening(echo, on_failure=lambda: failures.append("one")) as listener, Client(listener) as client:
            client.send(get("/fails", "Connection: close"))
            await client.read_all()

    run_scenario(scenario)
    assert failures == ["one"]


# ----------------------------------------------------------------------------------------------------- limits


def test_reading_pauses_while_pipelined_requests_are_pending() -> None:
    gate = asyncio.Event()

    async def wait_for_gate(request: Request) -> Response:
        await gate.wait()
        return Response(200, request.path.encode())

    async def scenario() -> None:
        async with listening(wait_for_gate, ServerLimits(requests_ahead_max=4)) as listener, Client(listener) as client:
            for number in range(20):
                client.send(get(f"/{number}"))
                await client.writer.drain()
            await until(lambda: listener.connections)
            (connection,) = listener.connections
            await until(lambda: connection.is_held)
            gate.set()
            assert len(codes_and_bodies(await client.read("/19"))) == 20
            assert not connection.is_held

    run_scenario(scenario)


def test_reading_pauses_while_the_body_is_not_read() -> None:
    gate = asyncio.Event()

    async def wait_for_gate(request: Request) -> Response:
        await gate.wait()
        return Response(200, str(len(await request.read(10_000_000))).encode())

    async def scenario() -> None:
        async with listening(wait_for_gate) as listener, Client(listener) as client:
            client.send(post("x" * 5_000_000))
            await until(lambda: any(connection.is_held for connection in listener.connections))
            gate.set()
            assert codes_and_bodies(await client.read("5000000")) == ["200 5000000"]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        pytest.param("", [], id="nothing sent"),
        pytest.param("GET / HTTP/1.1\r\nHo", [], id="an incomplete head"),
        pytest.param(get("/a"), ["200 GET /a "], id="idle after a request"),
        pytest.param(post("xxx", "/unread")[:-1], ["404 not read"], id="an incomplete unread body"),
        pytest.param(post("xxx", "/a")[:-1], [], id="an incomplete body"),
    ],
)
def test_an_idle_connection_is_closed(sent: str, received: list[str]) -> None:
    async def scenario() -> None:
        async with listening(echo, QUICK) as listener, Client(listener) as client:
            client.send(sent)
            assert codes_and_bodies(await client.read_all()) == received
            await until(lambda: not listener.connections)

    run_scenario(scenario)


def test_a_connection_that_sends_a_head_slowly_is_closed() -> None:
    async def scenario() -> None:
        async with listening(echo, QUICK) as listener, Client(listener) as client:
            client.send("GET / HTTP/1.1\r\nX: ")
            await until(lambda: listener.connections)
            with suppress(ConnectionError):  # the server may close between any two writes
                while listener.connections:
                    client.send("x")
                    await client.writer.drain()
                    await CLOCK.wait(QUICK.check_interval_s / 4)
            await until(lambda: not listener.connections)

    run_scenario(scenario)


def test_a_connection_with_a_running_request_is_not_idle() -> None:
    gate = asyncio.Event()

    async def wait_for_gate(request: Request) -> Response:
        await gate.wait()
        return Response(200, b"at last")

    async def scenario() -> None:
        async with listening(wait_for_gate, QUICK) as listener, Client(listener) as client:
            client.send(get())
            await until(lambda: any(not connection.is_idle for connection in listener.connections))
            (connection,) = listener.connections
            for _ in range(3 * listener.idle_checks):
                connection.check()
            gate.set()
            assert codes_and_bodies(await client.read("at last")) == ["200 at last"]

    run_scenario(scenario)


def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    async def large(request: Request) -> Response:
        return Response(200, b"x" * 50_000_000)

    async def scenario() -> None:
        async with listening(large, QUICK) as listener, Client(listener) as client:
            client.send(get())
            await client.read("\r\n\r\n")
            await until(lambda: not listener.connections)

    run_scenario(scenario)


class SlowTransport(asyncio.Transport):
    """A transport whose client reads a fixed number of bytes between two checks."""

    def __init__(self, backlog_bytes: int, bytes_per_check: int) -> None:
        super().__init__()
        self.backlog_bytes = backlog_bytes
        self.bytes_per_check = bytes_per_check
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        self.backlog_bytes -= self.bytes_per_check
        return self.backlog_bytes

    def close(self) -> None:
        pass

    def abort(self) -> None:
        self.is_aborted = True


@pytest.mark.parametrize(
    ("bytes_per_check", "is_cut_off"),
    [pytest.param(0, True, id="reads nothing"), pytest.param(1, False, id="reads slowly")],
)
def test_a_closing_connection_is_aborted_if_the_client_reads_nothing(bytes_per_check: int, is_cut_off: bool) -> None:
    """Also if the remaining data is below the limit at which writers wait."""

    async def scenario() -> None:
        listener = HttpListener(echo, CLOCK, host="", port=0, tls=None, limits=QUICK)
        transport = SlowTransport(10_000, bytes_per_check)
        connection = ServerConnection(listener)
        connection.connection_made(transport)
        connection.close()
        for _ in range(3 * listener.idle_checks):
            connection.check()
        assert transport.is_aborted == is_cut_off
        connection.connection_lost(None)

    run_scenario(scenario)


# ------------------------------------------------------------------------------------ clients that disconnect


@pytest.mark.parametrize(
    ("ends_with_client", "end"),
    [pytest.param(True, "cancelled", id="cancelled"), pytest.param(False, "done", id="completed")],
)
def test_work_for_a_disconnected_client_is_cancelled_only_if_configured(ends_with_client: bool, end: str) -> None:
    ends: list[str] = []
    gate = asyncio.Event()

    async def works(request: Request) -> Response:
        ends.append("begun")
        try:
            await gate.wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        ends.append("done")
        return Response(200, b"")

    async def scenario() -> None:
        async with listening(works, ends_with_client=ends_with_client) as listener:
            async with Client(listener) as client:
                client.send(get())
                await until(lambda: ends == ["begun"])
            await until(lambda: not listener.connections)
            await until(lambda: len(ends) == 2 or not ends_with_client)
            gate.set()
            await until(lambda: len(ends) == 2)
        assert ends == ["begun", end]

    run_scenario(scenario)


def test_an_incomplete_body_is_an_error_for_its_reader() -> None:
    received: list[type[Exception]] = []

    async def reads(request: Request) -> Response:
        try:
            await request.read(100)
        except ConnectionError as error:
            received.append(type(error))
            raise
        return Response(200, b"")

    async def scenario() -> None:
        async with listening(reads) as listener:
            async with Client(listener) as client:
                client.send(post("xxx")[:-1])
                await until(lambda: bool(listener.connections))
                await client.writer.drain()
            await until(lambda: bool(received))
        assert received == [ConnectionResetError]

    run_scenario(scenario)


def test_on_lost_is_called_when_the_client_disconnects() -> None:
    calls: list[str] = []

    async def lasts(request: Request) -> Response:
        lost = asyncio.Event()
        request.connection.on_lost = lost.set
        await lost.wait()
        calls.append("lost")
        return Response(200, b"")

    async def scenario() -> None:
        async with listening(lasts) as listener:
            async with Client(listener) as client:
                client.send(get())
                await until(lambda: any(connection.on_lost for connection in listener.connections))
            await until(lambda: calls == ["lost"])

    run_scenario(scenario)


def test_a_large_body_is_sent_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"x" * (3 * SLICE_BYTES) + b"end"
    written: list[int] = []
    write = ServerConnection.write

    def record_length(connection: ServerConnection, data: bytes) -> None:
        written.append(len(data))
        write(connection, data)

    async def large(request: Request) -> Response:
        return Response(200, body)

    async def scenario() -> None:
        async with listening(large) as listener, Client(listener) as client:
            client.send(get("/", "Connection: close"))
            assert codes_and_bodies(await client.read_all()) == [f"200 {body.decode()}"]

    monkeypatch.setattr(ServerConnection, "write", record_length)
    run_scenario(scenario)
    assert written[1:] == [SLICE_BYTES, SLICE_BYTES, SLICE_BYTES, 3]
