"""Broadcasts: events that listeners receive, the leader that reads the store, and clients that read slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

import pytest

from mooring.api.kinds import CONFIG_MAP
from mooring.apiserver.http import broadcasts as broadcasts_module
from mooring.apiserver.http.broadcasts import BATCH_S_MAX, Broadcasts, WatchSubscriber, position_after, position_of
from mooring.apiserver.storage.watch import BookmarkEvent, StoreEvent
from mooring.client.errors import ExpiredError, StatusError
from mooring.client.interface import Change, WatchEvent
from mooring.kit.clock import Clock, VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.serving.http.response import framed

QUESTION = "config maps of default"
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

    def happen(self, *revisions: int) -> None:
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


class FakeOutlet:
    """A client whose buffer may be full."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.room = 1_000
        self.is_gone = False
        self._drained = asyncio.Event()

    def write_nowait(self, chunk: bytes) -> bool:
        if self.is_gone:
            return False
        self.chunks.append(chunk)
        self.room -= 1
        return self.room > 0

    async def wait_drained(self) -> None:
        if self.is_gone:
            raise ConnectionResetError("the client is gone")
        await self._drained.wait()

    def drain(self) -> None:
        self.room = 1_000
        self._drained.set()

    @property
    def heard(self) -> list[str]:
        return b"".join(chunk.split(b"\r\n", 1)[1].removesuffix(b"\r\n") for chunk in self.chunks).decode().split()


class Studio:
    """A broadcast with its listeners."""

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

    def listen(self, since: int) -> tuple[FakeOutlet, WatchSubscriber, asyncio.Task[None]]:
        outlet = FakeOutlet()
        listener = WatchSubscriber(outlet, position_after(since))
        telling = self.broadcasts.serve(QUESTION, listener, self._watch_since, self._line_of)
        return outlet, listener, self._group.start_background(self._heard(listener, telling), name="listener")

    async def _heard(self, listener: WatchSubscriber, telling: Awaitable[None]) -> None:
        try:
            await telling
        except ConnectionError:
            self.lost.append(listener)

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


