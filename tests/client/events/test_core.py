"""Bringing v1 Events to the API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT
from mooring.api.views.meta import ObjectReference
from mooring.client.events.formats import CoreFormat
from mooring.client.events.writer import PENDING_MAX, RETRY_S, EventWriter
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import open_loopback_client
from tests.client.faulty import Fault, FaultyClient, Outcome, Script


def about(name: str) -> ObjectReference:
    return ObjectReference(kind="Pod", namespace="default", name=name, uid=f"uid-{name}", api_version="v1")


class Stage:
    def __init__(self, client: Client, clock: VirtualClock, *faults: Fault) -> None:
        self.clock = clock
        self.client = FaultyClient(client, clock, Script(*faults))
        self.writer = EventWriter(self.client, clock, Entropy(2), CoreFormat())

    async def written(self) -> list[tuple[str, int]]:
        listing = await self.client.list(CORE_EVENT)
        found: list[Document] = [msgspec.json.decode(raw) for raw in listing.items]
        return [(event["message"], event["count"]) for event in found]


def play(story: Callable[[Stage], Awaitable[None]], *faults: Fault) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client, TaskGroup("test") as group:
            stage = Stage(client, clock, *faults)
            stage.writer.start(group)
            await story(stage)

    run(main(), clock)


def test_events_are_created_and_counted() -> None:
    async def story(stage: Stage) -> None:
        recorder = stage.writer.recorder("a")
        recorder.event(about("p"), "Normal", "Made", "one")
        recorder.event(about("p"), "Normal", "Made", "two")
        await stage.writer.wait_written()
        recorder.event(about("p"), "Normal", "Made", "one")
        await stage.writer.wait_written()
        assert await stage.written() == [("one", 2), ("two", 1)]
        assert stage.writer.statistics()["patched"] == 1

    play(story)


def test_what_happens_again_before_the_first_was_written_is_written_with_it() -> None:
    async def story(stage: Stage) -> None:
        recorder = stage.writer.recorder("a")
        recorder.event(about("p"), "Normal", "Made", "one")
        recorder.event(about("p"), "Normal", "Made", "one")
        await stage.writer.wait_written()
        assert await stage.written() == [("one", 2)]
        statistics = stage.writer.statistics()
        assert (statistics["created"], statistics["patched"]) == (1, 0)

    play(story)


def test_components_are_counted_apart() -> None:
    async def story(stage: Stage) -> None:
        for component in ("a", "b"):
            stage.writer.recorder(component).event(about("p"), "Normal", "Made", "one")
        await stage.writer.wait_written()
        assert await stage.written() == [("one", 1), ("one", 1)]

    play(story)


def test_an_event_that_expired_begins_anew() -> None:
    async def story(stage: Stage) -> None:
        recorder = stage.writer.recorder("a")
        recorder.event(about("p"), "Normal", "Made", "one")
        await stage.writer.wait_written()
        (name,) = [msgspec.json.decode(raw)["metadata"]["name"] for raw in (await stage.client.list(CORE_EVENT)).items]
        await stage.client.delete(CORE_EVENT, "default", name)
        recorder.event(about("p"), "Normal", "Made", "one")
        await stage.writer.wait_written()
        assert await stage.written() == [("one", 2)]

    play(story)


def test_a_server_in_trouble_is_asked_again() -> None:
    async def story(stage: Stage) -> None:
        stage.writer.recorder("a").event(about("p"), "Normal", "Made", "one")
        await stage.clock.wait(RETRY_S / 2)
        assert await stage.written() == []
        await stage.clock.wait(RETRY_S)
        assert await stage.written() == [("one", 1)]

    play(story, Fault("create", Outcome.BROKEN))


def test_what_is_refused_is_dropped() -> None:
    async def story(stage: Stage) -> None:
        stage.writer.recorder("a").event(about("p"), "Normal", "Made", "one")
        stage.writer.recorder("a").event(about("q"), "Normal", "Made", "two")
        await stage.writer.wait_written()
        assert await stage.written() == [("two", 1)]
        assert stage.writer.statistics()["dropped_refused"] == 1

    play(story, Fault("create", Outcome.CONFLICT))


def test_too_many_are_dropped() -> None:
    async def story(stage: Stage) -> None:
        recorder = stage.writer.recorder("a")
        for number in range(PENDING_MAX + 10):
            recorder.event(about(f"p{number}"), "Normal", "Made", "one")
        assert stage.writer.statistics()["dropped_full"] == 10
        await stage.writer.wait_written()
        assert len(await stage.written()) == PENDING_MAX

    play(story)
