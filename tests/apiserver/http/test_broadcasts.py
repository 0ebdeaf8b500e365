"""Broadcasts: events that subscribers receive, the leader that reads the store, and clients that read slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

import pytest

from mooring.api.kinds import CONFIG_MAP
from mooring.apiserver.http import broadcasts as broadcasts_module
from mooring.apiserver.http.broadcasts import BATCH_S_MAX, Broadcasts, WatchSubscriber, position_after, position_of
from mooring.apiserver.storage.storage import BookmarkEvent, StoreEvent
from mooring.client.errors import ExpiredError, StatusError
from mooring.client.interface import Change, WatchEvent
from mooring.kit.clock import Clock, VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.response import framed

BROADCAST_KEY = "config maps of default"
MANY = 200


class FakeWatch:
    """A watch whose events the test provides."""

    def __init__(self) -> None:
        self._batches: asyncio.Queue[Sequence[WatchEvent] | StatusError] = asyncio.Queue()
        self.is_open = False

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False

    def emit(self, *revisions: int) -> None:
        self._batches.put_nowait([StoreEvent(Change.MODIFIED, b"{}", revision) for revision in revisions])

    def bookmark(self, revision: int) -> None:
        self._batches.put_nowait([BookmarkEvent(CONFIG_MAP, revision)])

    def fail(self, error: StatusError) -> None:
        self._batches.put_nowait(error)

    async def next_batch(self) -> Sequence[WatchEvent]:
        batch = await self._batches.get()
        if isinstance(batch, StatusError):
            raise batch
        return batch


class FakeClient:
    """A client whose buffer may be full."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.chunks_left = 1_000
        self.is_closed = False
        self._drained = asyncio.Event()

    def write_nowait(self, chunk: bytes) -> bool:
        if self.is_closed:
            return False
        self.chunks.append(chunk)
        self.chunks_left -= 1
        return self.chunks_left > 0

    async def wait_drained(self) -> None:
        if self.is_closed:
            raise ConnectionResetError("the client is closed")
        await self._drained.wait()

    def drain(self) -> None:
        self.chunks_left = 1_000
        self._drained.set()

    @property
    def received(self) -> list[str]:
        return b"".join(chunk.split(b"\r\n", 1)[1].removesuffix(b"\r\n") for chunk in self.chunks).decode().split()


class BroadcastSetup:
    """A broadcast with its subscribers."""

    def __init__(self, group: TaskGroup, clock: Clock) -> None:
        self._group = group
        self.clock = clock
        self.broadcasts = Broadcasts(clock)
        self.watches: list[FakeWatch] = []
        self.since: list[int] = []
        self.made: list[str] = []
        self.lost: list[WatchSubscriber] = []

    @property
    def watch(self) -> FakeWatch:
        return self.watches[-1]

    def subscribe(self, since: int) -> tuple[FakeClient, WatchSubscriber, asyncio.Task[None]]:
        client = FakeClient()
        subscriber = WatchSubscriber(client, position_after(since))
        serving = self.broadcasts.serve(BROADCAST_KEY, subscriber, self._watch_since, self._line_of)
        return client, subscriber, self._group.start_background(self._receive(subscriber, serving), name="subscriber")

    async def _receive(self, subscriber: WatchSubscriber, serving: Awaitable[None]) -> None:
        try:
            await serving
        except ConnectionError:
            self.lost.append(subscriber)

    async def wait(self) -> None:
        await self.clock.wait(BATCH_S_MAX * 2)

    def _watch_since(self, since: int) -> FakeWatch:
        self.since.append(since)
        self.watches.append(FakeWatch())
        return self.watches[-1]

    def _line_of(self, event: WatchEvent) -> bytes:
        name = "bookmark-" if event.change is Change.BOOKMARK else ""
        self.made.append(event.revision)
        return f"{name}{event.revision}\n".encode()


