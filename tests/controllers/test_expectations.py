"""What was asked for and has not been seen yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import REPLICA_SET
from mooring.api.views.workloads import ReplicaSet
from mooring.client.cache.informer import Informer
from mooring.client.errors import ClientError, NoAnswerError, ServerError
from mooring.client.interface import Change
from mooring.controllers.expectations import EXPECTED_S_MAX, Expectations, WriteExpectations
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.api_servers import open_loopback_client
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.controllers.builders import replica_set

NO_ANSWER = NoAnswerError("no answer")


def has_seen_nothing(revision: str) -> bool:
    return False


def test_creations_are_counted_down() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    assert expectations.are_met("a")
    expectations.expect_creations("a", 2)
    expectations.creation_seen("a")
    assert not expectations.are_met("a")
    expectations.creation_seen("a")
    assert expectations.are_met("a")


def test_a_deletion_is_seen_once_however_often_it_is_told() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    expectations.expect_deletions("a", ["p1", "p2"])
    expectations.deletion_seen("a", "p1")
    expectations.deletion_seen("a", "p1")
    assert not expectations.are_met("a")
    expectations.deletion_seen("a", "p2")
    assert expectations.are_met("a")


def test_what_is_never_seen_is_given_up() -> None:
    clock = VirtualClock()
    expectations = Expectations(clock, has_seen_nothing)
    expectations.expect("a", 1, ["p1"])
    clock.advance_to(EXPECTED_S_MAX)
    assert not expectations.are_met("a")
    clock.advance_to(EXPECTED_S_MAX + 1)
    assert expectations.are_met("a")


def test_what_is_forgotten_is_not_expected() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    expectations.expect_creations("a", 1)
    expectations.forget("a")
    expectations.creation_seen("a")
    expectations.deletion_seen("a", "p")
    assert expectations.are_met("a")


def test_what_came_and_went_unseen_is_met_by_an_informer_that_is_newer() -> None:
    seen = ["1"]
    expectations = Expectations(VirtualClock(), lambda revision: int(revision) <= int(seen[-1]))
    expectations.expect_creations("a", 3)
    expectations.creation_answered("a", "10")
    expectations.creation_failed("a")
    seen.append("20")
    assert not expectations.are_met("a"), "one request is on its way still"
    expectations.creation_answered("a", "9")
    assert expectations.are_met("a")


def test_an_informer_that_is_older_has_seen_nothing_yet() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: int(revision) <= 9)
    expectations.expect("a", 1, ["p1"])
    expectations.creation_answered("a", "10")
    expectations.deletion_seen("a", "p1")
    assert not expectations.are_met("a")
    expectations.creation_seen("a")
    assert expectations.are_met("a")


def test_deletions_are_told_whatever_happens() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: True)
    expectations.expect("a", 1, ["p1"])
    expectations.creation_answered("a", "10")
    assert not expectations.are_met("a"), "the copy had the pod, so it hears of its end"


def test_versions_that_are_no_numbers_prove_nothing() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: True)
    expectations.expect_creations("a", 1)
    expectations.creation_answered("a", "abc")
    assert not expectations.are_met("a")


class WritesFixture:
    def __init__(self, client: FaultyClient) -> None:
        self.client = client
        self.informer: Informer[ReplicaSet] = Informer("sets")
        self.writes = WriteExpectations(self.client, REPLICA_SET, ReplicaSet, self.informer)

    async def create(self, name: str) -> bytes:
        return await self.client.create(REPLICA_SET, "default", replica_set(name))

    def see(self, raw: bytes) -> None:
        self.informer.apply(Change.ADDED, decode_as(ReplicaSet, raw))


def play(story: Callable[[WritesFixture], Awaitable[None]], *faults: Fault) -> None:
    clock = VirtualClock()

    async def recorded() -> None:
        async with open_loopback_client(clock) as client:
            fixture = WritesFixture(FaultyClient(client, clock, Script(*faults)))
            fixture.informer.replace([], "1")
            await story(fixture)

    run(recorded(), clock)


def test_a_write_is_waited_for() -> None:
    async def story(fixture: WritesFixture) -> None:
        assert await fixture.writes.are_met("web")
        raw = await fixture.create("web-1")
        assert fixture.writes.answered("web", raw).metadata.name == "web-1"
        assert not await fixture.writes.are_met("web")
        assert await fixture.writes.are_met("another")
        fixture.see(raw)
        assert await fixture.writes.are_met("web")

    play(story)


def test_what_is_forgotten_is_not_waited_for() -> None:
    async def story(fixture: WritesFixture) -> None:
        fixture.writes.answered("web", await fixture.create("web-1"))
        fixture.writes.forget("web")
        assert await fixture.writes.are_met("web")

    play(story)


def test_a_write_without_an_answer_is_asked_for_and_then_waited_for() -> None:
    async def story(fixture: WritesFixture) -> None:
        raw = await fixture.create("web-1")
        fixture.writes.failed("web", "default", "web-1", NO_ANSWER)
        assert not await fixture.writes.are_met("web")
        fixture.see(raw)
        assert await fixture.writes.are_met("web")
        assert [request.verb for request in fixture.client.requests] == ["create", "get"]

    play(story)


@pytest.mark.parametrize(
    ("error", "verbs"),
    [
        pytest.param(NO_ANSWER, ["get"], id="it got lost, and is not there"),
        pytest.param(ServerError("broken"), [], id="it was refused"),
    ],
)
def test_a_write_that_was_not_carried_out_holds_nobody_up(error: ClientError, verbs: list[str]) -> None:
    async def story(fixture: WritesFixture) -> None:
        fixture.writes.failed("web", "default", "web-1", error)
        assert await fixture.writes.are_met("web")
        assert [request.verb for request in fixture.client.requests] == verbs

    play(story)


def test_who_cannot_be_asked_is_asked_again() -> None:
    async def story(fixture: WritesFixture) -> None:
        fixture.writes.failed("web", "default", "web-1", NO_ANSWER)
        with pytest.raises(ServerError):
            await fixture.writes.are_met("web")
        assert await fixture.writes.are_met("web")

    play(story, Fault("get", Outcome.BROKEN))
