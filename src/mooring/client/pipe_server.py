"""The other end of a pipe: a client that does what another process asks of it.

Comes in   questions over a pipe (`pipe_words`), a client that can answer them
Goes out   its answers, in the order in which they are ready

 1. Questions are worked on side by side: a write that waits for the disk holds nobody up.
 2. A watch is told as fast as the other end reads. If that is too slow, the store ends it, and the reader lists again.
 3. An error that no client promises is a bug: it is logged here, and told as a `ServerError` there.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from mooring.api.kinds import Kind
from mooring.client import pipe_words as words
from mooring.client.errors import ClientError, ServerError
from mooring.client.interface import Client, Listing, PatchForm
from mooring.client.pipe_channel import Channel, open_channel
from mooring.client.tokens import request_token
from mooring.kit.tasks import TaskGroup

logger = logging.getLogger(__name__)

_decode_object = msgspec.json.Decoder(dict[str, object]).decode
_decode = msgspec.json.Decoder().decode


class PipeServer:
    """Answers the questions of one other process."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._channel: Channel[words.Reply] = Channel(words.encoded, self._on_frame, self._on_end)
        self._group: TaskGroup | None = None
        self._working: dict[int, asyncio.Task[None]] = {}
        self._kinds: dict[words.KindName, Kind] = {}
        self._ended = asyncio.Event()

    async def serve(self, end: socket.socket) -> None:
        """Until the other end is gone."""
        async with TaskGroup("pipe") as group:
            self._group = group
            await open_channel(end, lambda: self._channel)
            try:
                await self._ended.wait()
            finally:
                group.cancel()
                self._channel.abort()
                await self._ended.wait()  # a transport that is left open would hold up the end of the loop

    def statistics(self) -> dict[str, int]:
        return {"calls": len(self._working)}

    def _on_end(self) -> None:
        self._ended.set()

    def _on_frame(self, frame: bytes) -> None:
        assert self._group is not None
        for question in words.questions_in(frame):
            if isinstance(question, words.GiveUp):
                task = self._working.get(question.number)
                if task is not None:
                    task.cancel()
            elif not self._ended.is_set():
                task = self._working[question.number] = self._group.start(self._work(question), name="call")
                task.add_done_callback(partial(self._forget, question.number))

    async def _work(self, call: words.Call) -> None:
        try:
            if isinstance(call, words.OpenWatch):
                await self._tell(call)
            else:
                self._channel.say(await self._reply(call))
        except ClientError as error:
            self._channel.say(words.failure_of(call.number, error))
        except Exception as error:
            logger.exception("a %s of another process failed", type(call).__name__)
            self._channel.say(words.failure_of(call.number, ServerError(f"{type(error).__name__}: {error}")))

    def _forget(self, number: int, task: asyncio.Task[None]) -> None:
        # Not at the end of the work: a task that is cancelled before it began has no end.
        del self._working[number]

    # ---------------------------------------------------------------------------------------------------- calls

    async def _reply(self, call: words.Call) -> words.Reply:
        answer = await _ANSWERS[type(call)](self, call)
        if isinstance(answer, Listing):
            items = list(answer.items)
            return words.Page(call.number, items, answer.revision, answer.continue_token, answer.remaining)
        return words.Answer(call.number, answer or b"")

    def _get(self, call: words.Get) -> Awaitable[bytes]:
        return self._client.get(self._kind(call.kind), call.namespace, call.name)

    def _list(self, call: words.List) -> Awaitable[Listing]:
        return self._client.list(
            self._kind(call.kind),
            words.selection_in(call.selection),
            limit=call.limit,
            continue_token=call.continue_token,
            revision=call.revision,
        )

    def _create(self, call: words.Create) -> Awaitable[bytes]:
        body = _decode_object(call.body)
        kind = self._kind(call.kind)
        return self._client.create(kind, call.namespace, body, is_answer_wanted=call.is_answer_wanted)

    def _update(self, call: words.Update) -> Awaitable[bytes]:
        body = _decode_object(call.body)
        return self._client.update(self._kind(call.kind), call.namespace, call.name, body, subresource=call.subresource)

    def _patch(self, call: words.Patch) -> Awaitable[bytes]:
        return self._client.patch(
            self._kind(call.kind),
            call.namespace,
            call.name,
            _decode(call.body),
            form=PatchForm(call.form),
            subresource=call.subresource,
        )

    def _delete(self, call: words.Delete) -> Awaitable[None]:
        return self._client.delete(self._kind(call.kind), call.namespace, call.name, words.deletion_in(call.how))

    def _bind(self, call: words.Bind) -> Awaitable[None]:
        return self._client.bind(call.namespace, call.name, call.uid, call.node_name)

    def _request_token(self, call: words.RequestToken) -> Awaitable[bytes]:
        return request_token(self._client, call.namespace, call.name, _decode_object(call.body))

    async def _tell(self, call: words.OpenWatch) -> None:
        selection = words.selection_in(call.selection)
        number = call.number
        async with self._client.watch(
            self._kind(call.kind), selection, since=call.since, bookmarks=call.bookmarks
        ) as watch:
            self._channel.say(words.Answer(number, b""))
            while batch := await watch.next_batch():
                changes = [(event.change.value, event.revision, event.raw) for event in batch]
                self._channel.say(words.Events(number, changes))
                await self._channel.writable()
        self._channel.say(words.End(number))

    def _kind(self, name: words.KindName) -> Kind:
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = words.kind_of_name(name)
        return kind


_Answering = Callable[[PipeServer, Any], Awaitable[Listing | bytes | None]]
_ANSWERS: dict[type[words.Word], _Answering] = {
    words.Get: PipeServer._get,
    words.List: PipeServer._list,
    words.Create: PipeServer._create,
    words.Update: PipeServer._update,
    words.Patch: PipeServer._patch,
    words.Delete: PipeServer._delete,
    words.Bind: PipeServer._bind,
    words.RequestToken: PipeServer._request_token,
}