def run_scenario(scenario: Callable[[BroadcastSetup], Awaitable[None]]) -> None:
    async def main() -> None:
        async with TaskGroup("setup") as group:
            await scenario(BroadcastSetup(group, clock))

    clock = VirtualClock()
    run(main(), clock)


# ----------------------------------------------------------------------------------------------------- receiving


def test_subscribers_at_the_same_position_share_one_encoded_chunk() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        clients = [setup.subscribe(since=5)[0] for _ in range(MANY)]
        await setup.wait()
        setup.watch.emit(6, 7)
        await setup.wait()
        assert [client.received for client in clients] == [["6", "7"]] * MANY
        assert len({id(client.chunks[0]) for client in clients}) == 1
        assert (setup.made, setup.since) == (["6", "7"], [5])

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("since", "received"),
    [
        pytest.param(5, ["8", "9"], id="at the position of the broadcast"),
        pytest.param(8, ["9"], id="after the next change"),
        pytest.param(20, [], id="after all changes"),
    ],
)
def test_a_subscriber_receives_changes_after_its_position(since: int, received: list[str]) -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        setup.subscribe(since=5)
        await setup.wait()
        client, _, _ = setup.subscribe(since)
        await setup.wait()
        setup.watch.emit(8)
        setup.watch.emit(9)
        await setup.wait()
        assert client.received == received
        assert len(setup.watches) == 1

    run_scenario(scenario)


def test_a_bookmark_is_sent_to_subscribers_at_the_last_change() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        old, _, _ = setup.subscribe(since=5)
        await setup.wait()
        setup.watch.emit(7)
        await setup.wait()
        new, _, _ = setup.subscribe(since=7)
        setup.watch.bookmark(7)
        await setup.wait()
        assert (old.received, new.received) == (["7", "bookmark-7"], [])

    run_scenario(scenario)


def test_a_broadcast_rejects_subscribers_before_its_log() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        assert setup.broadcasts.takes(BROADCAST_KEY, position_after(1)), (
            "the first subscriber starts a broadcast at its position"
        )
        setup.subscribe(since=5)
        await setup.wait()
        setup.watch.emit(7)
        await setup.wait()
        assert not setup.broadcasts.takes(BROADCAST_KEY, position_after(6))
        assert setup.broadcasts.takes(BROADCAST_KEY, position_after(7))

    run_scenario(scenario)


# ------------------------------------------------------------------------------------------------------- batching


def test_a_single_subscriber_receives_every_change_immediately() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        client, _, _ = setup.subscribe(since=5)
        await setup.wait()
        for revision in (6, 7, 8):
            setup.watch.emit(revision)
            await setup.clock.wait(0.0001)
        assert client.chunks == [framed(b"6\n"), framed(b"7\n"), framed(b"8\n")]

    run_scenario(scenario)


def test_many_subscribers_receive_the_first_change_immediately_and_batch_later_ones() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        clients = [setup.subscribe(since=5)[0] for _ in range(MANY)]
        await setup.wait()
        for revision in (6, 7, 8):
            setup.watch.emit(revision)
            await setup.clock.wait(0.001)
        assert {len(client.chunks) for client in clients} == {1}
        await setup.clock.wait(BATCH_S_MAX)
        setup.watch.emit(9)
        await setup.wait()
        assert [client.received for client in clients] == [["6", "7", "8", "9"]] * MANY

    run_scenario(scenario)


# ----------------------------------------------------------------------------------------------------- the leader


def test_another_subscriber_leads_when_the_leader_leaves() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        subscribers = [setup.subscribe(since=5) for _ in range(3)]
        await setup.wait()
        for number, (_, _, task) in enumerate(subscribers[:2]):
            task.cancel()
            await setup.wait()
            setup.watch.emit(6 + number)
            await setup.wait()
        assert [client.received for client, _, _ in subscribers] == [[], ["6"], ["6", "7"]]
        assert len(setup.watches) == 1

    run_scenario(scenario)


