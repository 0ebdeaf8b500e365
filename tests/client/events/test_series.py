"""EventWriter with events of events.k8s.io: writes in the background, series, retries and limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import cast

import pytest

from mooring.api.decode import JsonBytes
from mooring.api.kinds import EVENT, NAMESPACE
from mooring.api.views.meta import ObjectReference
from mooring.client.errors import (
    AlreadyExistsError,
    ClientError,
    ForbiddenError,
    NoAnswerError,
    NotFoundError,
    ServerError,
)
from mooring.client.events import WORKERS_MAX, WORKERS_MIN, EventRecorder, EventWriter, SeriesFormat
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import DeadlockError, run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import open_loopback_client
from tests.client.scripted import ScriptedClient

WEB = ObjectReference(api_version="v1", kind="Pod", namespace="shop", name="web", uid="u1")
DB = ObjectReference(api_version="v1", kind="Pod", namespace="shop", name="db", uid="u2")


class EventFixture:
    """A running writer with a scripted client."""

    def __init__(self, clock: VirtualClock, client: ScriptedClient, writer: EventWriter) -> None:
        self.clock = clock
        self.client = client
        self.writer = writer
        self.recorder: EventRecorder = writer.recorder("default-scheduler", "default-scheduler-host")

    def record(self, regarding: ObjectReference = WEB, note: str = "no room", reason: str = "FailedScheduling") -> None:
        self.recorder.event(regarding, type="Warning", reason=reason, action="Scheduling", note=note)

    @property
    def requests(self) -> list[str]:
        return [what.split(".")[0] for what in self.client.requests]


def with_events(
    scenario: Callable[[EventFixture], Awaitable[None]],
    *,
    answers: list[ClientError | None] | None = None,
    pending_max: int = 100,
    series_max: int = 100,
    spam_burst: int = 25,
) -> EventFixture:
    clock = VirtualClock()
    client = ScriptedClient(clock, writes=answers or [])

    async def main() -> EventFixture:
        writer = EventWriter(
            client,
            clock,
            Entropy(1),
            SeriesFormat(),
            pending_max=pending_max,
            remembered_max=series_max,
            spam_burst=spam_burst,
        )
        fixture = EventFixture(clock, client, writer)
        async with TaskGroup("events") as group:
            writer.start(group)
            await scenario(fixture)
        return fixture

    return run(main(), clock)


def test_events_are_written_in_the_background_in_order() -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record(WEB)
        fixture.record(DB)
        assert fixture.requests == []
        await fixture.clock.wait(1)

    fixture = with_events(scenario)
    names = [body["metadata"]["name"] for _, body in fixture.client.written]  # type: ignore[index]
    assert [name.split(".")[0] for name in names] == ["web", "db"]
    assert fixture.writer.statistics()["created"] == 2


def test_a_series_is_written_when_it_starts_and_when_it_ends() -> None:
    async def scenario(fixture: EventFixture) -> None:
        for _ in range(5):
            fixture.record()
            await fixture.clock.wait(10)
        assert fixture.requests == ["create events shop", "patch events shop/web"]
        await fixture.clock.wait(1000)

    fixture = with_events(scenario)
    assert fixture.requests == ["create events shop", "patch events shop/web", "patch events shop/web"]
    patches = [body for what, body in fixture.client.written if what.startswith("patch")]
    assert patches == [
        {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:10.000000Z"}},
        {"series": {"count": 5, "lastObservedTime": "2026-01-01T00:00:40.000000Z"}},
    ]
    assert fixture.writer.statistics()["remembered"] == 0


def test_a_running_series_is_refreshed_periodically() -> None:
    async def scenario(fixture: EventFixture) -> None:
        for _ in range(61):
            fixture.record()
            await fixture.clock.wait(60)

    fixture = with_events(scenario)
    assert fixture.requests == ["create events shop"] + ["patch events shop/web"] * 3
    assert fixture.client.requested_at_s == [0.0, 60.0, 1800.0, 3600.0]


def test_an_event_repeated_before_its_first_write_is_created_as_a_series() -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record()
        fixture.record()
        await fixture.clock.wait(1)

    fixture = with_events(scenario)
    assert fixture.requests == ["create events shop"]
    ((_, body),) = fixture.client.written
    assert isinstance(body, dict)
    assert body["series"]["count"] == 2


@pytest.mark.parametrize(
    ("regarding", "reason"),
    [(DB, "FailedScheduling"), (WEB, "Preempted")],
    ids=["another object", "another reason"],
)
def test_another_object_or_reason_is_another_event(regarding: ObjectReference, reason: str) -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record()
        fixture.record(regarding, reason=reason)
        await fixture.clock.wait(1)

    assert with_events(scenario).requests == ["create events shop"] * 2


@pytest.mark.parametrize(
    ("answers", "asked", "counts"),
    [
        pytest.param([NoAnswerError("cut")], 2, {"created": 1, "retried": 1}, id="no response is retried"),
        pytest.param([ServerError("no")], 2, {"created": 1, "retried": 1}, id="a server error is retried"),
        pytest.param([ForbiddenError("no")], 1, {"created": 0, "dropped_refused": 1}, id="a rejection is not retried"),
        pytest.param([NoAnswerError("cut")] * 20, 12, {"created": 0, "dropped_refused": 1}, id="twelve attempts"),
        pytest.param(
            [NoAnswerError("cut"), AlreadyExistsError("is there")], 2, {"created": 1}, id="the first attempt was stored"
        ),
        pytest.param([AlreadyExistsError("is there")], 2, {"created": 1}, id="a used name is replaced"),
    ],
)
def test_errors_of_writes(answers: list[ClientError | None], asked: int, counts: dict[str, int]) -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record()
        await fixture.clock.wait(300)

    fixture = with_events(scenario, answers=answers)
    assert len(fixture.requests) == asked
    statistics = fixture.writer.statistics()
    assert {name: statistics[name] for name in counts} == counts
    assert statistics["pending"] == 0


def test_the_delay_between_retries_is_about_ten_seconds() -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record()
        await fixture.clock.wait(300)

    times_s = with_events(scenario, answers=[NoAnswerError("cut")] * 20).client.requested_at_s
    pauses_s = [later - sooner for sooner, later in pairwise(times_s)]
    assert all(10.0 <= pause_s <= 12.5 for pause_s in pauses_s)


def test_a_series_whose_event_has_expired_is_created_again() -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record()
        await fixture.clock.wait(1)
        fixture.record()
        await fixture.clock.wait(1)

    fixture = with_events(scenario, answers=[None, NotFoundError("expired")])
    assert fixture.requests == ["create events shop", "patch events shop/web", "create events shop"]


def test_event_names_are_unique_at_the_same_time() -> None:
    async def scenario(fixture: EventFixture) -> None:
        for number in range(20):
            fixture.record(reason=f"Reason{number}")
        await fixture.clock.wait(1)

    fixture = with_events(scenario)
    assert len({body["metadata"]["name"] for _, body in fixture.client.written}) == 20  # type: ignore[index]


def test_an_object_name_that_is_invalid_for_an_event_is_replaced_by_a_uuid() -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record(ObjectReference(kind="User", name="system:admin", uid="u"))
        await fixture.clock.wait(1)

    ((_, body),) = with_events(scenario).client.written
    assert isinstance(body, dict)
    assert len(body["metadata"]["name"]) == 36


def test_events_beyond_the_limit_are_dropped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(fixture: EventFixture) -> None:
        for number in range(10):
            fixture.record(reason=f"Reason{number}")
        await fixture.clock.wait(1)

    with caplog.at_level(logging.WARNING):
        fixture = with_events(scenario, pending_max=4)
    assert fixture.writer.statistics()["dropped_full"] == 6
    assert fixture.writer.statistics()["created"] == 4
    assert len(caplog.records) == 1


class SlowClient:
    """Takes a second for each request and counts concurrent requests."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._concurrent = 0
        self.concurrent_max = 0
        self.created = 0

    async def create(self, *_: object, is_answer_wanted: bool = True) -> bytes:
        self._concurrent += 1
        self.concurrent_max = max(self.concurrent_max, self._concurrent)
        await self._clock.wait(1)
        self._concurrent -= 1
        self.created += 1
        return b""


