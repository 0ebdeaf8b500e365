"""Bodies of requests: limits, buffering, discarding."""

from __future__ import annotations

import pytest

from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.request import Body, BodyTooLargeError, BrokenBodyError


def filled(*pieces: bytes, length: int | None = None, is_complete: bool = True) -> Body:
    body = Body(length, ahead_bytes_max=10)
    for piece in pieces:
        body.feed(piece)
    if is_complete:
        body.end()
    return body


async def read(body: Body, limit: int) -> bytes:
    body.expect(limit)
    return await body.read()


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((b"hello",), id="one piece"),
        pytest.param((b"he", b"llo"), id="two pieces"),
        pytest.param((b"h", b"e", b"l", b"l", b"o"), id="many pieces"),
        pytest.param((b"hello", b""), id="an empty piece"),
    ],
)
def test_read_returns_the_complete_body(pieces: tuple[bytes, ...]) -> None:
    assert run(read(filled(*pieces), 5)) == b"hello"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(filled(b"hello!"), id="received bytes"),
        pytest.param(filled(length=6, is_complete=False), id="announced length"),
        pytest.param(filled(b"hello", b"!", is_complete=False), id="received bytes of an incomplete body"),
    ],
)
def test_a_body_beyond_the_limit_is_an_error(body: Body) -> None:
    with pytest.raises(BodyTooLargeError):
        run(read(body, 5))


def test_read_waits_for_the_end_of_the_body() -> None:
    async def scenario() -> None:
        body = filled(b"he", is_complete=False)
        async with TaskGroup("test") as group:
            reading = group.start(read(body, 5), name="reader")
            body.feed(b"llo")
            body.end()
        assert reading.result() == b"hello"

    run(scenario())


@pytest.mark.parametrize(
    ("event", "error"),
    [
        pytest.param(lambda body: body.feed(b"llo!"), BodyTooLargeError, id="the body exceeds the limit"),
        pytest.param(lambda body: body.fail(BrokenBodyError("no chunk")), BrokenBodyError, id="the body is invalid"),
    ],
)
def test_a_waiting_read_raises_the_error_of_the_body(event: object, error: type[Exception]) -> None:
    async def error_of_read(body: Body) -> type[Exception] | None:
        try:
            await read(body, 5)
        except (BodyTooLargeError, ConnectionError) as found:
            return type(found)
        return None

    async def scenario() -> None:
        body = filled(b"he", is_complete=False)
        async with TaskGroup("test") as group:
            reading = group.start(error_of_read(body), name="reader")
            assert callable(event)
            event(body)
        assert reading.result() is error

    run(scenario())


def test_a_body_is_ahead_until_a_reader_expects_it() -> None:
    body = filled(b"123456789", is_complete=False)
    were = [body.is_ahead]
    body.feed(b"0")
    were.append(body.is_ahead)
    body.expect(100)
    assert [*were, body.is_ahead] == [False, True, False]


def test_a_dropped_body_is_discarded() -> None:
    async def scenario() -> None:
        body = filled(b"1234567890", is_complete=False)
        async with TaskGroup("test") as group:
            group.start(body.wait_dropped(), name="waiting")
            body.drop()
            body.feed(b"1234567890" * 100)
            assert not body.is_ahead
            body.end()

    run(scenario())


def test_a_rejected_body_that_never_ends_is_an_error() -> None:
    async def scenario() -> None:
        body = filled(b"123456", is_complete=False)
        with pytest.raises(BodyTooLargeError):
            body.expect(5)
        body.fail(ConnectionResetError("gone"))
        with pytest.raises(ConnectionResetError):
            await body.wait_dropped()

    run(scenario())
