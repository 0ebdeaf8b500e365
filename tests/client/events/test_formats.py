"""Events of events.k8s.io and core/v1: format, names, counting, combining and the spam filter."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT
from mooring.api.views.meta import ObjectMeta, ObjectReference, reference_to
from mooring.api.views.pod import Pod
from mooring.client.events import (
    COMBINED,
    NOTE_BYTES_MAX,
    PENDING_MAX,
    RETRY_S,
    SIMILAR_S,
    SPAM_BURST,
    SPAM_REFILL_S,
    CoreFormat,
    EventKey,
    EventRecord,
    EventRecorder,
    EventWriter,
    SeriesFormat,
    SpamFilter,
    event_name,
    shortened,
)
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import open_loopback_client
from tests.client.faulty import Fault, FaultyClient, Outcome, Script

POD = ObjectReference(api_version="v1", kind="Pod", namespace="shop", name="web", uid="u1", resource_version="7")
NODE = ObjectReference(api_version="v1", kind="Node", name="n1", uid="u2")


def key(regarding: ObjectReference = POD, *, related: ObjectReference | None = None, type: str = "Normal") -> EventKey:
    return EventKey(type, "Binding", "Scheduled", "default-scheduler", "default-scheduler-host", regarding, related)


FORMAT = SeriesFormat()


def record_of(key: EventKey, name: str, note: str, seen_s: float) -> EventRecord:
    return EventRecord(key, key, name, note, seen_s, seen_s)


def test_the_body_of_an_event_of_kube_scheduler() -> None:
    record = record_of(key(related=NODE), "web.18", "Successfully assigned shop/web to n1", 1_767_225_600.25)
    assert FORMAT.body(record) == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "web.18", "namespace": "shop"},
        "eventTime": "2026-01-01T00:00:00.250000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
            "uid": "u1",
            "apiVersion": "v1",
            "resourceVersion": "7",
        },
        "related": {"kind": "Node", "name": "n1", "uid": "u2", "apiVersion": "v1"},
        "note": "Successfully assigned shop/web to n1",
        "type": "Normal",
    }


def test_a_series_has_a_count_and_a_last_observed_time() -> None:
    record = record_of(key(), "web.18", "note", 0.0)
    record.count, record.last_seen_s = 3, 1_767_225_601.0
    series = {"count": 3, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    assert FORMAT.patch(record) == {"series": series}
    assert FORMAT.body(record)["series"] == series


def test_events_about_cluster_scoped_objects_have_the_namespace_default() -> None:
    assert record_of(key(NODE), "n1.18", "note", 0.0).namespace == "default"


def test_reference_to_names_uid_and_resource_version() -> None:
    metadata = ObjectMeta(name="web", namespace="shop", uid="u1", resource_version="7")
    assert reference_to(Pod(metadata=metadata)) == POD


@pytest.mark.parametrize(
    ("object_name", "name"),
    [
        ("web", "web.ff"),
        ("node-1.example.com", "node-1.example.com.ff"),
        ("system:node", None),
        ("UPPER", None),
        ("x" * 250, "x" * 250 + ".ff"),
        ("x" * 251, None),
    ],
)
def test_event_name_is_none_if_it_would_be_invalid(object_name: str, name: str | None) -> None:
    assert event_name(object_name, 255) == name


@pytest.mark.parametrize(
    ("note", "wanted"),
    [
        pytest.param("short", "short", id="a short note"),
        pytest.param("x" * 1024, "x" * 1024, id="the maximum length"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="one byte too long"),
        pytest.param("ü" * 512, "ü" * 512, id="bytes are counted"),
        pytest.param("x" + "ü" * 600, "x" + "ü" * 509 + " ...", id="characters are not split"),
    ],
)
def test_long_notes_are_shortened_to_the_limit_of_the_api(note: str, wanted: str) -> None:
    assert shortened(note) == wanted
    assert len(shortened(note).encode()) <= NOTE_BYTES_MAX


def test_a_recorder_adds_its_controller_and_instance() -> None:
    recorded: list[tuple[EventKey, str]] = []
    recorder = EventRecorder(
        lambda key, note: recorded.append((key, note)), "default-scheduler", "default-scheduler-host"
    )
    recorder.event(POD, type="Normal", reason="Scheduled", action="Binding", note="hello")
    assert recorded == [(key(), "hello")]


def test_an_unknown_type_is_not_recorded(caplog: pytest.LogCaptureFixture) -> None:
    recorder = EventRecorder(lambda key, note: pytest.fail("recorded"), "c", "i")
    with caplog.at_level(logging.ERROR):
        recorder.event(POD, type="Alarming", reason="R", action="A", note="n")  # type: ignore[arg-type]
    assert "its type is 'Alarming'" in caplog.text


def test_the_spam_filter_limits_events_by_source_and_object() -> None:
    clock = VirtualClock()
    spam = SpamFilter(clock, burst=2, refill_s=300.0)
    assert [spam.is_allowed(FORMAT.spam_key(key())) for _ in range(3)] == [True, True, False]
    assert spam.is_allowed(FORMAT.spam_key(key(NODE)))
    assert spam.is_allowed(FORMAT.spam_key(key(type="Warning")))
    clock.advance_to(300.0)
    assert [spam.is_allowed(FORMAT.spam_key(key())) for _ in range(2)] == [True, False]


def test_the_spam_filter_evicts_the_least_recently_used_source() -> None:
    spam = SpamFilter(VirtualClock(), burst=1, refill_s=300.0, sources_max=2)
    others = [ObjectReference(kind="Pod", name=name) for name in "ab"]
    assert spam.is_allowed(FORMAT.spam_key(key()))
    assert spam.is_allowed(FORMAT.spam_key(key(others[0])))
    assert not spam.is_allowed(FORMAT.spam_key(key()))  # and makes this source the most recently used
    assert spam.is_allowed(FORMAT.spam_key(key(others[1])))
    assert not spam.is_allowed(FORMAT.spam_key(key()))
    assert spam.is_allowed(FORMAT.spam_key(key(others[0])))


def about(name: str) -> ObjectReference:
    return ObjectReference(kind="Pod", namespace="default", name=name, uid=f"uid-{name}", api_version="v1")


class EventScenario:
    def __init__(self, client: Client, clock: VirtualClock, *faults: Fault) -> None:
        self.clock = clock
        self.client = FaultyClient(client, clock, Script(*faults))
        self.writer = EventWriter(self.client, clock, Entropy(2), CoreFormat())

    async def written(self) -> list[tuple[str, int]]:
        listing = await self.client.list(CORE_EVENT)
        found: list[Document] = [msgspec.json.decode(raw) for raw in listing.items]
        return [(event["message"], event["count"]) for event in found]


def run_scenario(scenario: Callable[[EventScenario], Awaitable[None]], *faults: Fault) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client, TaskGroup("test") as group:
            events = EventScenario(client, clock, *faults)
            events.writer.start(group)
            await scenario(events)

    run(main(), clock)


def test_repeated_events_are_counted() -> None:
    async def scenario(events: EventScenario) -> None:
        recorder = events.writer.recorder("a")
        recorder.event(about("p"), "Normal", "Made", "one")
        recorder.event(about("p"), "Normal", "Made", "two")
        await events.writer.wait_written()
        recorder.event(about("p"), "Normal", "Made", "one")
        await events.writer.wait_written()
        assert await events.written() == [("one", 2), ("two", 1)]
        assert events.writer.statistics()["patched"] == 1

    run_scenario(scenario)


def test_an_event_repeated_before_it_was_written_is_written_once() -> None:
    async def scenario(events: EventScenario) -> None:
        recorder = events.writer.recorder("a")
        recorder.event(about("p"), "Normal", "Made", "one")
        recorder.event(about("p"), "Normal", "Made", "one")
        await events.writer.wait_written()
        assert await events.written() == [("one", 2)]
        statistics = events.writer.statistics()
        assert (statistics["created"], statistics["patched"]) == (1, 0)

    run_scenario(scenario)


def test_events_of_components_are_counted_separately() -> None:
    async def scenario(events: EventScenario) -> None:
        for component in ("a", "b"):
            events.writer.recorder(component).event(about("p"), "Normal", "Made", "one")
        await events.writer.wait_written()
        assert await events.written() == [("one", 1), ("one", 1)]

    run_scenario(scenario)


def test_an_expired_event_is_created_again_with_its_count() -> None:
    async def scenario(events: EventScenario) -> None:
        recorder = events.writer.recorder("a")
        recorder.event(about("p"), "Normal", "Made", "one")
        await events.writer.wait_written()
        (name,) = [msgspec.json.decode(raw)["metadata"]["name"] for raw in (await events.client.list(CORE_EVENT)).items]
        await events.client.delete(CORE_EVENT, "default", name)
        recorder.event(about("p"), "Normal", "Made", "one")
        await events.writer.wait_written()
        assert await events.written() == [("one", 2)]

    run_scenario(scenario)


def test_a_failed_write_is_retried() -> None:
    async def scenario(events: EventScenario) -> None:
        events.writer.recorder("a").event(about("p"), "Normal", "Made", "one")
        await events.clock.wait(RETRY_S / 2)
        assert await events.written() == []
        await events.clock.wait(RETRY_S)
        assert await events.written() == [("one", 1)]

    run_scenario(scenario, Fault("create", Outcome.BROKEN))


def test_a_rejected_event_is_dropped() -> None:
    async def scenario(events: EventScenario) -> None:
        events.writer.recorder("a").event(about("p"), "Normal", "Made", "one")
        events.writer.recorder("a").event(about("q"), "Normal", "Made", "two")
        await events.writer.wait_written()
        assert await events.written() == [("two", 1)]
        assert events.writer.statistics()["dropped_refused"] == 1

    run_scenario(scenario, Fault("create", Outcome.CONFLICT))


def test_events_beyond_the_limit_of_pending_events_are_dropped() -> None:
    async def scenario(events: EventScenario) -> None:
        recorder = events.writer.recorder("a")
        for number in range(PENDING_MAX + 10):
            recorder.event(about(f"p{number}"), "Normal", "Made", "one")
        assert events.writer.statistics()["dropped_full"] == 10
        await events.writer.wait_written()
        assert len(await events.written()) == PENDING_MAX

    run_scenario(scenario)


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


class DryRunWriter(EventWriter):
    """A writer that records the last event and writes nothing."""

    def __init__(self, clock: VirtualClock) -> None:
        self.format = CoreFormat()
        super().__init__(cast(Client, None), clock, Entropy(1), self.format)
        self.last: EventWrite | None = None

    def enqueue(self, record: EventRecord) -> bool:
        body, patch = self.format.body(record), self.format.patch(record)
        self.last = EventWrite(record.namespace, record.name, body, patch, is_repeated=record.count > 1)
        return True


class DryRunRecorder:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._writer = DryRunWriter(self.clock)
        self._recorder = self._writer.recorder("test-controller")

    def record(self, message: str, about: ObjectReference = WEB, reason: str = "Created") -> EventWrite | None:
        self._writer.last = None
        self._recorder.event(about, "Normal", reason, message)
        return self._writer.last

    def write(self, message: str, about: ObjectReference = WEB, reason: str = "Created") -> EventWrite:
        write = self.record(message, about, reason)
        assert write is not None
        return write


def test_the_body_of_a_core_event() -> None:
    write = DryRunRecorder().write("made")
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
    recorder = DryRunRecorder()
    first = recorder.write("made")
    recorder.clock.advance_to(60)
    again = recorder.write("made")
    assert (again.name, again.is_repeated) == (first.name, True)
    assert again.patch() == {"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z", "message": "made"}
    assert again.body["firstTimestamp"] == "2026-01-01T00:00:00Z"


def test_another_message_is_another_event() -> None:
    recorder = DryRunRecorder()
    assert recorder.write("one").name != recorder.write("two").name


def test_from_the_tenth_message_of_a_reason_on_messages_are_combined() -> None:
    recorder = DryRunRecorder()
    written = [recorder.write(f"pod {number}") for number in range(12)]
    messages = [write.body["message"] for write in written]
    assert messages[8:] == ["pod 8", f"{COMBINED}pod 9", f"{COMBINED}pod 10", f"{COMBINED}pod 11"]
    assert [write.body["count"] for write in written[8:]] == [1, 1, 2, 3]
    assert len({write.name for write in written}) == 10


def test_messages_are_not_combined_after_a_quiet_interval() -> None:
    recorder = DryRunRecorder()
    for number in range(11):
        recorder.record(f"pod {number}")
    recorder.clock.advance_to(SIMILAR_S + 1)
    assert recorder.write("pod 99").body["message"] == "pod 99"


def test_events_of_an_object_are_limited_by_burst_and_refill() -> None:
    recorder = DryRunRecorder()
    written = [recorder.record(f"{number}", reason=f"r{number}") for number in range(SPAM_BURST + 5)]
    assert [write is None for write in written] == [False] * SPAM_BURST + [True] * 5
    other = ObjectReference(kind="ReplicaSet", namespace="default", name="db", uid="u2")
    assert recorder.record("x", about=other) is not None
    recorder.clock.advance_to(SPAM_REFILL_S)
    assert recorder.record("later", reason="r") is not None
    assert recorder.record("at once", reason="r") is None


def test_events_about_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    assert DryRunRecorder().write("x", about=ObjectReference(kind="Node", name="n1")).namespace == "default"
