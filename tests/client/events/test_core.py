"""Core v1 Events: writing to the API server, counting, combining and limiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT
from mooring.api.views.meta import ObjectReference
from mooring.client.events.recorder import SPAM_BURST, SPAM_REFILL_S
from mooring.client.events.writer import COMBINED, PENDING_MAX, RETRY_S, SIMILAR_S, CoreFormat, EventRecord, EventWriter
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


def test_repeated_events_are_counted() -> None:
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


def test_an_event_repeated_before_it_was_written_is_written_once() -> None:
    async def story(stage: Stage) -> None:
        recorder = stage.writer.recorder("a")
        recorder.event(about("p"), "Normal", "Made", "one")
        recorder.event(about("p"), "Normal", "Made", "one")
        await stage.writer.wait_written()
        assert await stage.written() == [("one", 2)]
        statistics = stage.writer.statistics()
        assert (statistics["created"], statistics["patched"]) == (1, 0)

    play(story)


def test_events_of_components_are_counted_separately() -> None:
    async def story(stage: Stage) -> None:
        for component in ("a", "b"):
            stage.writer.recorder(component).event(about("p"), "Normal", "Made", "one")
        await stage.writer.wait_written()
        assert await stage.written() == [("one", 1), ("one", 1)]

    play(story)


def test_an_expired_event_is_created_again_with_its_count() -> None:
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


def test_a_failed_write_is_retried() -> None:
    async def story(stage: Stage) -> None:
        stage.writer.recorder("a").event(about("p"), "Normal", "Made", "one")
        await stage.clock.wait(RETRY_S / 2)
        assert await stage.written() == []
        await stage.clock.wait(RETRY_S)
        assert await stage.written() == [("one", 1)]

    play(story, Fault("create", Outcome.BROKEN))


def test_a_rejected_event_is_dropped() -> None:
    async def story(stage: Stage) -> None:
        stage.writer.recorder("a").event(about("p"), "Normal", "Made", "one")
        stage.writer.recorder("a").event(about("q"), "Normal", "Made", "two")
        await stage.writer.wait_written()
        assert await stage.written() == [("two", 1)]
        assert stage.writer.statistics()["dropped_refused"] == 1

    play(story, Fault("create", Outcome.CONFLICT))


def test_events_beyond_the_limit_of_pending_events_are_dropped() -> None:
    async def story(stage: Stage) -> None:
        recorder = stage.writer.recorder("a")
        for number in range(PENDING_MAX + 10):
            recorder.event(about(f"p{number}"), "Normal", "Made", "one")
        assert stage.writer.statistics()["dropped_full"] == 10
        await stage.writer.wait_written()
        assert len(await stage.written()) == PENDING_MAX

    play(story)


WEB = ObjectReference(kind="ReplicaSet", namespace="default", name="web", uid="u1", api_version="apps/v1")


@dataclass
class EventWrite:
    """An event as the writer would write it."""

    namespace: str
    name: str
    body: dict[str, object]
    fields: dict[str, object]
    is_repeated: bool

    def patch(self) -> dict[str, object]:
        return self.fields


class Overheard(EventWriter):
    """A writer that records the last event and writes nothing."""

    def __init__(self, clock: VirtualClock) -> None:
        self.format = CoreFormat()
        super().__init__(cast(Client, None), clock, Entropy(1), self.format)
        self.last: EventWrite | None = None

    def enqueue(self, record: EventRecord) -> bool:
        body, patch = self.format.body(record), self.format.patch(record)
        self.last = EventWrite(record.namespace, record.name, body, patch, is_repeated=record.count > 1)
        return True


class Voice:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._writer = Overheard(self.clock)
        self._recorder = self._writer.recorder("test-controller")

    def say(self, message: str, about: ObjectReference = WEB, reason: str = "Created") -> EventWrite | None:
        self._writer.last = None
        self._recorder.event(about, "Normal", reason, message)
        return self._writer.last

    def surely(self, message: str, about: ObjectReference = WEB, reason: str = "Created") -> EventWrite:
        write = self.say(message, about, reason)
        assert write is not None
        return write


def test_the_body_of_a_core_event() -> None:
    write = Voice().surely("made")
    assert write.name.startswith("web.")
    assert write.body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": write.name, "namespace": "default"},
        "involvedObject": {
            "kind": "ReplicaSet",
            "namespace": "default",
            "name": "web",
            "uid": "u1",
            "apiVersion": "apps/v1",
        },
        "reason": "Created",
        "message": "made",
        "source": {"component": "test-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "test-controller",
        "reportingInstance": "",
    }


def test_a_repeated_message_is_counted() -> None:
    voice = Voice()
    first = voice.surely("made")
    voice.clock.advance_to(60)
    again = voice.surely("made")
    assert (again.name, again.is_repeated) == (first.name, True)
    assert again.patch() == {"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z", "message": "made"}
    assert again.body["firstTimestamp"] == "2026-01-01T00:00:00Z"


def test_another_message_is_another_event() -> None:
    voice = Voice()
    assert voice.surely("one").name != voice.surely("two").name


def test_from_the_tenth_message_of_a_reason_on_messages_are_combined() -> None:
    voice = Voice()
    written = [voice.surely(f"pod {number}") for number in range(12)]
    messages = [write.body["message"] for write in written]
    assert messages[8:] == ["pod 8", f"{COMBINED}pod 9", f"{COMBINED}pod 10", f"{COMBINED}pod 11"]
    assert [write.body["count"] for write in written[8:]] == [1, 1, 2, 3]
    assert len({write.name for write in written}) == 10


def test_messages_are_not_combined_after_a_quiet_interval() -> None:
    voice = Voice()
    for number in range(11):
        voice.say(f"pod {number}")
    voice.clock.advance_to(SIMILAR_S + 1)
    assert voice.surely("pod 99").body["message"] == "pod 99"


def test_events_of_an_object_are_limited_by_burst_and_refill() -> None:
    voice = Voice()
    written = [voice.say(f"{number}", reason=f"r{number}") for number in range(SPAM_BURST + 5)]
    assert [write is None for write in written] == [False] * SPAM_BURST + [True] * 5
    other = ObjectReference(kind="ReplicaSet", namespace="default", name="db", uid="u2")
    assert voice.say("x", about=other) is not None
    voice.clock.advance_to(SPAM_REFILL_S)
    assert voice.say("later", reason="r") is not None
    assert voice.say("at once", reason="r") is None


def test_events_about_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    assert Voice().surely("x", about=ObjectReference(kind="Node", name="n1")).namespace == "default"
