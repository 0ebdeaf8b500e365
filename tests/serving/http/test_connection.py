"""One connection: requests and responses as bytes."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress

import pytest

from mooring.serving.http.body import BodyTooLargeError
from mooring.serving.http.connection import SLICE_BYTES, ServerConnection
from mooring.serving.http.listener import HttpListener
from mooring.serving.http.parser import ServerLimits
from mooring.serving.http.request import Request
from mooring.serving.http.response import Response
from tests.serving.http.loopback import CLOCK, QUICK, Client, get, listening, play, post
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


def told(answers: str) -> list[str]:
    """Status codes and bodies of responses."""
    texts = re.split(r"(?=HTTP/1\.\d \d{3} )", answers)[1:]
    return [f"{text[9:12]} {text.partition(chr(13) + chr(10) + chr(13) + chr(10))[2]}" for text in texts]


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        pytest.param(get("/a"), ["200 GET /a "], id="a request"),
        pytest.param(post("x", "/a") + get("/b"), ["200 POST /a x", "200 GET /b "], id="another one is sent ahead"),
        pytest.param(get("/a", method="HEAD") + get("/b"), ["200 ", "200 GET /b "], id="only the head"),
        pytest.param(CHUNKS + "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", ["200 POST / abc"], id="chunks"),
        pytest.param(post("x" * 101) + get("/b"), ["413 too much", "200 GET /b "], id="a body that is too long"),
        pytest.param(
            CHUNKS + "65\r\n" + "x" * 101 + "\r\n0\r\n\r\n" + get("/b"),
            ["413 too much", "200 GET /b "],
            id="chunks that are too long together",
        ),
        pytest.param(post("x", "/unread") + get("/b"), ["404 not read", "200 GET /b "], id="a body that nobody reads"),
        pytest.param(post("x" * 200_000, "/unread") + get("/b"), ["404 not read", "200 GET /b "], id="a long one"),
        pytest.param(
            get("/fails") + get("/b"), ["500 500 Internal Server Error", "200 GET /b "], id="a handler that fails"
        ),
        pytest.param("".join(get(f"/{n}") for n in range(50)), [f"200 GET /{n} " for n in range(50)], id="many"),
        pytest.param(get("/a", "Upgrade: x", "Connection: Upgrade"), ["200 GET /a "], id="a wish for something else"),
    ],
)
def test_responses_are_sent_in_order_on_one_connection(sent: str, answers: list[str]) -> None:
    async def story() -> None:
        async with listening(echo) as listener, Client(listener) as client:
            client.say(sent + get("/end"))
            assert told(await client.read("GET /end ")) == [*answers, "200 GET /end "]

    play(story)


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        pytest.param(get("/a", "Connection: close"), ["200 GET /a "], id="the client says so"),
        pytest.param(get("/a", "Connection: close") + get("/b"), ["200 GET /a "], id="and does not mean it"),
        pytest.param(get("/a", version="1.0"), ["200 GET /a "], id="an old client"),
        pytest.param(get("/a") + "garbage\r\n\r\n", ["200 GET /a ", "400 400 Bad Request"], id="garbage"),
        pytest.param(get("/a") + get(method="FROB"), ["200 GET /a ", "405 405 Method Not Allowed"], id="a new method"),
        pytest.param(get("/" + "a" * 17_000), ["431 431 Request Header Fields Too Large"], id="a long path"),
        pytest.param(CHUNKS + "1\r\na\r\nzz\r\n", ["400 400 Bad Request"], id="a chunk that is none"),
        pytest.param(get("/unread", "Transfer-Encoding: chunked") + "zz", ["404 not read"], id="one that nobody reads"),
    ],
)
def test_responses_after_which_the_connection_is_closed(sent: str, answers: list[str]) -> None:
    async def story() -> None:
        async with listening(echo) as listener, Client(listener) as client:
            client.say(sent)
            heard = await client.read_all()
            assert told(heard) == answers
            assert heard.startswith("HTTP/1.0") or "Connection: close" in heard or "not read" in heard

    play(story)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        pytest.param(post("xx", "/", "Expect: 100-continue")[:-2], "HTTP/1.1 100 Continue\r\n\r\n", id="it is wanted"),
        pytest.param(post("x" * 101, "/", "Expect: 100-continue")[:-101], "HTTP/1.1 413 ", id="it is too long"),
        pytest.param(post("xx", "/unread", "Expect: 100-continue")[:-2], "HTTP/1.1 404 ", id="it is not wanted"),
    ],
)
def test_expect_100_continue_is_answered_before_the_body(sent: str, answer: str) -> None:
    async def story() -> None:
        async with listening(echo) as listener, Client(listener) as client:
            client.say(sent)
            assert (await client.reader.readexactly(len(answer))).decode() == answer
            if "100" in answer:
                client.say("xx")
                assert told(await client.read("POST / xx")) == ["200 POST / xx"]
            else:
                assert "Connection: close" in await client.read_all()

    play(story)


@pytest.mark.parametrize(
    "body",
    [pytest.param("x" * 101, id="it is too long"), pytest.param("xx", id="it is not wanted")],
)
def test_the_connection_is_closed_after_a_rejected_expect_100_continue(body: str) -> None:
    """The body may never arrive, and the server would read the next request as the body."""
    path = "/" if len(body) > 100 else "/unread"

    async def story() -> None:
        async with listening(echo, QUICK) as listener, Client(listener) as client:
            client.say(post(body, path, "Expect: 100-continue")[: -len(body)])
            heard = await client.read_all()
            assert heard.count("HTTP/1.1") == heard.count("Connection: close") == 1

    play(story)


def test_a_client_that_sends_an_unread_body_gets_the_response() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with listening(echo) as listener:
            with socket.create_connection(("127.0.0.1", listener.port)) as client:
                client.setblocking(False)
                await loop.sock_sendall(client, post("x" * 5_000_000, "/unread", "Connection: close").encode())
                assert told((await loop.sock_recv(client, 1_000)).decode()) == ["404 not read"]

    play(story)


def test_a_client_with_many_pipelined_requests_does_not_delay_others() -> None:
    asked: list[str] = []

    async def notes(request: Request) -> Response:
        asked.append(request.path)
        return Response(200, request.path.encode())

    async def story() -> None:
        async with listening(notes) as listener, Client(listener) as greedy, Client(listener) as other:
            await until(lambda: len(listener.connections) == 2)
            greedy.say("".join(get(f"/{number}") for number in range(1_000)))
            other.say(get("/other"))
            await other.read("/other")
        assert asked.index("/other") < 500

    play(story)


def test_a_connection_error_raised_by_a_handler_is_an_internal_error() -> None:
    async def refused(request: Request) -> Response:
        raise ConnectionRefusedError("somebody else does not listen")

    async def story() -> None:
        async with listening(refused) as listener, Client(listener) as client:
            client.say(get("/", "Connection: close"))
            assert told(await client.read_all()) == ["500 500 Internal Server Error"]

    play(story)


def test_an_invalid_response_closes_only_its_connection() -> None:
    failures: list[str] = []

    async def broken(request: Request) -> Response:
        headers = (("X", "\ud800"),) if request.path == "/broken" else ()  # a lone surrogate cannot be encoded
        return Response(200, b"hello", headers=headers)

    async def story() -> None:
        async with (
            listening(broken, on_failure=lambda: failures.append("one")) as listener,
            Client(listener) as other,
            Client(listener) as client,
        ):
            client.say(get("/broken"))
            assert await client.read_all() == ""
            other.say(get())
            assert told(await other.read("hello")) == ["200 hello"]

    play(story)
    assert failures == ["one"]


def test_failures_of_handlers_are_counted() -> None:
    failures: list[str] = []

    async def story() -> None:
        async with listening(echo, on_failure=lambda: failures.append("one")) as listener, Client(listener) as client:
            client.say(get("/fails", "Connection: close"))
            await client.read_all()

    play(story)
    assert failures == ["one"]


# ----------------------------------------------------------------------------------------------------- limits


def test_reading_pauses_while_pipelined_requests_are_pending() -> None:
    gate = asyncio.Event()

    async def waits(request: Request) -> Response:
        await gate.wait()
        return Response(200, request.path.encode())

    async def story() -> None:
        async with listening(waits, ServerLimits(requests_ahead_max=4)) as listener, Client(listener) as client:
            for number in range(20):
                client.say(get(f"/{number}"))
                await client.writer.drain()
            await until(lambda: listener.connections)
            (connection,) = listener.connections
            await until(lambda: connection.is_held)
            gate.set()
            assert len(told(await client.read("/19"))) == 20
            assert not connection.is_held

    play(story)


def test_reading_pauses_while_the_body_is_not_read() -> None:
    gate = asyncio.Event()

    async def waits(request: Request) -> Response:
        await gate.wait()
        return Response(200, str(len(await request.read(10_000_000))).encode())

    async def story() -> None:
        async with listening(waits) as listener, Client(listener) as client:
            client.say(post("x" * 5_000_000))
            await until(lambda: any(connection.is_held for connection in listener.connections))
            gate.set()
            assert told(await client.read("5000000")) == ["200 5000000"]

    play(story)


@pytest.mark.parametrize(
    ("sent", "heard"),
    [
        pytest.param("", [], id="nothing was said"),
        pytest.param("GET / HTTP/1.1\r\nHo", [], id="half of a head"),
        pytest.param(get("/a"), ["200 GET /a "], id="nothing more was said"),
        pytest.param(post("xxx", "/unread")[:-1], ["404 not read"], id="a body that nobody wants does not end"),
        pytest.param(post("xxx", "/a")[:-1], [], id="a body that somebody waits for does not end"),
    ],
)
def test_an_idle_connection_is_closed(sent: str, heard: list[str]) -> None:
    async def story() -> None:
        async with listening(echo, QUICK) as listener, Client(listener) as client:
            client.say(sent)
            assert told(await client.read_all()) == heard
            await until(lambda: not listener.connections)

    play(story)


def test_a_connection_that_sends_a_head_slowly_is_closed() -> None:
    async def story() -> None:
        async with listening(echo, QUICK) as listener, Client(listener) as client:
            client.say("GET / HTTP/1.1\r\nX: ")
            await until(lambda: listener.connections)
            with suppress(ConnectionError):  # the server may close between any two writes
                while listener.connections:
                    client.say("x")
                    await client.writer.drain()
                    await CLOCK.wait(QUICK.look_s / 4)
            await until(lambda: not listener.connections)

    play(story)


def test_a_connection_with_a_running_request_is_not_idle() -> None:
    gate = asyncio.Event()

    async def waits(request: Request) -> Response:
        await gate.wait()
        return Response(200, b"at last")

    async def story() -> None:
        async with listening(waits, QUICK) as listener, Client(listener) as client:
            client.say(get())
            await until(lambda: any(not connection.is_idle for connection in listener.connections))
            (connection,) = listener.connections
            for _ in range(3 * listener.idle_looks):
                connection.look()
            gate.set()
            assert told(await client.read("at last")) == ["200 at last"]

    play(story)


def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    async def large(request: Request) -> Response:
        return Response(200, b"x" * 50_000_000)

    async def story() -> None:
        async with listening(large, QUICK) as listener, Client(listener) as client:
            client.say(get())
            await client.read("\r\n\r\n")
            await until(lambda: not listener.connections)

    play(story)


class SlowTransport(asyncio.Transport):
    """A transport whose client reads a fixed number of bytes between two checks."""

    def __init__(self, backlog_bytes: int, bytes_a_look: int) -> None:
        super().__init__()
        self.backlog_bytes = backlog_bytes
        self.bytes_a_look = bytes_a_look
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        self.backlog_bytes -= self.bytes_a_look
        return self.backlog_bytes

    def close(self) -> None:
        pass

    def abort(self) -> None:
        self.is_aborted = True


@pytest.mark.parametrize(
    ("bytes_a_look", "is_cut_off"),
    [pytest.param(0, True, id="nothing"), pytest.param(1, False, id="a little now and then")],
)
def test_a_closing_connection_is_aborted_if_the_client_reads_nothing(bytes_a_look: int, is_cut_off: bool) -> None:
    """Also if the remaining data is below the limit at which writers wait."""

    async def story() -> None:
        listener = HttpListener(echo, CLOCK, host="", port=0, tls=None, limits=QUICK)
        transport = SlowTransport(10_000, bytes_a_look)
        connection = ServerConnection(listener)
        connection.connection_made(transport)
        connection.close()
        for _ in range(3 * listener.idle_looks):
            connection.look()
        assert transport.is_aborted == is_cut_off
        connection.connection_lost(None)

    play(story)


# ------------------------------------------------------------------------------------ clients that disconnect


@pytest.mark.parametrize(
    ("ends_with_client", "end"),
    [pytest.param(True, "cancelled", id="cancelled"), pytest.param(False, "done", id="done nevertheless")],
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

    async def story() -> None:
        async with listening(works, ends_with_client=ends_with_client) as listener:
            async with Client(listener) as client:
                client.say(get())
                await until(lambda: ends == ["begun"])
            await until(lambda: not listener.connections)
            await until(lambda: len(ends) == 2 or not ends_with_client)
            gate.set()
            await until(lambda: len(ends) == 2)
        assert ends == ["begun", end]

    play(story)


def test_an_incomplete_body_is_an_error_for_its_reader() -> None:
    heard: list[type[Exception]] = []

    async def reads(request: Request) -> Response:
        try:
            await request.read(100)
        except ConnectionError as error:
            heard.append(type(error))
            raise
        return Response(200, b"")

    async def story() -> None:
        async with listening(reads) as listener:
            async with Client(listener) as client:
                client.say(post("xxx")[:-1])
                await until(lambda: bool(listener.connections))
                await client.writer.drain()
            await until(lambda: bool(heard))
        assert heard == [ConnectionResetError]

    play(story)


def test_on_lost_is_called_when_the_client_disconnects() -> None:
    told_of: list[str] = []

    async def lasts(request: Request) -> Response:
        gone = asyncio.Event()
        request.connection.on_lost = gone.set
        await gone.wait()
        told_of.append("gone")
        return Response(200, b"")

    async def story() -> None:
        async with listening(lasts) as listener:
            async with Client(listener) as client:
                client.say(get())
                await until(lambda: any(connection.on_lost for connection in listener.connections))
            await until(lambda: told_of == ["gone"])

    play(story)


def test_a_large_body_is_sent_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"x" * (3 * SLICE_BYTES) + b"end"
    written: list[int] = []
    write = ServerConnection.write

    def noted(connection: ServerConnection, data: bytes) -> None:
        written.append(len(data))
        write(connection, data)

    async def large(request: Request) -> Response:
        return Response(200, body)

    async def story() -> None:
        async with listening(large) as listener, Client(listener) as client:
            client.say(get("/", "Connection: close"))
            assert told(await client.read_all()) == [f"200 {body.decode()}"]

    monkeypatch.setattr(ServerConnection, "write", noted)
    play(story)
    assert written[1:] == [SLICE_BYTES, SLICE_BYTES, SLICE_BYTES, 3]
