"""The client over a pipe keeps the promise; and what only it does: calls given up, an end that goes away."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.client import pipe
from mooring.client.errors import NoAnswerError, ServerError
from mooring.client.interface import Client
from mooring.client.pipe import PipeClient
from mooring.client.pipe_server import PipeServer
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore
from tests.client.contract import ClientContract
from tests.client.contract_play import NS, Play, Scenario
from tests.client.objects import config_map, text_at
from tests.fakes.raw_client import RawClient
from tests.waiting import LIMIT_S

CLOCK = SystemClock()


@asynccontextmanager
async def piped(behind: Client) -> AsyncIterator[PipeClient]:
    """A client over a pipe to the one behind it."""
    here, there = socket.socketpair()
    async with TaskGroup("pipes") as group:
        group.start_background(PipeServer(behind).serve(there), name="server")
        client = PipeClient()
        await client.open(here)
        try:
            yield client
        finally:
            client.close()


def local() -> RawClient:
    return RawClient(MemoryStore(), SystemClock(), Entropy(1))


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(LIMIT_S):
            await scene()

    run_real(bounded())


class TestTheContract(ClientContract):
    @pytest.fixture
    def play(self) -> Play:
        def play_piped(scenario: Scenario) -> None:
            async def scene() -> None:
                async with piped(local()) as client:
                    await scenario(client)

            play(scene)

        return play_piped


class Stuck(RawClient):
    """Writes never come to an end."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), SystemClock(), Entropy(1))
        self.was_cancelled = asyncio.Event()

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.was_cancelled.set()


class Broken(RawClient):
    """Has a bug."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), SystemClock(), Entropy(1))

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        raise ZeroDivisionError("nobody promised that")


class TestCallsThatEndOtherwise:
    def test_who_stops_waiting_stops_the_work_at_the_other_end(self) -> None:
        async def scene() -> None:
            behind = Stuck()
            async with piped(behind) as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await client.bind(NS, "web", "", "node-1")
                await behind.was_cancelled.wait()
                assert (await client.list(POD)).items == []

        play(scene)

    def test_a_bug_at_the_other_end_is_told_here_and_logged_there(self, caplog: pytest.LogCaptureFixture) -> None:
        async def scene() -> None:
            async with piped(Broken()) as client:
                with pytest.raises(ServerError, match="ZeroDivisionError: nobody promised that"):
                    await client.bind(NS, "web", "", "node-1")

        play(scene)
        assert "a Bind of another process failed" in caplog.text

    def test_a_call_that_is_given_up_at_once_is_forgotten(self) -> None:
        async def scene() -> None:
            here, there = socket.socketpair()
            server = PipeServer(Stuck())
            async with TaskGroup("scene") as group:
                group.start(server.serve(there), name="server")
                client = PipeClient()
                await client.open(here)
                async with TaskGroup("calls") as calls:
                    calls.start_background(client.bind(NS, "web", "", "node-1"), name="call")
                    await CLOCK.wait(0)
                await client.list(POD)
                assert server.statistics() == {"calls": 0}
                client.close()

        play(scene)

    def test_a_watch_that_is_left_is_closed_at_the_other_end(self) -> None:
        async def scene() -> None:
            store = MemoryStore()
            async with piped(RawClient(store, SystemClock(), Entropy(1))) as client:
                since = (await client.list(CONFIG_MAP)).revision
                async with client.watch(CONFIG_MAP, since=since):
                    assert store.statistics()["watches"] == 1
                while store.statistics()["watches"]:
                    await CLOCK.wait(0)

        play(scene)


class TestAnEndThatGoesAway:
    def test_calls_and_watches_under_way_have_no_answer(self) -> None:
        async def scene() -> None:
            here, there = socket.socketpair()
            client = PipeClient()
            await client.open(here)
            watch = client.watch(CONFIG_MAP, since="1")
            async with TaskGroup("calls") as group:
                calls = [client.get(CONFIG_MAP, NS, "a"), watch.__aenter__()]
                waiting = [group.start(_refusal(call), name="call") for call in calls]
                await CLOCK.wait(0)
                there.close()
            for each in waiting:
                assert isinstance(each.result(), NoAnswerError)
                assert str(each.result()) == "the process of the API server is gone"
            await client.wait_ended()
            with pytest.raises(NoAnswerError):
                await client.get(CONFIG_MAP, NS, "a")

        play(scene)

    def test_who_cannot_go_on_hears_of_it_before_any_call_fails(self) -> None:
        async def scene() -> None:
            here, there = socket.socketpair()
            order: list[str] = []
            client = PipeClient(on_end=lambda: order.append("end"))
            await client.open(here)
            async with TaskGroup("calls") as group:
                call = group.start(_refusal(client.get(CONFIG_MAP, NS, "a")), name="call")
                call.add_done_callback(lambda task: order.append("call"))
                await CLOCK.wait(0)
                there.close()
            assert order == ["end", "call"]

        play(scene)

    def test_the_server_ends_with_its_client(self) -> None:
        async def scene() -> None:
            here, there = socket.socketpair()
            async with TaskGroup("serving") as group:
                group.start(PipeServer(local()).serve(there), name="server")
                client = PipeClient()
                await client.open(here)
                await client.list(POD)
                client.close()

        play(scene)


class TestAReaderWhoIsSlow:
    def test_what_is_unread_is_bounded_and_nothing_is_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pipe, "UNREAD_BYTES_MAX", 20_000)
        count, padding = 200, "x" * 2_000

        async def scene() -> None:
            behind = local()
            async with piped(behind) as client:
                since = (await client.list(CONFIG_MAP)).revision
                async with client.watch(CONFIG_MAP, since=since, bookmarks=False) as watch:
                    for number in range(count):
                        await behind.create(CONFIG_MAP, NS, config_map(f"c-{number}", {"text": padding}))
                        await CLOCK.wait(0)
                    assert client.is_paused
                    told: list[str] = []
                    while len(told) < count:
                        told += [text_at(event.raw, "metadata.name") for event in await watch.next_batch()]
                    assert told == [f"c-{number}" for number in range(count)]
                    assert not client.is_paused

        play(scene)


async def _refusal(call: Awaitable[object]) -> Exception | None:
    try:
        await call
    except Exception as error:
        return error
    return None
