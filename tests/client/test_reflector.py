"""Reflector: sends each object and each change to its sink once, despite failures."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.errors import (
    ClientError,
    ExpiredError,
    ForbiddenError,
    NoAnswerError,
    ServerError,
    TooManyRequestsError,
)
from mooring.client.interface import Change, Listing
from mooring.client.reflector import BACKOFF, Reflector
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.client.scripted import (
    END,
    After,
    ScriptedClient,
    ScriptedEvent,
    Step,
    added,
    bookmark,
    deleted,
    listing,
    modified,
    pod_bytes,
)


class RecordingSink:
    """A sink that records its calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def replace(self, views: Sequence[Pod], revision: str) -> None:
        self.lines.append(f"all@{revision}: {' '.join(view.metadata.name for view in views)}".strip())

    def apply(self, change: Change, view: Pod) -> None:
        self.lines.append(f"{change.value} {view.metadata.name}@{view.metadata.resource_version}")


class PagedRecordingSink(RecordingSink):
    """A sink that gets lists page by page."""

    def begin_list(self) -> None:
        self.lines.append("a list")

    def take_page(self, views: Sequence[Pod]) -> None:
        self.lines.append(f"some: {' '.join(view.metadata.name for view in views)}".strip())

    def end_list(self, revision: str) -> None:
        self.lines.append(f"all@{revision}")


class ReflectorRun:
    """A reflector that ran for some time against scripted responses."""

    def __init__(
        self,
        lists: Sequence[Listing | ClientError],
        watches: Sequence[Sequence[Step]],
        *,
        for_s: float = 600.0,
        sink: RecordingSink | None = None,
    ) -> None:
        clock = VirtualClock()
        self.client = ScriptedClient(clock, list(lists), list(watches))
        self.sink = sink if sink is not None else RecordingSink()

        async def main() -> None:
            self.reflector = Reflector(self.client, POD, Pod, self.sink, clock=clock, entropy=Entropy(1), page_size=2)
            assert not self.reflector.has_synced
            async with TaskGroup("reflector_run") as group:
                group.start_background(self.reflector.run(), name="reflector")
                await clock.wait(for_s)

        run(main(), clock)

    @property
    def received(self) -> list[str]:
        return self.sink.lines

    def requests_after_s(self) -> list[tuple[str, float]]:
        times = self.client.requested_at_s
        return [(what, times[i] - (times[i - 1] if i else 0.0)) for i, what in enumerate(self.client.requests)]


@pytest.mark.parametrize(
    ("watches", "received", "asked"),
    [
        pytest.param(
            [[added("b", 2), modified("b", 3), deleted("a", 4)]],
            ["ADDED b@2", "MODIFIED b@3", "DELETED a@4"],
            ["watch 1"],
            id="changes in order",
        ),
        pytest.param(
            [[added("b", 2), After(5), END], [modified("b", 3)]],
            ["ADDED b@2", "MODIFIED b@3"],
            ["watch 1", "watch 2"],
            id="a watch ended by the server continues at the last revision",
        ),
        pytest.param(
            [[added("b", 2), NoAnswerError("cut")], [modified("b", 3)]],
            ["ADDED b@2", "MODIFIED b@3"],
            ["watch 1", "watch 2"],
            id="a broken watch continues at the last revision",
        ),
        pytest.param(
            [[added("b", 2), bookmark(9), NoAnswerError("cut")], [modified("b", 12)]],
            ["ADDED b@2", "MODIFIED b@12"],
            ["watch 1", "watch 9"],
            id="a broken watch continues at the last bookmark",
        ),
        pytest.param(
            [[added("b", 2), added("b", 2), NoAnswerError("cut")], [added("b", 2), modified("b", 3)]],
            ["ADDED b@2", "MODIFIED b@3"],
            ["watch 1", "watch 2"],
            id="repeated events are dropped",
        ),
        pytest.param(
            [[added("b", 10), bookmark(9), modified("b", 11)]],
            ["ADDED b@10", "MODIFIED b@11"],
            ["watch 1"],
            id="revisions are compared as numbers",
        ),
        pytest.param(
            [[ServerError("no")], [ForbiddenError("no")], [TooManyRequestsError("no")], [added("b", 2)]],
            ["ADDED b@2"],
            ["watch 1"] * 4,
            id="every error is retried",
        ),
    ],
)
def test_events_of_a_watch_are_sent_to_the_sink(
    watches: list[list[Step]], received: list[str], asked: list[str]
) -> None:
    reflector_run = ReflectorRun([listing(1, "a")], watches)
    assert reflector_run.received == ["all@1: a", *received]
    assert reflector_run.client.requests == ["list 2", *asked]
    assert reflector_run.reflector.has_synced


def test_an_expired_watch_is_followed_by_a_new_list() -> None:
    reflector_run = ReflectorRun(
        [listing(1, "a"), listing(7, "b")], [[added("b", 2), ExpiredError("too old")], [modified("b", 8)]]
    )
    assert reflector_run.received == ["all@1: a", "ADDED b@2", "all@7: b", "MODIFIED b@8"]
    assert reflector_run.client.requests == ["list 2", "watch 1", "list 2", "watch 7"]


def test_a_paginated_list_is_sent_to_the_sink_as_one_list() -> None:
    reflector_run = ReflectorRun([listing(1, "a", "b", token="two"), listing(1, "c")], [])
    assert reflector_run.received == ["all@1: a b c"]
    assert reflector_run.client.requests == ["list 2", "list 2 two", "watch 1"]


def test_an_expired_page_is_followed_by_a_list_without_pages() -> None:
    reflector_run = ReflectorRun([listing(1, "a", "b", token="two"), ExpiredError("old"), listing(5, "c")], [])
    assert reflector_run.received == ["all@5: c"]
    assert reflector_run.client.requests == ["list 2", "list 2 two", "list 0", "watch 5"]


