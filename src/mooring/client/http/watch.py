"""Watches over HTTP: one line of JSON for each event, read as it arrives.

Input: the bytes of an answer that does not end. Output: watch events, in batches.

1. An event is delivered when its line is complete. An incomplete last line is dropped: the next watch delivers the
   event.
2. Events before an error are delivered before the error.
3. An object is decoded once, from its line into the view of the reader. Nothing is decoded twice to find the
   resourceVersion.
4. A line has at most `LINE_BYTES_MAX`. Long lines are collected in pieces and joined once.

The object is cut out of its line by position, because skipping JSON costs half of decoding it, and kube-apiserver
always writes `{"type":"ADDED","object":…}`. A line of any other form is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self, cast

import msgspec

from mooring.api.decode import decode_as
from mooring.api.views.meta import ApiObject, View
from mooring.client.errors import ClientError, NoAnswerError, ServerError
from mooring.client.http.errors import error_of_event
from mooring.client.interface import AnyView, Change, WatchEvent

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