@pytest.mark.parametrize(
    ("records", "writers"),
    [
        pytest.param(100, WORKERS_MIN, id="few records"),
        pytest.param(9_000, WORKERS_MAX, id="many records"),
    ],
)
def test_the_number_of_workers_grows_with_pending_events(records: int, writers: int) -> None:
    clock = VirtualClock()
    client = SlowClient(clock)

    async def main() -> EventWriter:
        writer = EventWriter(cast(Client, client), clock, Entropy(1), SeriesFormat())
        recorder = writer.recorder("default-scheduler", "default-scheduler-host")
        async with TaskGroup("events") as group:
            writer.start(group)
            for number in range(records):
                about = ObjectReference(kind="Pod", namespace="shop", name=f"web-{number}", uid=f"u{number}")
                recorder.event(about, type="Normal", reason="Scheduled", action="Binding", note="there")
            await writer.close()
        return writer

    assert run(main(), clock).statistics()["created"] == client.created == records
    assert client.concurrent_max == writers


def test_events_about_one_object_are_limited_by_the_spam_filter() -> None:
    async def scenario(fixture: EventFixture) -> None:
        for number in range(10):
            fixture.record(reason=f"Reason{number}")
        fixture.record(DB)
        await fixture.clock.wait(301)
        fixture.record(reason="Last")
        await fixture.clock.wait(1)

    fixture = with_events(scenario, spam_burst=3)
    assert fixture.writer.statistics()["dropped_spam"] == 7
    assert fixture.writer.statistics()["created"] == 5


