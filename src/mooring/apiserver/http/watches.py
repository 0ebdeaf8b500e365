"""Watches: a stream of events, one JSON line each.

Input: a call, its options, and a response. Output: the state if requested, then every change, and bookmarks, until the
time is over.

1. Without a resourceVersion, or from `0`, the state comes first as ADDED events.
2. With `sendInitialEvents` a bookmark ends the state.
3. A watch that cannot continue ends with an ERROR event. Its client lists again.
4. Watches with the same query share one broadcast, which encodes each change once (`broadcasts`). A watch reads the
   store itself until it has caught up with the broadcast, and while it is behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import msgspec

from mooring.api.caches import BoundedCache
from mooring.apiserver.call import Call
from mooring.apiserver.http.broadcasts import Broadcasts, WatchSubscriber, position_after, position_of
from mooring.apiserver.http.rendering import NOT_CACHED, ObjectForm, Rendering, status_document
from mooring.apiserver.http.request import ListOptions, RequestLimits, check_list_options
from mooring.apiserver.registry.reading import watch_revision
from mooring.apiserver.resources import Resource
from mooring.apiserver.server import ApiServer
from mooring.apiserver.wire.canonical import canonical
from mooring.apiserver.wire.media import JSON
from mooring.client.errors import StatusError
from mooring.client.interface import Change, Selection, Watch, WatchEvent
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.serving.http.connection import SLICE_BYTES
from mooring.serving.http.long_running import LongRunningRequest, LongRunningRequests
from mooring.serving.http.request import Request
from mooring.serving.http.response import Stream

LINES_CACHED_MAX = 1_024
"""Cached lines with tables or metadata, for other watches of the same change in the same second."""

_encode = msgspec.json.Encoder().encode
_NAMES = {change: change.value.encode() for change in Change}
_INITIAL_EVENTS_END = b'"annotations":{"k8s.io/initial-events-end":"true"}'


class WatchRequests:
    """Serves watches."""

    def __init__(
        self, api_server: ApiServer, limits: RequestLimits, answers: LongRunningRequests, entropy: Entropy
    ) -> None:
        self._api_server = api_server
        self._answers = answers
        self._limits = limits
        self._entropy = entropy
        self._broadcasts = Broadcasts(api_server.clock)
        self._line_cache: BoundedCache[tuple[object, ...], bytes] = BoundedCache(LINES_CACHED_MAX)

    async def watch(
        self,
        resource: Resource,
        call: Call,
        options: ListOptions,
        rendering: Rendering,
        request: Request,
    ) -> Stream:
        """Serve one watch to its end. Raises `StatusError` before the first byte is sent."""
        check_list_options(options)
        selection = Selection(call.namespace, options.labels, options.fields)
        self._api_server.reader.checked(resource, selection)
        since = watch_revision(options.revision)
        wants_state = options.initial_events is True or (options.initial_events is None and since == 0)
        timeout_s = self._timeout_s(options)
        stream = request.stream(200, JSON, NOT_CACHED)
        async with self._answers.long_running(request, stream, timeout_s) as long_running:
            query = _WatchQuery(resource, selection, options.bookmarks, rendering)
            lines = _WatchLines(query, self._api_server.clock, self._line_cache)
            await _WatchRequest(self._api_server, self._broadcasts, query, lines, long_running).run(
                since, wants_state, options
            )
        stream.finish()
        return stream

    def _timeout_s(self, options: ListOptions) -> float:
        if options.timeout_s:
            return float(options.timeout_s)
        return self._limits.watch_s_min * (1.0 + self._entropy.uniform())


@dataclass(frozen=True, slots=True)
class _WatchQuery:
    """The query of a watch. Watches with the same `key` get the same lines."""

    resource: Resource
    selection: Selection
    has_bookmarks: bool
    rendering: Rendering

    @property
    def form(self) -> tuple[object, ...]:
        rendering = self.rendering
        return self.resource, rendering.form, rendering.version, rendering.included

    @property
    def key(self) -> tuple[object, ...]:
        return *self.form, self.selection, self.has_bookmarks


class _WatchRequest:
    """One open watch."""

    def __init__(
        self,
        api_server: ApiServer,
        broadcasts: Broadcasts,
        query: _WatchQuery,
        lines: _WatchLines,
        long_running: LongRunningRequest,
    ) -> None:
        self._api_server = api_server
        self._broadcasts = broadcasts
        self._query = query
        self._lines = lines
        self._long_running = long_running
        # The first row of a table differs from the others: it comes with column definitions.
        self._is_special = query.rendering.form is ObjectForm.TABLE

    async def run(self, since: int, wants_state: bool, options: ListOptions) -> None:
        try:
            if wants_state:
                since = await self._send_state(options)
            elif not since:
                since = await self._api_server.store.revision()
            elif since > await self._api_server.store.revision():
                # A revision in the future: there are no events, and no error either.
                await asyncio.Event().wait()
            await self._send_changes(since)
        except StatusError as error:
            line = _encode({"type": "ERROR", "object": status_document(error)})
            await self._long_running.write(line + b"\n")

    async def _send_state(self, options: ListOptions) -> int:
        query = self._query
        listing = await self._api_server.reader.list(
            query.resource, query.selection, limit=0, continue_token="", revision="", is_exact=None
        )
        size_bytes = sum(map(len, listing.items))
        state = await self._api_server.context.worker.run(size_bytes, self._state, listing.items)
        if options.bookmarks and options.initial_events:
            state += self._lines.bookmark(int(listing.revision), _INITIAL_EVENTS_END)
        for start in range(0, len(state), SLICE_BYTES):
            if start:
                await self._api_server.clock.wait(0)
            await self._long_running.write(state[start : start + SLICE_BYTES])
        return int(listing.revision)

    def _state(self, items: Sequence[bytes]) -> bytes:
        return b"".join([self._line(Change.ADDED, raw) for raw in items])

    async def _send_changes(self, since: int) -> None:
        key = self._query.key
        subscriber = WatchSubscriber(self._long_running, position_after(since))
        while True:
            if self._is_special or not self._broadcasts.takes(key, subscriber.position):
                await self._send_until_caught_up(key, subscriber)
            await self._broadcasts.serve(key, subscriber, self._watch_since, self._lines.of_event)

    async def _send_until_caught_up(self, key: Hashable, subscriber: WatchSubscriber) -> None:
        """Send changes until a broadcast can continue at the position of the subscriber."""
        async with self._watch_since(subscriber.position // 2) as watch:
            while batch := await watch.next_batch():
                lines = [self._event_line(event) for event in batch]
                await self._long_running.write(b"".join(lines))
                subscriber.position = position_of(batch[-1])
                if not self._is_special and self._broadcasts.takes(key, subscriber.position):
                    return

    def _watch_since(self, since: int) -> Watch:
        query = self._query
        return self._api_server.reader.watch(
            query.resource, query.selection, since=since, bookmarks=query.has_bookmarks
        )

    def _event_line(self, event: WatchEvent) -> bytes:
        if event.change is Change.BOOKMARK or not self._is_special:
            return self._lines.of_event(event)
        return self._line(event.change, event.raw)

    def _line(self, change: Change, raw: bytes) -> bytes:
        if not self._is_special:
            return self._lines.of(change, self._lines.formed(raw))
        self._is_special = False
        return self._lines.of(change, self._lines.formed(raw, is_first=True))


class _WatchLines:
    """The lines of watches that request objects in the same form."""

    def __init__(self, query: _WatchQuery, clock: Clock, line_cache: BoundedCache[tuple[object, ...], bytes]) -> None:
        self._resource = query.resource
        self._rendering = query.rendering
        self._form = query.form
        self._clock = clock
        self._line_cache = line_cache
        self._empty = _empty_fields(query.resource) if query.rendering.form is ObjectForm.OBJECT else b""

    def of_event(self, event: WatchEvent) -> bytes:
        """One event that is not the first of its watch."""
        if event.change is Change.BOOKMARK:
            return self.bookmark(int(event.revision))
        if self._rendering.form is ObjectForm.OBJECT:
            return self.of(event.change, event.raw)
        # A table has the age of an object, in seconds.
        key = (*self._form, event.revision, event.change, int(self._clock.wall_s()))
        return self._line_cache.get(key) or self._line_cache.put(key, self.of(event.change, self.formed(event.raw)))

    def of(self, change: Change, formed: bytes) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (_NAMES[change], formed)

    def formed(self, raw: bytes, *, is_first: bool = False) -> bytes:
        rendering = self._rendering
        if rendering.form is ObjectForm.TABLE:
            rendering = replace(rendering, now_s=self._clock.wall_s())
        return rendering.watched(self._resource, raw, is_first=is_first)

    def bookmark(self, revision: int, annotation: bytes = b"") -> bytes:
        raw = _bookmark_object(self._rendering.bookmark_kind(self._resource.kind), revision, annotation, self._empty)
        return b'{"type":"BOOKMARK","object":%b}\n' % raw


def _empty_fields(resource: Resource) -> bytes:
    """The other fields of an empty object, which Go writes although they are empty."""
    if resource.struct is None:
        return b""
    empty = canonical(resource.struct, {}, [])
    rest = {name: value for name, value in empty.items() if name not in ("kind", "apiVersion", "metadata")}
    return b"," + _encode(rest)[1:-1] if rest else b""


def _bookmark_object(names: tuple[str, str], revision: int, annotation: bytes, rest: bytes) -> bytes:
    kind, api_version = names
    comma = b"," if annotation else b""
    return b'{"kind":"%b","apiVersion":"%b","metadata":{"resourceVersion":"%d"%b%b}%b}' % (
        kind.encode(),
        api_version.encode(),
        revision,
        comma,
        annotation,
        rest,
    )
