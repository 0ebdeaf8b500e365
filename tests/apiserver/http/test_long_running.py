"""Long-running requests: how clients and the server end them."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest

from mooring.apiserver.http.request import RequestLimits
from mooring.apiserver.server import PLAN_PAGE
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.long_running import LongRunningRequests
from mooring.serving.http.request import Request
from mooring.serving.http.response import Stream
from mooring.serving.pages import PageRequest, PageResponse
from tests.apiserver.http.served import served
from tests.waiting import LIMIT_S, until

WATCH = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0"


def test_a_client_that_disconnects_ends_an_idle_watch() -> None:
    async def scenario() -> None:
        async with served() as api:
            response = await api.session.get(api.url(WATCH))
            await until(lambda: api.handler.watches_open == 1)
            response.close()
            await until(lambda: api.handler.watches_open == 0)
            assert api.handler.failures == 0

    run_real(scenario())


def test_a_server_that_stops_ends_watches_with_a_complete_response() -> None:
    async def scenario() -> None:
        connector = aiohttp.TCPConnector()
        async with aiohttp.ClientSession(connector=connector) as outside:
            async with served() as api:
                headers = {"Authorization": "Bearer token-of-the-administrator"}
                response = await outside.get(api.url(WATCH), headers=headers)
                await until(lambda: api.handler.watches_open == 1)
            # The response is complete: without its last chunk aiohttp would raise an error.
            lines = (await response.read()).splitlines()
            assert all(line.startswith(b'{"type":"ADDED"') for line in lines)

    run_real(scenario())


@pytest.mark.parametrize("path", [PLAN_PAGE, "/apis/mooring.dev/v1alpha1/plans"])
def test_a_client_that_disconnects_cancels_its_plan(path: str) -> None:
    seen: list[str] = []

    async def page(request: PageRequest) -> PageResponse:
        seen.append("begins")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ends")
        raise AssertionError("the event is never set")

    async def scenario() -> None:
        async with served() as api, TaskGroup("clients") as group:
            api.api_server.component_pages[PLAN_PAGE] = page
            plan = {"apiVersion": "mooring.dev/v1alpha1", "kind": "Plan", "metadata": {"name": "p"}, "spec": {}}
            posting = group.start_background(api.session.post(api.url(path), json=plan), name="client")
            await until(lambda: seen == ["begins"])
            posting.cancel()
            await until(lambda: seen == ["begins", "ends"])
            assert await api.create_config_map("after") == 201

    run_real(scenario())


def test_a_client_that_does_not_read_is_disconnected() -> None:
    async def read_all(response: aiohttp.ClientResponse, last: bytes) -> int:
        seen = 0
        async for line in response.content:
            seen += b'"large-' in line
            if last in line:
                break
        return seen

    async def scenario() -> None:
        async with served(RequestLimits(stalled_s_max=LIMIT_S)) as api:
            unread = _open_watch_without_reading(api.server.port)
            busy = await api.session.get(api.url(WATCH), read_bufsize=1 << 20)
            await until(lambda: api.handler.watches_open == 2)
            async with TaskGroup("readers") as group:
                reading = group.start(read_all(busy, b'"large-59"'), name="busy")
                for number in range(60):
                    assert await api.create_config_map(f"large-{number}", {"text": "x" * 200_000}) == 201
            assert reading.result() == 60
            for _ in range(2):  # as the timer does; the real timer could also disconnect clients of a busy machine
                api.handler._long_running._abort_stalled()
            await until(lambda: api.handler.watches_open == 1)
            unread.close()
            busy.close()

    run_real(scenario())


class SlowConnection:
    """A connection whose client reads a fixed number of bytes between two checks."""

    def __init__(self, bytes_per_check: int) -> None:
        self._bytes_left = 50_000_000
        self._bytes_per_check = bytes_per_check
        self.is_cut_off = False

    @property
    def backlog_bytes(self) -> int:
        self._bytes_left -= self._bytes_per_check
        return self._bytes_left

    def abort(self) -> None:
        self.is_cut_off = True

    async def wait_drained(self) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("bytes_per_check", "is_cut_off"),
    [
        pytest.param(0, True, id="the client reads nothing"),
        pytest.param(1_000, False, id="the client reads slowly"),
    ],
)
def test_only_a_client_that_reads_nothing_is_disconnected(bytes_per_check: int, is_cut_off: bool) -> None:
    clock = VirtualClock()

    async def scenario() -> None:
        connection = SlowConnection(bytes_per_check)
        request = cast(Request, SimpleNamespace(connection=connection, on_lost=None))
        async with (
            LongRunningRequests(10.0).long_running(request, cast(Stream, connection), 100.0) as long_running,
            TaskGroup("test") as group,
        ):
            group.start_background(long_running.wait_drained(), name="writer")
            await clock.wait(80.0)
        assert connection.is_cut_off == is_cut_off

    run(scenario(), clock)


def _open_watch_without_reading(port: int) -> socket.socket:
    unread = socket.create_connection(("127.0.0.1", port))
    unread.sendall(
        f"GET {WATCH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token-of-the-administrator\r\n\r\n".encode()
    )
    return unread