def test_the_oldest_series_is_evicted_at_the_limit() -> None:
    async def scenario(fixture: EventFixture) -> None:
        for _ in range(3):
            fixture.record(WEB)
            await fixture.clock.wait(1)
        fixture.record(DB)
        await fixture.clock.wait(1)

    fixture = with_events(scenario, series_max=1)
    patches = [body for what, body in fixture.client.written if what.startswith("patch")]
    assert [patch["series"]["count"] for patch in patches] == [2, 3]  # type: ignore[index]
    assert fixture.writer.statistics()["remembered"] == 1


def test_close_writes_pending_events_and_rejects_new_ones() -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record(WEB)
        await fixture.writer.close()
        assert fixture.requests == ["create events shop"]
        fixture.record(DB)
        await fixture.clock.wait(1)

    assert with_events(scenario).requests == ["create events shop"]


def test_an_idle_writer_sets_no_timer() -> None:
    async def scenario(fixture: EventFixture) -> None:
        fixture.record()
        await fixture.clock.wait(10_000)
        assert fixture.writer.statistics()["remembered"] == 0
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="no timer is set"):
        with_events(scenario)


def test_a_series_is_one_object_on_an_api_server() -> None:
    clock = VirtualClock()

    async def main() -> list[JsonBytes]:
        async with open_loopback_client(clock) as client:
            await client.create(NAMESPACE, "", {"metadata": {"name": "shop"}})
            writer = EventWriter(client, clock, Entropy(2), SeriesFormat())
            recorder = writer.recorder("default-scheduler", "default-scheduler-host")
            async with TaskGroup("events") as group:
                writer.start(group)
                for _ in range(3):
                    recorder.event(WEB, type="Warning", reason="FailedScheduling", action="Scheduling", note="no room")
                    await clock.wait(1)
                await clock.wait(1000)
            return list((await client.list(EVENT)).items)

    (event,) = run(main(), clock)
    assert b'"series":{"count":3,"lastObservedTime":"2026-01-01T00:00:02.000000Z"}' in bytes(event)
    assert b'"note":"no room"' in bytes(event)
