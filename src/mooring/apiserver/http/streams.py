"""Watches: a stream of changes, one JSON line each.

Comes in   a call, what it asks for, and a response that is written as changes come
Goes out   the present state first where it is asked for, then every change, and bookmarks; until the time is over

 1. Without a resourceVersion, or from `0`, the present state comes first as ADDED.
 2. With `sendInitialEvents` a bookmark marks where the present state ends.
 3. A watch that cannot go on says so in its last line (ERROR) and ends. Its client lists again.
 4. The bytes of a change are made once for all watches that want it in the same form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from aiohttp import web

from mooring.apiserver.call import Call
from mooring.apiserver.desk import Desk
from mooring.apiserver.http.forms import Rendering
from mooring.apiserver.http.lasting import Lasting, LastingAnswers
from mooring.apiserver.http.limits import DoorLimits
from mooring.apiserver.http.query import ListOptions, check_list_options
from mooring.apiserver.http.reply import status_document
from mooring.apiserver.registry.reading import watch_revision
from mooring.apiserver.resources import Resource
from mooring.client.errors import StatusError
from mooring.client.promise import Change, Selection, WatchEvent
from mooring.kit.entropy import Entropy

GATHER_S_A_WATCH = 0.000_25
GATHER_S_MIN = 0.005
GATHER_S_MAX = 0.1
"""Where many watch, each gathers its changes for a moment: a write of many lines costs what one of a single line does,
and two hundred watchers of a busy kind would otherwise leave the server no time for the changes themselves."""

_encode = msgspec.json.Encoder().encode
_INITIAL_EVENTS_END = b'"annotations":{"k8s.io/initial-events-end":"true"}'


class Streams:
    """Serves watches."""

    def __init__(self, desk: Desk, limits: DoorLimits, answers: LastingAnswers, entropy: Entropy) -> None:
        self._desk = desk
        self._answers = answers
        self._limits = limits
        self._entropy = entropy
        self.open = 0
        """Watches that are being served."""

    async def watch(
        self,
        resource: Resource,
        call: Call,
        options: ListOptions,
        rendering: Rendering,
        request: web.BaseRequest,
        headers: Sequence[tuple[str, str]] = (),
    ) -> web.StreamResponse:
        """Serve one watch to its end. Raises `StatusError` as long as nothing is sent."""
        check_list_options(options)
        since = watch_revision(options.revision)
        selection = Selection(call.namespace, options.labels, options.fields)
        self._desk.reader.checked(resource, selection)
        response = web.StreamResponse(headers=dict(headers))
        response.content_type = "application/json"
        response.enable_chunked_encoding()
        wants_state = options.initial_events is True or (options.initial_events is None and since == 0)
        timeout_s = self._timeout_s(options)
        await response.prepare(request)
        try:
            async with self._answers.lasting(request, timeout_s) as lasting:
                stream = _Stream(self, self._desk, resource, selection, rendering, response, lasting)
                self.open += 1
                try:
                    await stream.run(since, wants_state, options, timeout_s)
                finally:
                    self.open -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            return response
        await _finish(response)
        return response

    def _timeout_s(self, options: ListOptions) -> float:
        if options.timeout_s:
            return float(options.timeout_s)
        return self._limits.watch_s_min * (1.0 + self._entropy.uniform())


async def _finish(response: web.StreamResponse) -> None:
    try:
        await response.write_eof()
    except ConnectionError:
        return


class _Stream:
    """One watch while it runs."""

    def __init__(
        self,
        streams: Streams,
        desk: Desk,
        resource: Resource,
        selection: Selection,
        rendering: Rendering,
        response: web.StreamResponse,
        lasting: Lasting,
    ) -> None:
        self._streams = streams
        self._lasting = lasting
        self._desk = desk
        self._resource = resource
        self._selection = selection
        self._rendering = rendering
        self._response = response
        self._is_first = True

    async def run(self, since: int, wants_state: bool, options: ListOptions, timeout_s: float) -> None:
        try:
            if wants_state:
                since = await self._send_state(options)
            elif not since:
                since = await self._desk.store.revision()
            elif since > await self._desk.store.revision():
                # From the future: there is nothing to tell, and no error either.
                await asyncio.Event().wait()
            await self._send_changes(since, options, timeout_s)
        except StatusError as error:
            line = _encode({"type": "ERROR", "object": status_document(error)})
            await self._lasting.write(self._response, line + b"\n")

    async def _send_state(self, options: ListOptions) -> int:
        listing = await self._desk.reader.list(
            self._resource, self._selection, limit=0, continue_token="", revision="", is_exact=None
        )
        lines = [self._line(Change.ADDED, raw) for raw in listing.items]
        # Without a version, client-go's newer watches expect the mark as well if they asked for bookmarks.
        if options.bookmarks and (options.initial_events or not options.revision):
            lines.append(self._bookmark(int(listing.revision), _INITIAL_EVENTS_END))
        if lines:
            await self._lasting.write(self._response, b"".join(lines))
        return int(listing.revision)

    async def _send_changes(self, since: int, options: ListOptions, timeout_s: float) -> None:
        watch = self._desk.reader.watch(self._resource, self._selection, since=since, bookmarks=options.bookmarks)
        async with watch:
            while batch := await watch.next_batch():
                lines = b"".join([self._event_line(event) for event in batch])
                await self._lasting.write(self._response, lines)
                pause_s = min(self._streams.open * GATHER_S_A_WATCH, GATHER_S_MAX)
                if pause_s >= GATHER_S_MIN:
                    await self._desk.clock.wait(pause_s)

    def _event_line(self, event: WatchEvent) -> bytes:
        if event.change is Change.BOOKMARK:
            return self._bookmark(int(event.revision))
        return self._line(event.change, event.raw)

    def _line(self, change: Change, raw: bytes) -> bytes:
        rendered = self._rendering.watched(self._resource, raw, is_first=self._is_first)
        self._is_first = False
        return b'{"type":"%b","object":%b}\n' % (change.value.encode(), rendered)

    def _bookmark(self, revision: int, annotation: bytes = b"") -> bytes:
        raw = _bookmark_object(self._rendering.bookmark_kind(self._resource.kind), revision, annotation)
        return b'{"type":"BOOKMARK","object":%b}\n' % raw


def _bookmark_object(names: tuple[str, str], revision: int, annotation: bytes) -> bytes:
    kind, api_version = names
    comma = b"," if annotation else b""
    return b'{"kind":"%b","apiVersion":"%b","metadata":{"resourceVersion":"%d"%b%b}}' % (
        kind.encode(),
        api_version.encode(),
        revision,
        comma,
        annotation,
    )