@pytest.mark.parametrize(
    ("lists", "received"),
    [
        pytest.param([listing(1, "a")], ["a list", "some: a", "all@1"], id="a short list"),
        pytest.param(
            [listing(1, "a", "b", token="two"), listing(1, "c")],
            ["a list", "some: a b", "some: c", "all@1"],
            id="a long list",
        ),
        pytest.param(
            [listing(1, "a", "b", token="two"), ExpiredError("old"), listing(5, "c")],
            ["a list", "some: a b", "a list", "some: c", "all@5"],
            id="an expired page restarts the list",
        ),
    ],
)
def test_a_sink_with_pages_gets_lists_page_by_page(lists: list[Listing | ClientError], received: list[str]) -> None:
    assert ReflectorRun(lists, [[modified("c", 8)]], sink=PagedRecordingSink()).received == [*received, "MODIFIED c@8"]


def test_events_of_one_batch_are_sent_in_order() -> None:
    reflector_run = ReflectorRun([listing(1)], [[[added("a", 2), added("b", 3), bookmark(4), deleted("a", 5)]]])
    assert reflector_run.received == ["all@1:", "ADDED a@2", "ADDED b@3", "DELETED a@5"]


def test_retries_back_off_up_to_a_maximum() -> None:
    reflector_run = ReflectorRun([NoAnswerError("down")] * 8 + [listing(1)], [], for_s=1000)
    delays_s = [delay_s for _, delay_s in reflector_run.requests_after_s()[1:9]]
    for failures, delay_s in enumerate(delays_s, start=1):
        assert BACKOFF.delay_s(failures) <= delay_s <= 2 * BACKOFF.delay_s(failures)
    assert BACKOFF.delay_s(8) == 30.0


def test_the_backoff_is_reset_after_two_minutes_without_failures() -> None:
    cut = NoAnswerError("cut")
    reflector_run = ReflectorRun([listing(1)], [[cut], [cut], [cut], [After(121), cut], []])
    delays_s = [delay_s for _, delay_s in reflector_run.requests_after_s()]
    assert delays_s[4] >= BACKOFF.delay_s(3)
    assert delays_s[5] - 121 <= 2 * BACKOFF.delay_s(1)


def test_retry_after_of_the_server_extends_the_delay() -> None:
    reflector_run = ReflectorRun([TooManyRequestsError("later", retry_after_s=77.0), listing(1)], [])
    assert reflector_run.requests_after_s()[1] == ("list 2", 77.0)


def test_a_watch_that_ends_immediately_is_retried_with_a_delay() -> None:
    reflector_run = ReflectorRun([listing(1)], [[END]] * 3)
    assert all(delay_s >= 0.8 for _, delay_s in reflector_run.requests_after_s()[2:5])


def test_a_watch_that_expires_immediately_is_listed_again_with_a_delay() -> None:
    reflector_run = ReflectorRun([listing(revision) for revision in range(1, 5)], [[ExpiredError("too old")]] * 3)
    lists = [(what, delay_s) for what, delay_s in reflector_run.requests_after_s()[1:] if what.startswith("list")]
    assert len(lists) == 3
    assert all(delay_s >= 0.8 for _, delay_s in lists)


def test_an_undecodable_object_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    broken = b'{"metadata":{"name":["x"]}}'
    with caplog.at_level(logging.ERROR):
        reflector_run = ReflectorRun(
            [Listing([pod_bytes("a", 1), broken], "1")],
            [[ScriptedEvent(Change.ADDED, broken, "2"), added("b", 3)]],
        )
    assert reflector_run.received == ["all@1: a", "ADDED b@3"]
    assert reflector_run.reflector.statistics()["unreadable"] == 2
    assert "left out because it cannot be read" in caplog.text


def test_wait_synced_returns_after_the_first_list_of_the_reflector() -> None:
    clock = VirtualClock()
    client = ScriptedClient(clock, [NoAnswerError("down"), listing(1)])
    sink = RecordingSink()

    async def wait() -> list[str]:
        reflector = Reflector(client, POD, Pod, sink, clock=clock, entropy=Entropy(1))
        async with TaskGroup("wait") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            return list(sink.lines)

    assert run(wait(), clock) == ["all@1:"]


def test_statistics_count_lists_watches_and_events() -> None:
    reflector_run = ReflectorRun([listing(1), listing(4)], [[added("a", 2), added("a", 2), ExpiredError("old")], []])
    assert reflector_run.reflector.statistics() == {
        "lists": 2,
        "watches": 2,
        "changes": 1,
        "repeated": 1,
        "unreadable": 0,
        "failures": 0,
    }


def test_an_outage_is_logged_once_per_retry(caplog: pytest.LogCaptureFixture) -> None:
    """Ten reflectors of one client get no response for a while."""
    clock = VirtualClock()
    client = ScriptedClient(clock, [*[NoAnswerError("cannot connect")] * 40, *[listing(1)] * 10], [])

    async def main() -> None:
        async with TaskGroup("reflector_run") as group:
            for number in range(10):
                reflector = Reflector(client, POD, Pod, RecordingSink(), clock=clock, entropy=Entropy(number))
                group.start_background(reflector.run(), name=str(number))
            await clock.wait(60)

    with caplog.at_level(logging.INFO):
        run(main(), clock)
    retries = [text for text in caplog.messages if "does not answer" in text]
    assert 4 <= len(retries) <= 6, retries  # each of the ten fails four times
    assert all("cannot connect" in text and "trying again in" in text for text in retries)
    assert caplog.messages.count("the API server answers again") == 1
