"""HttpWatch: returns complete events, and then the error that ended the watch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mooring.api.errors import DecodeError
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, ExpiredError, NoAnswerError, ServerError, TooManyRequestsError
from mooring.client.http.http_connection import BrokenResponseError
from mooring.client.http.watch import HttpEvent, HttpWatch
from mooring.client.interface import Change
from mooring.kit.loop import run

POD_A = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}'
POD_B = b'{"metadata":{"labels":{"resourceVersion":"1"},"name":"b","resourceVersion":"8"}}'
GONE = b'{"kind":"Status","message":"too old resource version: 1 (5)","reason":"Expired","code":410}'
BUSY = b'{"kind":"Status","message":"later","code":429,"details":{"retryAfterSeconds":5}}'


def line(change: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (change.encode(), raw)


class Stream:
    """The body of a response, in the pieces in which it arrives."""

    def __init__(self, chunks: list[bytes | Exception]) -> None:
        self._chunks = chunks

    async def read_any(self) -> bytes:
        chunk = self._chunks.pop(0) if self._chunks else b""
        if isinstance(chunk, Exception):
            raise chunk
        return chunk


def read(*chunks: bytes | Exception) -> list[list[str] | ClientError]:
    """Batches of events, and the error at the end if there is one."""

    @asynccontextmanager
    async def open_stream() -> AsyncIterator[Stream]:
        yield Stream(list(chunks))

    async def main() -> list[list[str] | ClientError]:
        received: list[list[str] | ClientError] = []
        async with HttpWatch(open_stream(), "pods") as watch:
            try:
                while batch := await watch.next_batch():
                    received.append([f"{event.change.value} {event.revision}" for event in batch])
            except ClientError as error:
                received.append(error)
        return received

    return run(main())


@pytest.mark.parametrize(
    ("chunks", "received"),
    [
        pytest.param([line("ADDED", POD_A)], [["ADDED 7"]], id="an event"),
        pytest.param(
            [line("ADDED", POD_A) + line("BOOKMARK", POD_B)],
            [["ADDED 7", "BOOKMARK 8"]],
            id="several events",
        ),
        pytest.param(
            [line("MODIFIED", POD_A)[:30], line("MODIFIED", POD_A)[30:]], [["MODIFIED 7"]], id="in two pieces"
        ),
        pytest.param(
            [bytes([letter]) for letter in line("DELETED", POD_A) + line("ADDED", POD_B)],
            [["DELETED 7"], ["ADDED 8"]],
            id="byte by byte",
        ),
        pytest.param(
            [line("ADDED", POD_A) + line("ADDED", POD_B)[:9], line("ADDED", POD_B)[9:] + line("DELETED", POD_B)],
            [["ADDED 7"], ["ADDED 8", "DELETED 8"]],
            id="one and a half events, then the rest",
        ),
        pytest.param([b"\n\n" + line("ADDED", POD_A) + b"\n"], [["ADDED 7"]], id="empty lines are ignored"),
        pytest.param([b'{ "object": %b, "type": "ADDED" }\n' % POD_A], [["ADDED 7"]], id="another order of fields"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_batches_of_events(chunks: list[bytes], received: list[list[str]]) -> None:
    assert read(*chunks) == received


@pytest.mark.parametrize(
    ("ending", "error", "words"),
    [
        pytest.param([line("ADDED", POD_B)[:-9]], NoAnswerError, "in the middle of an event", id="half a line"),
        pytest.param([line("ADDED", POD_B)[:-1]], NoAnswerError, "in the middle", id="a line without its break"),
        pytest.param([BrokenResponseError("short")], NoAnswerError, "was cut: short", id="half a chunk"),
        pytest.param([ConnectionResetError()], NoAnswerError, "was cut: ConnectionResetError", id="a reset"),
        pytest.param([TimeoutError()], NoAnswerError, "its time is over", id="a timeout"),
        pytest.param([line("ERROR", GONE)], ExpiredError, "too old resource version: 1 (5)", id="an expired revision"),
        pytest.param([line("ERROR", BUSY)], TooManyRequestsError, "later", id="the server is busy"),
        pytest.param([line("ERROR", b'{"a":1}')], ServerError, "cannot be read", id="an error without a Status"),
        pytest.param([b"<html></html>\n"], ServerError, "a line that is not an event", id="HTML"),
        pytest.param([line("EXPLODED", POD_A)], ServerError, "the unknown type 'EXPLODED'", id="an unknown event type"),
    ],
)
def test_events_before_an_error_are_returned_before_it_is_raised(
    ending: list[bytes | Exception], error: type[ClientError], words: str
) -> None:
    for chunks in ([line("ADDED", POD_A), *ending], _joined(line("ADDED", POD_A), ending)):
        batch, failure = read(*chunks)
        assert batch == ["ADDED 7"]
        assert isinstance(failure, error)
        assert words in str(failure)


def test_events_after_an_error_event_are_ignored() -> None:
    received = read(line("ADDED", POD_A) + line("ERROR", GONE) + line("ADDED", POD_B))
    assert received[0] == ["ADDED 7"]
    assert isinstance(received[1], ExpiredError)


def test_a_line_has_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.client.http.watch.LINE_BYTES_MAX", 100)
    (failure,) = read(b"x" * 60, b"x" * 60)
    assert "more than 100 bytes" in str(failure)


def test_an_event_is_decoded_once() -> None:
    event = HttpEvent(Change.ADDED, POD_B)
    assert event.view(Pod) is event.view(Pod)
    assert event.revision == "8"
    assert (event.raw, event.change) == (POD_B, Change.ADDED)


def test_an_undecodable_event_has_a_revision() -> None:
    event = HttpEvent(Change.ADDED, b'{"metadata":{"name":["x"],"resourceVersion":"9"}}')
    with pytest.raises(DecodeError):
        event.view(Pod)
    assert event.revision == "9"
    assert HttpEvent(Change.ADDED, b'{"metadata":').revision == ""


def _joined(first: bytes, ending: list[bytes | Exception]) -> list[bytes | Exception]:
    (last,) = ending
    return [first + last] if isinstance(last, bytes) else [first, last]
