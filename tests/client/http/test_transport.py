"""Transport: headers, reuse of connections, and proxies.

ConnectionPool: limits, waiting requests, idle connections and timeouts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.client.errors import NotFoundError
from mooring.client.http.client import HttpClient
from mooring.client.http.dial import DialError
from mooring.client.http.http_connection import HttpConnection
from mooring.client.http.transport import IDLE_S, ConnectionPool, user_agent
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import VirtualLoop, run
from mooring.kit.tasks import TaskGroup
from tests.client.contract_play import NS, create_all
from tests.client.http.play import HttpSetup, run_over_http
from tests.client.objects import config_map


def test_user_agent_contains_version_and_component() -> None:
    assert re.fullmatch(r"mooring/[\d.]+ \(\w+/\w+\) scheduler", user_agent("scheduler"))
    assert user_agent().endswith(")")


def test_headers_of_every_request() -> None:
    async def scenario(setup: HttpSetup) -> None:
        impersonation = [("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
        connection = replace(setup.client.connection, impersonation=impersonation)
        async with HttpClient(connection, setup.clock, Entropy(1), component="scheduler", environment={}) as client:
            await client.create(CONFIG_MAP, NS, config_map())
        headers = setup.server.headers
        assert headers["User-Agent"] == user_agent("scheduler")
        assert (headers["Accept"], headers["Content-Type"]) == ("application/json", "application/json")
        assert "Accept-Encoding" not in headers
        assert headers["Impersonate-User"] == "jane"
        assert headers.getall("Impersonate-Group") == ["a", "b"]  # type: ignore[attr-defined]

    run_over_http(scenario)


def test_requests_reuse_a_connection_and_a_watch_has_its_own() -> None:
    async def scenario(setup: HttpSetup) -> None:
        since = await create_all(setup.local, config_map("a"))
        async with setup.client.watch(CONFIG_MAP, since=since) as watch:
            for number in range(5):
                await setup.client.create(CONFIG_MAP, NS, config_map(f"b{number}"))
            assert await watch.next_batch()
        assert setup.server.connections == 2

    run_over_http(scenario)


def test_a_plain_proxy_gets_requests_with_absolute_urls() -> None:
    requests: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readline()).decode().strip())
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def scenario(setup: HttpSetup) -> None:
        async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            connection = replace(
                setup.client.connection, server="http://far.away.example:8080", proxy=f"http://127.0.0.1:{port}"
            )
            async with HttpClient(connection, setup.clock, Entropy(1), environment={}) as client:
                with pytest.raises(NotFoundError):
                    await client.get(POD, NS, "web")
        assert requests == ["GET http://far.away.example:8080/api/v1/namespaces/default/pods/web HTTP/1.1"]

    run_over_http(scenario)


REQUEST_S_MAX = 8.0


def clock_of_loop() -> VirtualClock:
    return cast(VirtualLoop, asyncio.get_running_loop()).clock


class FakeConnection:
    """A connection that is idle until a test changes it."""

    def __init__(self) -> None:
        self.is_idle = True
        self.generation = 0
        self.has_rested = False
        self.ended_by: OSError | None = None

    def abort(self, failure: OSError | None = None) -> None:
        self.is_idle = False
        self.ended_by = self.ended_by or failure or ConnectionAbortedError()


class PoolWithFakes:
    """A pool of fake connections."""

    def __init__(self, wires_max: int = 2) -> None:
        self.dialled: list[FakeConnection] = []
        self.dial_failures = 0
        self.pool = ConnectionPool(self._dial, wires_max=wires_max, request_s_max=REQUEST_S_MAX)

    async def _dial(self) -> HttpConnection:
        await clock_of_loop().wait(0.1)
        if self.dial_failures:
            self.dial_failures -= 1
            raise DialError("cannot connect")
        self.dialled.append(FakeConnection())
        return cast(HttpConnection, self.dialled[-1])

    async def take(self) -> FakeConnection:
        return cast(FakeConnection, await self.pool.take())

    def take_nowait(self) -> FakeConnection | None:
        return cast(FakeConnection | None, self.pool.take_nowait())

    def give_back(self, connection: FakeConnection) -> None:
        self.pool.give_back(cast(HttpConnection, connection))


def run_scenario(scenario: Callable[[PoolWithFakes, VirtualClock], Awaitable[None]]) -> None:
    async def main() -> None:
        pool_with_fakes = PoolWithFakes()
        await scenario(pool_with_fakes, clock_of_loop())
        pool_with_fakes.pool.close()

    run(main())


def test_the_most_recently_used_connection_is_used_first() -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        assert pool_with_fakes.take_nowait() is None
        first, second = await pool_with_fakes.take(), await pool_with_fakes.take()
        pool_with_fakes.give_back(first)
        pool_with_fakes.give_back(second)
        assert pool_with_fakes.take_nowait() is second
        assert await pool_with_fakes.take() is first

    run_scenario(scenario)


def test_requests_wait_for_a_connection_in_order() -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        served: list[str] = []

        async def serve(name: str) -> None:
            connection = await pool_with_fakes.take()
            served.append(name)
            await clock.wait(1.0)
            pool_with_fakes.give_back(connection)

        async with TaskGroup("clients") as group:
            for name in "abcdef":
                group.start(serve(name), name=name)
        assert served == list("abcdef")
        assert len(pool_with_fakes.dialled) == 2

    run_scenario(scenario)


@pytest.mark.parametrize("how", ["a dead connection", "a dial that fails", "a cancelled waiter"])
def test_waiting_requests_always_continue(how: str) -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        first, second = await pool_with_fakes.take(), await pool_with_fakes.take()
        taken: list[FakeConnection | None] = []

        async def wait_for_one() -> None:
            try:
                taken.append(await pool_with_fakes.take())
            except DialError:
                taken.append(None)

        async with TaskGroup("clients") as group:
            tasks = [group.start(wait_for_one(), name=f"{number}") for number in range(2)]
            await clock.wait(0)
            if how == "a cancelled waiter":
                pool_with_fakes.give_back(first)
                tasks[0].cancel()
                await clock.wait(0.5)
                assert taken == [first]
            else:
                first.is_idle = False
                pool_with_fakes.dial_failures = how == "a dial that fails"
                pool_with_fakes.give_back(first)
                await clock.wait(0.5)
                pool_with_fakes.give_back(second)
        if how != "a cancelled waiter":
            assert len(taken) == 2
            assert first not in taken

    run_scenario(scenario)


def test_a_connection_returned_during_a_request_is_closed() -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        connection = await pool_with_fakes.take()
        connection.is_idle = False
        pool_with_fakes.give_back(connection)
        assert connection.ended_by is not None
        assert pool_with_fakes.take_nowait() is None

    run_scenario(scenario)


def test_an_unused_connection_is_closed() -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        used, unused = await pool_with_fakes.take(), await pool_with_fakes.take()
        for connection in (used, unused):
            pool_with_fakes.give_back(connection)
        for _ in range(6):
            await clock.wait(IDLE_S / 4)
            assert pool_with_fakes.take_nowait() is (unused if unused.is_idle else used)
            pool_with_fakes.give_back(unused if unused.is_idle else used)
        assert [connection.is_idle for connection in (used, unused)] == [False, True]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("waited_s", "is_over"),
    [pytest.param(7.9, False, id="before the timeout"), pytest.param(9.1, True, id="after the timeout")],
)
def test_a_connection_taken_for_too_long_is_closed(waited_s: float, is_over: bool) -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        connection = await pool_with_fakes.take()
        await clock.wait(waited_s)
        assert isinstance(connection.ended_by, TimeoutError) is is_over

    run_scenario(scenario)


def test_the_waiting_time_counts_for_the_timeout() -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        first = await pool_with_fakes.take()
        await pool_with_fakes.take()
        async with TaskGroup("client") as group:
            waiting = group.start(pool_with_fakes.take(), name="in line")
            await clock.wait(5.0)
            pool_with_fakes.give_back(first)
            connection = await waiting
            await clock.wait(2.9)
            assert connection.ended_by is None
            await clock.wait(1.2)
            assert isinstance(connection.ended_by, TimeoutError)

    run_scenario(scenario)


def test_waiting_for_a_connection_times_out() -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        for _ in range(2):
            await pool_with_fakes.take()
        began_s = clock.now_s()
        with pytest.raises(TimeoutError):
            await pool_with_fakes.take()
        assert REQUEST_S_MAX <= clock.now_s() - began_s <= REQUEST_S_MAX * 9 / 8

    run_scenario(scenario)


def test_connections_opened_before_a_renewal_are_not_used() -> None:
    async def scenario(pool_with_fakes: PoolWithFakes, clock: VirtualClock) -> None:
        idle, busy = await pool_with_fakes.take(), await pool_with_fakes.take()
        pool_with_fakes.give_back(idle)
        pool_with_fakes.pool.renew()
        pool_with_fakes.give_back(busy)
        assert idle.ended_by is not None
        assert busy.ended_by is not None
        assert await pool_with_fakes.take() not in (idle, busy)

    run_scenario(scenario)
