"""The client over a pipe: the promise, kept by another process of the same machine and the same cluster.

Comes in   requests, one end of a pair of sockets
Goes out   what the client at the other end answers (`pipe_server`)

Between a part of Mooring that has a process of its own and the API server that started it nothing is to be hidden and
nobody has to be told apart: no TLS, no headers, no rights to look up. A call is packed fields and an object's JSON.

 1. Calls that are under way when the other end goes have no answer (`NoAnswerError`): nobody knows what became of them.
    Whoever cannot go on without the other end says what is to be done then (`on_end`), before any of them fails.
 2. Whoever stops waiting says so, and the other end stops working on it where it can.
 3. What watches have told and nobody has read yet is bounded: beyond `UNREAD_BYTES_MAX` the pipe is not read until the
    readers have caught up. So a reader must not wait for an answer between two batches.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, cast

import msgspec

from mooring.api.decode import decode_as
from mooring.api.kinds import Kind
from mooring.api.views.base import View
from mooring.client import pipe_words as words
from mooring.client.errors import ClientError, NoAnswerError
from mooring.client.interface import (
    EVERYTHING,
    AnyView,
    Change,
    Deletion,
    JsonObject,
    Listing,
    PatchForm,
    Selection,
    WatchEvent,
)
from mooring.client.pipe_channel import Channel, open_channel

UNREAD_BYTES_MAX = 1 << 26

_encode = msgspec.json.Encoder().encode


class PipeEvent:
    """One change, as it came."""

    __slots__ = ("_view", "_view_kind", "change", "raw", "revision")

    def __init__(self, change: Change, revision: str, raw: bytes) -> None:
        self.change = change
        self.revision = revision
        self.raw = raw
        self._view: View | None = None
        self._view_kind: type[View] | None = None

    def view(self, kind: type[AnyView]) -> AnyView:
        if self._view_kind is not kind:
            self._view = decode_as(kind, self.raw)
            self._view_kind = kind
        return cast(AnyView, self._view)


class PipeWatch:
    """Keeps the promise of a watch over a pipe."""

    def __init__(self, client: PipeClient, number: int, question: words.OpenWatch) -> None:
        self._client = client
        self._number = number
        self._question = question
        self._events: list[WatchEvent] = []
        self._unread_bytes = 0
        self._failure: ClientError | None = None
        self._is_over = False
        self._reader: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        self._client.watches[self._number] = self
        try:
            await self._client.ask(self._question)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    async def next_batch(self) -> Sequence[WatchEvent]:
        while not self._events and not self._is_over:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        if not self._events and self._failure is not None:
            raise self._failure
        return self._take_unread()

    def tell(self, changes: list[tuple[str, str, bytes]]) -> None:
        """The other end tells of changes."""
        came_bytes = 0
        for change, revision, raw in changes:
            self._events.append(PipeEvent(words.CHANGES[change], revision, raw))
            came_bytes += len(raw)
        self._unread_bytes += came_bytes
        self._client.count_unread(came_bytes)
        self._wake()

    def end(self, failure: ClientError | None) -> None:
        """Nothing more comes: the watch is over, or broken."""
        if not self._is_over:
            self._failure = failure
        self._is_over = True
        self._wake()

    def _leave(self) -> None:
        self._client.forget_watch(self._number)
        self._take_unread()
        self.end(None)

    def _take_unread(self) -> Sequence[WatchEvent]:
        events, self._events = self._events, []
        self._client.count_unread(-self._unread_bytes)
        self._unread_bytes = 0
        return events

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class PipeClient:
    """Keeps the client promise over a pipe."""

    def __init__(self, *, on_end: Callable[[], None] | None = None) -> None:
        self._on_end_first = on_end
        self._loop = asyncio.get_running_loop()
        self._channel: Channel[words.Question] = Channel(words.encoded, self._on_frame, self._on_end)
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self.watches: dict[int, PipeWatch] = {}
        """The watches that are open, for themselves."""
        self._last_number = 0
        self._unread_bytes = 0
        self.is_paused = False
        """Whether the pipe is not read for now, because its readers are slow."""
        self._ended = asyncio.Event()
        self._kinds: dict[Kind, words.KindName] = {}

    async def open(self, end: socket.socket) -> None:
        """Begin to speak."""
        await open_channel(end, lambda: self._channel)

    async def wait_ended(self) -> None:
        """Until the other end is gone."""
        await self._ended.wait()

    def close(self) -> None:
        self._channel.close()

    # ------------------------------------------------------------------------------------------------ the promise

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return cast(bytes, await self.ask(words.Get(self._next(), self._name(kind), namespace, name)))

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        fields = words.fields_of(selection)
        question = words.List(self._next(), self._name(kind), fields, limit, continue_token, revision)
        return words.listing_in(cast(words.Page, await self.ask(question)))

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> PipeWatch:
        number = self._next()
        question = words.OpenWatch(number, self._name(kind), words.fields_of(selection), since, bookmarks)
        return PipeWatch(self, number, question)

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        question = words.Create(self._next(), self._name(kind), namespace, _encode(body), is_answer_wanted)
        return cast(bytes, await self.ask(question))

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        question = words.Update(self._next(), self._name(kind), namespace, name, _encode(body), subresource)
        return cast(bytes, await self.ask(question))

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        body = _encode(patch)
        question = words.Patch(self._next(), self._name(kind), namespace, name, body, form.value, subresource)
        return cast(bytes, await self.ask(question))

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        await self.ask(words.Delete(self._next(), self._name(kind), namespace, name, words.how_of(deletion)))

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        await self.ask(words.Bind(self._next(), namespace, name, uid, node_name))

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        return cast(bytes, await self.ask(words.RequestToken(self._next(), namespace, name, _encode(request))))

    # -------------------------------------------------------------------------------------------------- questions

    async def ask(self, question: words.Call) -> object:
        """Ask, and wait for what comes of it: an object, a page. Raises `ClientError`."""
        if self._channel.is_over:
            raise _gone()
        number = question.number
        answer = self._waiting[number] = self._loop.create_future()
        self._channel.say(question)
        try:
            return await answer
        except asyncio.CancelledError:
            if self._waiting.pop(number, None) is not None:
                self._channel.say(words.GiveUp(number))
            raise

    def forget_watch(self, number: int) -> None:
        if self.watches.pop(number, None) is not None:
            self._channel.say(words.GiveUp(number))

    def count_unread(self, more_bytes: int) -> None:
        self._unread_bytes += more_bytes
        if self._unread_bytes > UNREAD_BYTES_MAX and not self.is_paused:
            self.is_paused = True
            self._channel.pause()
        elif self.is_paused and self._unread_bytes <= UNREAD_BYTES_MAX // 2:
            self.is_paused = False
            self._channel.resume()

    def _next(self) -> int:
        self._last_number += 1
        return self._last_number

    def _name(self, kind: Kind) -> words.KindName:
        name = self._kinds.get(kind)
        if name is None:
            name = self._kinds[kind] = words.name_of_kind(kind)
        return name

    # ---------------------------------------------------------------------------------------------------- replies

    def _on_frame(self, frame: bytes) -> None:
        for reply in words.replies_in(frame):
            if isinstance(reply, words.Events):
                watch = self.watches.get(reply.number)
                if watch is not None:
                    watch.tell(reply.changes)
            elif isinstance(reply, words.End):
                self._end_watch(reply.number, None)
            elif isinstance(reply, words.Failure):
                self._fail(reply)
            else:
                self._answer(reply.number, reply.value if isinstance(reply, words.Answer) else reply)

    def _answer(self, number: int, value: object) -> None:
        answer = self._waiting.pop(number, None)
        if answer is not None and not answer.done():
            answer.set_result(value)

    def _fail(self, failure: words.Failure) -> None:
        error = words.error_in(failure)
        answer = self._waiting.pop(failure.number, None)
        if answer is None:
            self._end_watch(failure.number, error)
        elif not answer.done():
            answer.set_exception(error)

    def _end_watch(self, number: int, failure: ClientError | None) -> None:
        watch = self.watches.get(number)
        if watch is not None:
            watch.end(failure)

    def _on_end(self) -> None:
        self._ended.set()
        if self._on_end_first is not None:
            self._on_end_first()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_gone())
        self._waiting.clear()
        for watch in self.watches.values():
            watch.end(_gone())


def _gone() -> NoAnswerError:
    return NoAnswerError("the process of the API server is gone")