def test_the_watch_is_closed_with_the_last_subscriber_and_opened_for_the_next() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        _, _, task = setup.subscribe(since=5)
        await setup.wait()
        states = [setup.watch.is_open]
        task.cancel()
        await setup.wait()
        assert [*states, setup.watch.is_open] == [True, False]
        client, _, _ = setup.subscribe(since=9)
        await setup.wait()
        setup.watch.emit(10)
        await setup.wait()
        assert (client.received, setup.since) == (["10"], [5, 9])

    run_scenario(scenario)


def test_subscribers_leave_at_their_position_when_the_watch_of_the_store_ends() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        subscribers = [setup.subscribe(since=5) for _ in range(3)]
        await setup.wait()
        setup.watch.emit(6)
        setup.watch.fail(ExpiredError("too old"))
        await setup.wait()
        assert all(task.done() and task.exception() is None for _, _, task in subscribers)
        assert [subscriber.position for _, subscriber, _ in subscribers] == [12] * 3
        assert not setup.watch.is_open

    run_scenario(scenario)


# ----------------------------------------------------------------------------------------------------- slow clients


@pytest.mark.parametrize("slow", [pytest.param(0, id="the leader"), pytest.param(1, id="another subscriber")])
def test_a_slow_client_does_not_block_others_and_catches_up(slow: int) -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        clients = [setup.subscribe(since=5)[0] for _ in range(3)]
        await setup.wait()
        clients[slow].chunks_left = 1
        for revision in (6, 7, 8):
            setup.watch.emit(revision)
            await setup.wait()
        assert [len(client.received) for client in clients] == [1 if number == slow else 3 for number in range(3)]
        clients[slow].drain()
        await setup.wait()
        assert [client.received for client in clients] == [["6", "7", "8"]] * 3

    run_scenario(scenario)


def test_the_broadcast_stops_reading_the_store_when_all_clients_are_full() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        client, _, _ = setup.subscribe(since=5)
        await setup.wait()
        client.chunks_left = 1
        for revision in (6, 7, 8):
            setup.watch.emit(revision)
        await setup.wait()
        assert (client.received, setup.made) == (["6"], ["6"])
        client.drain()
        await setup.wait()
        assert client.received == ["6", "7", "8"]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("limit", "value"),
    [pytest.param("LOG_LINES_MAX", 2, id="lines"), pytest.param("LOG_BYTES_MAX", 5, id="bytes")],
)
def test_a_slow_client_is_disconnected_from_the_broadcast_when_the_log_is_full(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(broadcasts_module, limit, value)

    async def scenario(setup: BroadcastSetup) -> None:
        quick, _, _ = setup.subscribe(since=5)
        slow, subscriber, task = setup.subscribe(since=5)
        await setup.wait()
        slow.chunks_left = 1
        for revision in (6, 7, 8, 9):
            setup.watch.emit(revision)
            await setup.wait()
        slow.drain()
        await setup.wait()
        assert (quick.received, slow.received) == (["6", "7", "8", "9"], ["6"])
        assert task.done()
        assert subscriber.position == 12
        assert not setup.broadcasts.takes(BROADCAST_KEY, subscriber.position)

    run_scenario(scenario)


def test_a_closed_client_ends_only_its_own_watch() -> None:
    async def scenario(setup: BroadcastSetup) -> None:
        other, _, _ = setup.subscribe(since=5)
        gone, subscriber, _ = setup.subscribe(since=5)
        gone.is_closed = True
        await setup.wait()
        setup.watch.emit(6)
        await setup.wait()
        setup.watch.emit(7)
        await setup.wait()
        assert other.received == ["6", "7"]
        assert setup.lost == [subscriber]

    run_scenario(scenario)


# -------------------------------------------------------------------------------------------------------- positions


def test_the_position_of_a_change_is_before_that_of_the_bookmark_of_its_revision() -> None:
    changed = StoreEvent(Change.DELETED, b"{}", 7)
    assert position_of(changed) < position_of(BookmarkEvent(CONFIG_MAP, 7)) == position_after(7)
