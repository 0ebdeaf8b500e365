"""Live data of the console as server-sent events, one stream for each open page.

    GET /console/data/live?watch=overview&watch=nodes/version%3Flabel%3D…

    event: overview          each watched page below /console/data/, with its JSON, when it has changed
    data: {…}

    event: problem           a watched page that could not be answered: its path, the code and the message
    data: {"path": "node", "code": 404, "message": "…"}

1. A stream reads its pages once in `EACH_S`, each time authorized and masked like a single request. A session or a
   permission that ends, ends its data within that time.
2. A page that has not changed is not sent. After `HEARTBEAT_S` without an event the stream sends a comment.
3. The next data are read when the client has taken the last ones: a slow client skips states and needs no more memory
   than one state. One that reads nothing is disconnected (`http.long_running`).
4. At most `STREAMS_MAX` streams are open, `STREAMS_OF_USER_MAX` of them of one user. Beyond that: 429. The server
   closes the generator of a stream when its connection ends, so that its place is free again at once.
5. Events are text. Of a table that is sent as bytes a stream has the version, and the client requests the bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import parse_qs

from mooring.kit.clock import Clock
from mooring.serving.console.paths import DATA
from mooring.serving.pages import PageRequest, PageResponse, text

EACH_S = 1.0
HEARTBEAT_S = 15.0
WATCHABLE = frozenset(("about", "learn", "node", "nodes/version", "overview", "past", "pod", "queue", "workloads"))
"""The parts that are cheap enough to be computed again each second."""
STREAMS_MAX = 64
STREAMS_OF_USER_MAX = 16
"""One user cannot take the places of all others."""
WATCHED_MAX = 8
"""Pages of one stream."""
STALLED_S_MAX = 60.0
"""How long a client may read nothing."""
EVENT_STREAM = "text/event-stream"
HEARTBEAT = b": heartbeat\n\n"

Answer = Callable[[PageRequest], Awaitable[PageResponse]]
"""Authorizes a request, answers and masks it."""


@dataclass(slots=True)
class _Watched:
    """One page of a stream."""

    path: str
    query: dict[str, list[str]]
    sent: bytes = b""
    """The digest of the last event."""


class LiveStreams:
    """The open streams of one server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open_of: Counter[str] = Counter()

    @property
    def open(self) -> int:
        return self._open_of.total()

    def response(self, request: PageRequest, answer: Answer, user: str) -> PageResponse:
        """The response to a request for a stream. The server sends it without waiting, so no other one is counted
        before it begins."""
        watched = [_watched(each) for each in request.query.get("watch", ())]
        if not 0 < len(watched) <= WATCHED_MAX:
            return text(f"watch: found {len(watched)} pages, expected 1 to {WATCHED_MAX}\n", 400)
        unknown = [each.path.removeprefix(DATA) for each in watched if each.path.removeprefix(DATA) not in WATCHABLE]
        if unknown:
            return text(f"watch: {unknown[0]!r} is none of {', '.join(sorted(WATCHABLE))}\n", 400)
        if self.open >= STREAMS_MAX:
            return text(f"{STREAMS_MAX} pages are open already; close one and try again\n", 429)
        if self._open_of[user] >= STREAMS_OF_USER_MAX:
            return text(f"you have {STREAMS_OF_USER_MAX} pages open already; close one and try again\n", 429)
        return PageResponse(b"", 200, EVENT_STREAM, stream=self._events(watched, answer, user))

    async def _events(self, watched: Sequence[_Watched], answer: Answer, user: str) -> AsyncGenerator[bytes, None]:
        self._open_of[user] += 1
        sent_s = self._clock.now_s()
        try:
            while True:
                for each in watched:
                    response = await answer(PageRequest("GET", each.path, each.query))
                    event = _event(each, response)
                    if event:
                        yield event
                        sent_s = self._clock.now_s()
                    if response.code == 401:  # the session is over
                        return
                if self._clock.now_s() - sent_s >= HEARTBEAT_S:
                    yield HEARTBEAT
                    sent_s = self._clock.now_s()
                await self._clock.wait(EACH_S)
        finally:
            self._open_of[user] -= 1
            if not self._open_of[user]:
                del self._open_of[user]


def _watched(text: str) -> _Watched:
    name, _, query = text.partition("?")
    return _Watched(f"{DATA}{name}", parse_qs(query, keep_blank_values=True))


def _event(watched: _Watched, response: PageResponse) -> bytes:
    """What the client does not have yet; empty if it has everything."""
    digest = blake2b(response.body, digest_size=16).digest()
    if digest == watched.sent:
        return b""
    watched.sent = digest
    name = watched.path.removeprefix(DATA)
    if response.code != 200:
        problem = {"path": name, "code": response.code, "message": response.body[:300].decode(errors="replace")}
        return b"event: problem\ndata: %b\n\n" % json.dumps(problem).encode()
    return b"event: %b\ndata: %b\n\n" % (name.encode(), response.body)
