"""Live data: events, heartbeats and end of a stream, and limits."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.serving.console.live import (
    EACH_S,
    HEARTBEAT,
    HEARTBEAT_S,
    STALLED_S_MAX,
    STREAMS_MAX,
    STREAMS_OF_USER_MAX,
    WATCHED_MAX,
    LiveStreams,
)
from mooring.serving.http.long_running import LongRunningRequests
from mooring.serving.http.request import Request
from mooring.serving.http.response import Stream
from mooring.serving.pages import PageRequest, PageResponse, as_json, text, unauthorized

Answers = Callable[[PageRequest], PageResponse]


def begin(streams: LiveStreams, answers: Answers, *watched: str, user: str = "jane") -> AsyncGenerator[bytes, None]:
    async def answer(request: PageRequest) -> PageResponse:
        return answers(request)

    response = streams.response(PageRequest("GET", "/console/data/live", {"watch": list(watched)}), answer, user)
    assert (response.code, response.content_type) == (200, "text/event-stream")
    assert response.stream is not None
    return response.stream


def parsed(event: bytes) -> tuple[str, object]:
    name, data, *rest = event.decode().split("\n")
    assert rest == ["", ""]
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_a_changed_page_is_sent() -> None:
    clock = VirtualClock()

    def answers(request: PageRequest) -> PageResponse:
        return as_json({"path": request.path, "seconds": int(clock.now_s() / (3 * EACH_S))})

    async def main() -> None:
        events = begin(LiveStreams(clock), answers, "overview")
        for seconds in (0, 1, 2):
            assert parsed(await anext(events)) == (
                "overview",
                {"path": "/console/data/overview", "seconds": seconds},
            )
            assert int(clock.now_s() / (3 * EACH_S)) == seconds

    run(main(), clock)


def test_heartbeats_are_sent_without_changes() -> None:
    clock = VirtualClock()

    async def main() -> None:
        events = begin(LiveStreams(clock), lambda request: as_json({}), "overview", "queue?filter=a%20b")
        assert [parsed(await anext(events))[0] for _ in range(2)] == ["overview", "queue"]
        assert await anext(events) == HEARTBEAT
        assert clock.now_s() >= HEARTBEAT_S

    run(main(), clock)


def test_a_failed_page_is_sent_as_a_problem_and_other_pages_continue() -> None:
    clock = VirtualClock()

    def answers(request: PageRequest) -> PageResponse:
        return text("no such node\n", 404) if request.path.endswith("/node") else as_json({"now": clock.now_s()})

    async def main() -> None:
        events = begin(LiveStreams(clock), answers, "node?node=x", "overview")
        assert parsed(await anext(events)) == ("problem", {"path": "node", "code": 404, "message": "no such node\n"})
        assert [parsed(await anext(events))[0] for _ in range(3)] == ["overview"] * 3

    run(main(), clock)


def test_a_stream_ends_with_its_session() -> None:
    clock, streams = VirtualClock(), LiveStreams(VirtualClock())

    async def main() -> None:
        events = [each async for each in begin(streams, lambda request: unauthorized(), "overview", "queue")]
        assert [parsed(event)[0] for event in events] == ["problem"]

    run(main(), clock)
    assert streams.open == 0


@pytest.mark.parametrize(
    ("watched", "code"), [pytest.param(0, 400, id="no page"), pytest.param(WATCHED_MAX + 1, 400, id="too many pages")]
)
def test_a_stream_without_pages_or_with_too_many_is_rejected(watched: int, code: int) -> None:
    async def answer(request: PageRequest) -> PageResponse:
        raise AssertionError("no page must be requested")

    request = PageRequest("GET", "/console/data/live", {"watch": ["overview"] * watched})
    assert LiveStreams(VirtualClock()).response(request, answer, "jane").code == code


def test_streams_beyond_the_limit_are_rejected_until_one_ends() -> None:
    clock = VirtualClock()

    async def answer(request: PageRequest) -> PageResponse:
        return as_json({})

    async def main() -> None:
        streams, request = LiveStreams(clock), PageRequest("GET", "/console/data/live", {"watch": ["overview"]})
        users = [f"user-{number // STREAMS_OF_USER_MAX}" for number in range(STREAMS_MAX)]
        begun = [begin(streams, lambda request: as_json({}), "overview", user=user) for user in users]
        for events in begun:
            await anext(events)
        assert streams.open == STREAMS_MAX
        assert streams.response(request, answer, "jane").code == 429
        await begun[-1].aclose()
        assert streams.response(request, answer, "jane").code == 200

    run(main(), clock)


def test_streams_of_one_user_are_limited() -> None:
    clock = VirtualClock()

    async def answer(request: PageRequest) -> PageResponse:
        return as_json({})

    async def main() -> None:
        streams, request = LiveStreams(clock), PageRequest("GET", "/console/data/live", {"watch": ["overview"]})
        begun = [begin(streams, lambda request: as_json({}), "overview") for _ in range(STREAMS_OF_USER_MAX)]
        for events in begun:
            await anext(events)
        assert streams.response(request, answer, "jane").code == 429
        assert streams.response(request, answer, "john").code == 200
        await begun[0].aclose()
        assert streams.response(request, answer, "jane").code == 200

    run(main(), clock)


class _DisconnectedClient:
    """A connection whose client disconnects during a write."""

    is_open, must_wait, backlog_bytes, on_lost = True, True, 0, None

    def write(self, data: bytes) -> None:
        pass

    async def wait_drained(self) -> None:
        raise ConnectionResetError


def test_a_client_that_disconnects_during_a_write_frees_its_stream() -> None:
    clock, streams = VirtualClock(), LiveStreams(VirtualClock())

    async def main() -> None:
        events, client = begin(streams, lambda request: as_json({}), "overview"), _DisconnectedClient()
        request = cast(Request, SimpleNamespace(connection=client))
        with pytest.raises(ConnectionResetError):
            await LongRunningRequests(STALLED_S_MAX).send(request, Stream(client, 200, is_chunked=True), events)
        assert streams.open == 0, "the stream still counts until its generator is collected"

    run(main(), clock)