def play(story: Callable[[Studio], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with TaskGroup("studio") as group:
            await story(Studio(group, clock))

    clock = VirtualClock()
    run(whole(), clock)


# ----------------------------------------------------------------------------------------------------- receiving


def test_listeners_at_the_same_position_share_one_encoded_chunk() -> None:
    async def story(studio: Studio) -> None:
        outlets = [studio.listen(since=5)[0] for _ in range(MANY)]
        await studio.wait()
        studio.watch.happen(6, 7)
        await studio.wait()
        assert [outlet.heard for outlet in outlets] == [["6", "7"]] * MANY
        assert len({id(outlet.chunks[0]) for outlet in outlets}) == 1
        assert (studio.made, studio.since) == (["6", "7"], [5])

    play(story)


@pytest.mark.parametrize(
    ("since", "heard"),
    [
        pytest.param(5, ["8", "9"], id="whoever stands where the feed does hears all that comes"),
        pytest.param(8, ["9"], id="whoever knows more than the feed does not hear it again"),
        pytest.param(20, [], id="whoever knows far more hears nothing yet"),
    ],
)
def test_a_listener_receives_changes_after_its_position(since: int, heard: list[str]) -> None:
    async def story(studio: Studio) -> None:
        studio.listen(since=5)
        await studio.wait()
        outlet, _, _ = studio.listen(since)
        await studio.wait()
        studio.watch.happen(8)
        studio.watch.happen(9)
        await studio.wait()
        assert outlet.heard == heard
        assert len(studio.watches) == 1

    play(story)


def test_a_bookmark_is_sent_to_listeners_at_the_last_change() -> None:
    async def story(studio: Studio) -> None:
        old, _, _ = studio.listen(since=5)
        await studio.wait()
        studio.watch.happen(7)
        await studio.wait()
        new, _, _ = studio.listen(since=7)
        studio.watch.bookmark(7)
        await studio.wait()
        assert (old.heard, new.heard) == (["7", "bookmark-7"], [])

    play(story)


def test_a_broadcast_rejects_listeners_before_its_log() -> None:
    async def story(studio: Studio) -> None:
        assert studio.broadcasts.takes(QUESTION, position_after(1)), (
            "the first one makes a feed that stands where it does"
        )
        studio.listen(since=5)
        await studio.wait()
        studio.watch.happen(7)
        await studio.wait()
        assert not studio.broadcasts.takes(QUESTION, position_after(6))
        assert studio.broadcasts.takes(QUESTION, position_after(7))

    play(story)


# ------------------------------------------------------------------------------------------------------- batching


def test_a_single_listener_receives_every_change_immediately() -> None:
    async def story(studio: Studio) -> None:
        outlet, _, _ = studio.listen(since=5)
        await studio.wait()
        for revision in (6, 7, 8):
            studio.watch.happen(revision)
            await studio.clock.wait(0.0001)
        assert outlet.chunks == [framed(b"6\n"), framed(b"7\n"), framed(b"8\n")]

    play(story)


def test_many_listeners_receive_the_first_change_immediately_and_batch_later_ones() -> None:
    async def story(studio: Studio) -> None:
        outlets = [studio.listen(since=5)[0] for _ in range(MANY)]
        await studio.wait()
        for revision in (6, 7, 8):
            studio.watch.happen(revision)
            await studio.clock.wait(0.001)
        assert {len(outlet.chunks) for outlet in outlets} == {1}
        await studio.clock.wait(BATCH_S_MAX)
        studio.watch.happen(9)
        await studio.wait()
        assert [outlet.heard for outlet in outlets] == [["6", "7", "8", "9"]] * MANY

    play(story)


# ----------------------------------------------------------------------------------------------------- the leader


def test_another_listener_leads_when_the_leader_leaves() -> None:
    async def story(studio: Studio) -> None:
        listeners = [studio.listen(since=5) for _ in range(3)]
        await studio.wait()
        for number, (_, _, task) in enumerate(listeners[:2]):
            task.cancel()
            await studio.wait()
            studio.watch.happen(6 + number)
            await studio.wait()
        assert [outlet.heard for outlet, _, _ in listeners] == [[], ["6"], ["6", "7"]]
        assert len(studio.watches) == 1

    play(story)


def test_the_watch_is_closed_with_the_last_listener_and_opened_for_the_next() -> None:
    async def story(studio: Studio) -> None:
        _, _, task = studio.listen(since=5)
        await studio.wait()
        states = [studio.watch.is_open]
        task.cancel()
        await studio.wait()
        assert [*states, studio.watch.is_open] == [True, False]
        outlet, _, _ = studio.listen(since=9)
        await studio.wait()
        studio.watch.happen(10)
        await studio.wait()
        assert (outlet.heard, studio.since) == (["10"], [5, 9])

    play(story)


def test_listeners_leave_at_their_position_when_the_watch_of_the_store_ends() -> None:
    async def story(studio: Studio) -> None:
        listeners = [studio.listen(since=5) for _ in range(3)]
        await studio.wait()
        studio.watch.happen(6)
        studio.watch.fail(ExpiredError("too old"))
        await studio.wait()
        assert all(task.done() and task.exception() is None for _, _, task in listeners)
        assert [listener.position for _, listener, _ in listeners] == [12] * 3
        assert not studio.watch.is_open

    play(story)


# ----------------------------------------------------------------------------------------------------- slow clients


@pytest.mark.parametrize("slow", [pytest.param(0, id="the one who reads for all"), pytest.param(1, id="another one")])
def test_a_slow_client_does_not_block_others_and_catches_up(slow: int) -> None:
    async def story(studio: Studio) -> None:
        outlets = [studio.listen(since=5)[0] for _ in range(3)]
        await studio.wait()
        outlets[slow].room = 1
        for revision in (6, 7, 8):
            studio.watch.happen(revision)
            await studio.wait()
        assert [len(outlet.heard) for outlet in outlets] == [1 if number == slow else 3 for number in range(3)]
        outlets[slow].drain()
        await studio.wait()
        assert [outlet.heard for outlet in outlets] == [["6", "7", "8"]] * 3

    play(story)


def test_the_broadcast_stops_reading_the_store_when_all_clients_are_full() -> None:
    async def story(studio: Studio) -> None:
        outlet, _, _ = studio.listen(since=5)
        await studio.wait()
        outlet.room = 1
        for revision in (6, 7, 8):
            studio.watch.happen(revision)
        await studio.wait()
        assert (outlet.heard, studio.made) == (["6"], ["6"])
        outlet.drain()
        await studio.wait()
        assert outlet.heard == ["6", "7", "8"]

    play(story)


@pytest.mark.parametrize(
    ("limit", "value"),
    [pytest.param("LOG_LINES_MAX", 2, id="lines"), pytest.param("LOG_BYTES_MAX", 5, id="bytes")],
)
def test_a_slow_client_is_disconnected_from_the_broadcast_when_the_log_is_full(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(broadcasts_module, limit, value)

    async def story(studio: Studio) -> None:
        quick, _, _ = studio.listen(since=5)
        slow, listener, task = studio.listen(since=5)
        await studio.wait()
        slow.room = 1
        for revision in (6, 7, 8, 9):
            studio.watch.happen(revision)
            await studio.wait()
        slow.drain()
        await studio.wait()
        assert (quick.heard, slow.heard) == (["6", "7", "8", "9"], ["6"])
        assert task.done()
        assert listener.position == 12
        assert not studio.broadcasts.takes(QUESTION, listener.position)

    play(story)


def test_a_closed_client_ends_only_its_own_watch() -> None:
    async def story(studio: Studio) -> None:
        other, _, _ = studio.listen(since=5)
        gone, listener, _ = studio.listen(since=5)
        gone.is_gone = True
        await studio.wait()
        studio.watch.happen(6)
        await studio.wait()
        studio.watch.happen(7)
        await studio.wait()
        assert other.heard == ["6", "7"]
        assert studio.lost == [listener]

    play(story)


# -------------------------------------------------------------------------------------------------------- positions


def test_the_position_of_a_change_is_before_that_of_the_bookmark_of_its_revision() -> None:
    changed = StoreEvent(Change.DELETED, b"{}", 7)
    assert position_of(changed) < position_of(BookmarkEvent(CONFIG_MAP, 7)) == position_after(7)
