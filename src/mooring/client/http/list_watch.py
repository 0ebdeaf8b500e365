"""Lists and watches over HTTP: from the bytes of an answer to single objects or views.

A list: the input is the answer to a list request; the output is a `Listing`, whose items look as if each had been read
alone; or their views, a part at a time.

1. Items are cut out of the answer without decoding, and only when they are read as bytes. A reader of views decodes
   parts of the answer instead, without a copy of each item.
2. Items of a List have no kind and apiVersion. They are added.
3. Revision and continue token are known before any item is decoded, so that the next page can be requested meanwhile.
4. Views come in parts that fit into a processor cache: decoded at once, 500 pods take twice as long and are cold when
   they are used. A part ends where an item seems to begin like the first one. This may be wrong (an item may hold a
   list of similar objects), but is never unnoticed: a part that ends inside of an item is invalid JSON. The rest is
   then decoded item by item.

A watch: one line of JSON for each event, read as it arrives. The input is an answer that does not end; the output is
watch events, in batches.

5. An event is delivered when its line is complete. An incomplete last line is dropped: the next watch delivers the
   event.
6. Events before an error are delivered before the error.
7. An object is decoded once, from its line into the view of the reader. Nothing is decoded twice to find the
   resourceVersion.
8. A line has at most `LINE_BYTES_MAX`. Long lines are collected in pieces and joined once.

The object is cut out of its line by position, because skipping JSON costs half of decoding it, and kube-apiserver
always writes `{"type":"ADDED","object":…}`. A line of any other form is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self, cast, overload

import msgspec

from mooring.api.decode import decode_as, decode_items
from mooring.api.kinds import Kind
from mooring.api.views.meta import ApiObject, View
from mooring.client.errors import ClientError, NoAnswerError, ServerError
from mooring.client.http.errors import error_of_event
from mooring.client.interface import AnyView, Change, Listing, WatchEvent


class ListMetadata(View):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class RawList(msgspec.Struct, rename="camel"):
    metadata: ListMetadata = ListMetadata()
    items: list[msgspec.Raw] | None = None


class _ListStart(msgspec.Struct, rename="camel"):
    metadata: ListMetadata


_decoder = msgspec.json.Decoder(RawList)
_start_decoder = msgspec.json.Decoder(_ListStart)
_type_meta_starts: dict[Kind, bytes] = {}
_TYPED = (b'{"kind":', b'{"apiVersion":')
_ITEMS = b',"items":['
_ITEM_METADATA = b'"metadata":{'
_ITEM_START_BYTES_MAX = 256
PART_BYTES = 1 << 16
_START_BYTES_MAX = 1 << 14
"""Kubernetes writes the metadata of a List before its items. A continue token has a few hundred bytes."""


def listing_of(kind: Kind, answer: bytes) -> Listing:
    """Raises `ServerError` if the answer is not a List, now or when an item is read."""
    metadata, items = _metadata_at_start(answer), HttpItems(kind, answer)
    if metadata is None:
        metadata = items.cut().metadata
    return Listing(items, metadata.resource_version, metadata.continue_token, metadata.remaining_item_count)


class HttpItems(Sequence[bytes]):
    """The items of a List, cut out of the answer when one is read."""

    def __init__(self, kind: Kind, answer: bytes) -> None:
        self._kind = kind
        self._answer = answer
        self._cut_items: list[bytes] | None = None

    def parts(self, view: type[AnyView]) -> Iterator[list[AnyView] | Sequence[bytes]]:
        """All items in parts, in order: lists of views; as the last part, items that must be decoded one by one."""
        start = 0
        for end in _ends_of_parts(self._answer):
            part = self._answer[start:end] + b"]}" if end else self._answer[start:]
            part = b'{"items":[' + part if start else part
            views = decode_items(view, part)
            if views is None:
                yield HttpItems(self._kind, b'{"items":[' + self._answer[start:]) if start else self
                return
            yield views
            start = end + 1

    def cut(self) -> RawList:
        try:
            found = _decoder.decode(self._answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServerError(
                f"the server answered with something else than a list of {self._kind.resource}: {error}"
            ) from None
        start = _type_meta_start(self._kind)
        self._cut_items = [_with_type_meta(start, bytes(item)) for item in found.items or ()]
        return found

    @property
    def _items(self) -> list[bytes]:
        if self._cut_items is None:
            self.cut()
        assert self._cut_items is not None
        return self._cut_items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._items)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == list(other)

    __hash__ = None  # type: ignore[assignment]


def _ends_of_parts(answer: bytes) -> Iterator[int]:
    """The position of the comma behind each part; 0 for the last part, which ends with the answer."""
    start = answer.find(_ITEMS, 0, _START_BYTES_MAX) + len(_ITEMS)
    metadata = answer.find(_ITEM_METADATA, start, start + _ITEM_START_BYTES_MAX)
    if start >= len(_ITEMS) and metadata >= 0:
        boundary = b"}," + answer[start : metadata + len(_ITEM_METADATA)]
        while (found := answer.find(boundary, start + PART_BYTES)) >= 0:
            start = found + 2
            yield found + 1
    yield 0


def _metadata_at_start(answer: bytes) -> ListMetadata | None:
    """The metadata in front of the items, if it is there."""
    end = answer.find(_ITEMS, 0, _START_BYTES_MAX)
    if end < 0:
        return None
    try:
        return _start_decoder.decode(answer[:end] + b"}").metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _with_type_meta(start: bytes, item: bytes) -> bytes:
    if item.startswith(_TYPED) or item == b"{}":
        return item
    return start + item[1:]


def _type_meta_start(kind: Kind) -> bytes:
    start = _type_meta_starts.get(kind)
    if start is None:
        start = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()
        _type_meta_starts[kind] = start
    return start


LINE_BYTES_MAX = 64 << 20

_USUAL = tuple((f'{{"type":"{change.value}","object":'.encode(), change) for change in Change)
_ERROR = "ERROR"


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Revision(msgspec.Struct):
    metadata: _Metadata = _Metadata()


_line_decoder = msgspec.json.Decoder(_Line)
_revision_decoder = msgspec.json.Decoder(_Revision)


class HttpEvent:
    """One event."""

    __slots__ = ("_revision", "_view", "_view_kind", "change", "raw")

    def __init__(self, change: Change, raw: bytes) -> None:
        self.change = change
        self.raw = raw
        self._revision = ""
        self._view: View | None = None
        self._view_kind: type[View] | None = None

    @property
    def revision(self) -> str:
        if not self._revision:
            self._revision = self._read_revision()
        return self._revision

    def view(self, kind: type[AnyView]) -> AnyView:
        if self._view_kind is not kind:
            self._view = decode_as(kind, self.raw)
            self._view_kind = kind
        return cast(AnyView, self._view)

    def _read_revision(self) -> str:
        if isinstance(self._view, ApiObject):
            return self._view.metadata.resource_version
        try:
            return _revision_decoder.decode(self.raw).metadata.resource_version
        except msgspec.DecodeError:
            return ""


class ResponseStream(Protocol):
    """An answer that is read as it arrives."""

    async def read_any(self) -> bytes:
        """The next bytes; empty at the end. Raises `OSError`."""
        ...


class HttpWatch:
    """Implements `Watch` over HTTP."""

    def __init__(self, opening: AbstractAsyncContextManager[ResponseStream], what: str) -> None:
        """`opening` sends the request; `what` names the resource in errors."""
        self._opening = opening
        self._what = what
        self._stream: ResponseStream | None = None
        self._pieces: list[bytes] = []
        self._pieces_bytes = 0
        self._failure: ClientError | None = None

    async def __aenter__(self) -> Self:
        self._stream = await self._opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream = None
            await self._opening.__aexit__(None, None, None)

    async def next_batch(self) -> Sequence[WatchEvent]:
        assert self._stream is not None, "a watch is read outside of its `async with`"
        while self._failure is None:
            try:
                chunk = await self._stream.read_any()
            except OSError as error:
                text = "its time is over" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
                raise NoAnswerError(f"the watch of {self._what} was cut: {text}") from error
            if not chunk:
                return self._end()
            events = self._events_in(chunk)
            if events:
                return events
        raise self._failure

    def _end(self) -> Sequence[WatchEvent]:
        if self._pieces:
            raise NoAnswerError(f"the watch of {self._what} was cut in the middle of an event")
        return ()

    # ---------------------------------------------------------------------------------------------- the lines

    def _events_in(self, chunk: bytes) -> list[WatchEvent]:
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces, self._pieces_bytes = [], 0
        if rest:
            self._keep(rest)
        events: list[WatchEvent] = []
        for line in lines:
            event = self._event_of(line) if line else None
            if event is not None:
                events.append(event)
            if self._failure is not None:
                break
        return events

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._pieces_bytes += len(piece)
        if self._pieces_bytes > LINE_BYTES_MAX:
            self._failure = NoAnswerError(f"the watch of {self._what} has an event of more than {LINE_BYTES_MAX} bytes")

    def _event_of(self, line: bytes) -> HttpEvent | None:
        """The event of a line; None for an error, which is kept for later."""
        if line.endswith(b"}"):
            for start, change in _USUAL:
                if line.startswith(start):
                    return HttpEvent(change, line[len(start) : -1])
        try:
            event = _line_decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._failure = ServerError(f"the watch of {self._what} has a line that is not an event: {error}")
            return None
        raw = bytes(event.object)
        if event.type in Change.__members__:
            return HttpEvent(Change[event.type], raw)
        self._failure = (
            error_of_event(raw)
            if event.type == _ERROR
            else ServerError(f"the watch of {self._what} has an event of the unknown type {event.type!r}")
        )
        return None
