"""Items of a List, as raw objects or views; complete watch events, and then the error that ended the watch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from mooring.api.decode import UntypedObject, decode_as
from mooring.api.errors import DecodeError
from mooring.api.kinds import POD, REPLICA_SET, Kind
from mooring.api.views.meta import View
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, ExpiredError, NoAnswerError, ServerError, TooManyRequestsError
from mooring.client.http.http_connection import BrokenResponseError
from mooring.client.http.list_watch import HttpEvent, HttpItems, HttpWatch, listing_of
from mooring.client.interface import Change, Listing
from mooring.kit.loop import run


@pytest.mark.parametrize(
    ("kind", "answer", "expected"),
    [
        pytest.param(
            POD,
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}',
            Listing([b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}'], "7"),
            id="items without kind get it",
        ),
        pytest.param(
            REPLICA_SET,
            b'{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},'
            b'"items":[{"kind":"ReplicaSet","apiVersion":"apps/v1"},{"apiVersion":"apps/v1","kind":"ReplicaSet"},{}]}',
            Listing(
                [
                    b'{"kind":"ReplicaSet","apiVersion":"apps/v1"}',
                    b'{"apiVersion":"apps/v1","kind":"ReplicaSet"}',
                    b"{}",
                ],
                "7",
                "t",
                3,
            ),
            id="items with kind keep it",
        ),
        pytest.param(POD, b'{"metadata":{"resourceVersion":"7"},"items":null}', Listing([], "7"), id="null items"),
    ],
)
def test_listing_of_a_response(kind: Kind, answer: bytes, expected: Listing) -> None:
    assert listing_of(kind, answer) == expected


PAGE = b'{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t"},"items":[%b]}\n'


def test_items_are_decoded_as_views_in_one_step() -> None:
    listing = listing_of(POD, PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{"nodeName":"n"}}')
    assert isinstance(listing.items, HttpItems)
    (views,) = listing.items.parts(Pod)
    assert [(view.metadata.name, view.spec.node_name) for view in views if isinstance(view, Pod)] == [
        ("a", ""),
        ("b", "n"),
    ]
    assert (len(listing.items), listing.items[1][:14], list(listing.items[:0])) == (2, b'{"kind":"Pod",', [])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(PAGE % b"", [[]], id="no items"),
        pytest.param(PAGE % b'{"metadata":{"name":"a"}}', [["a"]], id="one"),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},{"metadata":{"name":"c"}}',
            [["a"], ["b"], ["c"]],
            id="several",
        ),
        pytest.param(
            PAGE % b'{"kind":"Pod","metadata":{"name":"a"}},{"kind":"Pod","metadata":{"name":"b"}}',
            [["a"], ["b"]],
            id="items with kind",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"kind":"Pod","metadata":{"name":"b"}}',
            [["a", "b"]],
            id="some items with kind",
        ),
        pytest.param(PAGE % b'{},{"metadata":{"name":"b"}},{}', [["", "b", ""]], id="empty items"),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"},"x":[{"metadata":{}},{"metadata":{}}]},{"metadata":{"name":"b"}}',
            [["one by one", "a", "b"]],
            id="a nested list in the first item",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"x":[{},{"metadata":{}}]},{"metadata":{}}',
            [["a"], ["one by one", "b", ""]],
            id="a nested list in another item",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"},{\\"metadata\\":{"}},{"metadata":{"name":"b"}}',
            [['},{"metadata":{'], ["b"]],
            id="a string that looks like an item boundary",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":null}},{"metadata":{"name":"c"}}',
            [["a"], ["one by one", "", "c"]],
            id="an item with null",
        ),
        pytest.param(
            b'{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"metadata":{}}',
            [["a", "b"]],
            id="items before metadata",
        ),
    ],
)
def test_parts_contain_all_items_in_order(
    answer: bytes, expected: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mooring.client.http.list_watch.PART_BYTES", 1)
    assert [_names(part) for part in HttpItems(POD, answer).parts(Pod)] == expected


def _names(part: Sequence[Pod | bytes]) -> list[str]:
    if isinstance(part, HttpItems):
        return ["one by one", *(decode_as(Pod, raw).metadata.name for raw in part)]
    return [view.metadata.name for view in part if isinstance(view, Pod)]


def test_a_truncated_page_is_an_error_when_its_last_part_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.client.http.list_watch.PART_BYTES", 1)
    parts = HttpItems(POD, (PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}')[:-4]).parts(Pod)
    assert _names(next(parts)) == ["a"]
    with pytest.raises(ServerError, match="something else than a list of pods"):
        list(next(parts))


@pytest.mark.parametrize(
    ("item", "view"),
    [
        pytest.param(b'{"metadata":{"name":null}}', Pod, id="an item with null"),
        pytest.param(b'{"metadata":{"name":["a"]}}', Pod, id="an undecodable item"),
        pytest.param(b'{"metadata":{"name":"a"}}', UntypedObject, id="an untyped view"),
    ],
)
def test_items_that_are_decoded_one_by_one(item: bytes, view: type[View]) -> None:
    items = listing_of(POD, PAGE % item).items
    assert isinstance(items, HttpItems)
    assert list(items.parts(view)) == [items]
    assert len(items) == 1


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        pytest.param(PAGE % b"{}", "t", id="before the items"),
        pytest.param(b'{"items":[{}],"metadata":{"resourceVersion":"7","continue":"t"}}', "t", id="after the items"),
        pytest.param(
            b'{"a":{"b":1,"items":[]},"metadata":{"resourceVersion":"7"},"items":[{}]}', "", id="after a nested list"
        ),
    ],
)
def test_metadata_may_be_before_or_after_the_items(answer: bytes, token: str) -> None:
    listing = listing_of(POD, answer)
    assert (listing.revision, listing.continue_token, len(listing.items)) == ("7", token, 1)


def test_a_truncated_page_is_an_error_when_it_is_read() -> None:
    listing = listing_of(POD, (PAGE % b'{"metadata":{"name":"a"}}')[:-4])
    with pytest.raises(ServerError, match="something else than a list of pods"):
        list(listing.items)


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"items":3}'])
def test_responses_that_are_not_lists_are_rejected(answer: bytes) -> None:
    with pytest.raises(ServerError, match="something else than a list of pods"):
        listing_of(POD, answer)


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
    monkeypatch.setattr("mooring.client.http.list_watch.LINE_BYTES_MAX", 100)
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
