"""Leader election on virtual time: two processes never lead, and after a failure another process leads soon.

Election records: reading from a Lease and writing into one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from mooring.api.kinds import LEASE
from mooring.client.election import (
    ElectionRecord,
    ElectionSettings,
    ElectionSettingsError,
    acquired_record,
    lease_with,
    new_lease,
    record_in,
    released_record,
)
from mooring.client.errors import ServerError
from mooring.client.interface import PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import open_loopback_client
from tests.client.election.play import ElectionScenario, Process

Scenario = Callable[[ElectionScenario, Process, Process], Awaitable[None]]

STEP_S = 0.001


def run_election(
    scenario: Scenario, *, seed: int = 1, skew_s: float = 0.0, rate: float = 1.0
) -> tuple[ElectionScenario, Process, Process]:
    """`a` starts before `b`; after the scenario both are stopped."""
    clock = VirtualClock()

    async def main() -> tuple[ElectionScenario, Process, Process]:
        entropy = Entropy(seed)
        async with open_loopback_client(clock, entropy.fork("apiserver")) as client, TaskGroup("election") as group:
            election = ElectionScenario(client, clock, entropy)
            first, second = election.process("a"), election.process("b", wall_skew_s=skew_s, rate=rate)
            election.begin(group, first)
            await clock.wait(STEP_S)
            election.begin(group, second)
            await scenario(election, first, second)
            for process in (first, second):
                process.go_on()
                process.stop()
        return election, first, second

    return run(main(), clock)


async def no_failure(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(120)


async def first_is_killed(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(30)
    first.kill()
    await election.clock.wait(60)


async def first_stops_cleanly(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(30)
    first.stop()
    await election.clock.wait(60)


async def first_is_cut_off(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(30)
    first.is_cut_off = True
    await election.clock.wait(60)


async def responses_to_first_are_lost(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(30)
    first.are_answers_lost = True
    await election.clock.wait(60)


async def first_is_paused_for_a_minute(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(30)
    first.pause()
    await election.clock.wait(60)
    first.go_on()
    await election.clock.wait(30)


async def first_is_paused_for_seconds(election: ElectionScenario, first: Process, second: Process) -> None:
    for pause_s in (1.0, 3.0, 6.0):
        await election.clock.wait(30)
        first.pause()
        await election.clock.wait(pause_s)
        first.go_on()
    await election.clock.wait(30)


async def first_is_cut_off_for_seconds(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(30)
    first.is_cut_off = True
    await election.clock.wait(2)
    first.is_cut_off = False
    await election.clock.wait(30)


async def responses_take_four_seconds(election: ElectionScenario, first: Process, second: Process) -> None:
    await election.clock.wait(30)
    first.delay_s = 2.0
    await election.clock.wait(120)


@pytest.mark.parametrize(
    ("scenario", "leaders", "gap_s_max"),
    [
        pytest.param(no_failure, ["a"], 0.3, id="the first process leads"),
        pytest.param(first_is_killed, ["a", "b"], 24.0, id="after a kill the other leads when the lease expires"),
        pytest.param(first_stops_cleanly, ["a", "b"], 4.5, id="after a clean stop the other leads at its next attempt"),
        pytest.param(first_is_cut_off, ["a", "b"], 24.0, id="a disconnected leader stops, and the other leads"),
        pytest.param(responses_to_first_are_lost, ["a", "b"], 30.0, id="renewals without a response do not count"),
        pytest.param(
            first_is_paused_for_a_minute, ["a", "b"], 24.0, id="a process paused for a minute loses the lease"
        ),
        pytest.param(first_is_paused_for_seconds, ["a"], 7.0, id="a process paused for seconds keeps the lease"),
        pytest.param(first_is_cut_off_for_seconds, ["a"], 0.3, id="a short network failure has no effect"),
        pytest.param(responses_take_four_seconds, ["a"], 0.3, id="a slow server has no effect"),
    ],
)
@pytest.mark.parametrize("skew_s", [0.0, 86_400.0, -86_400.0], ids=["clocks agree", "a day ahead", "a day behind"])
def test_leaders_after_each_failure(scenario: Scenario, leaders: list[str], gap_s_max: float, skew_s: float) -> None:
    election, _, _ = run_election(scenario, skew_s=skew_s)
    assert election.actors() == leaders
    assert election.gap_s() <= gap_s_max


@pytest.mark.parametrize("seed", range(40))
def test_two_processes_never_lead_despite_random_failures(seed: int) -> None:
    async def random_failures(election: ElectionScenario, first: Process, second: Process) -> None:
        dice = election.entropy.fork("storm")
        for _ in range(60):
            process = dice.choose((first, second))
            match dice.integer_below(5):
                case 0:
                    process.pause()
                case 1:
                    process.is_cut_off = not process.is_cut_off
                case 2:
                    process.are_answers_lost = not process.are_answers_lost
                case 3:
                    process.delay_s = dice.uniform(0.0, 8.0)
                case _:
                    process.delay_s = 0.0
                    process.is_cut_off = process.are_answers_lost = False
            await election.clock.wait(dice.uniform(0.0, 20.0))
            if dice.integer_below(2):
                process.go_on()

    election, _, _ = run_election(random_failures, seed=seed, rate=1.0 + (seed % 5 - 2) * 0.02)
    assert election.acts, "no process led"


@pytest.mark.parametrize(
    ("scenario", "outcome"),
    [
        pytest.param(no_failure, "stopped", id="stopped by the caller"),
        pytest.param(first_is_cut_off, "lost: the lease was not renewed within 10 s", id="cut off"),
        pytest.param(first_is_paused_for_a_minute, "lost: the lease was not renewed within 10 s", id="paused"),
    ],
)
def test_outcome_of_the_first_leader(scenario: Scenario, outcome: str) -> None:
    _, first, _ = run_election(scenario)
    assert first.outcome == outcome


def test_a_leader_whose_lease_was_taken_over_stops_immediately() -> None:
    async def thief(election: ElectionScenario, first: Process, second: Process) -> None:
        await election.clock.wait(30)
        stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}}
        await election.client.patch(LEASE, "kube-system", "kube-scheduler", stolen, form=PatchForm.MERGE)
        await election.clock.wait(3)
        assert first.outcome == "lost: the lease is held by thief"

    run_election(thief)


def test_a_deleted_lease_is_created_again() -> None:
    async def deletion(election: ElectionScenario, first: Process, second: Process) -> None:
        await election.clock.wait(30)
        await election.client.delete(LEASE, "kube-system", "kube-scheduler")
        await election.clock.wait(30)

    election, _, _ = run_election(deletion)
    assert len(election.actors()) in (1, 2)  # either process may create the lease; `act` checks that only one leads


def test_the_lease_has_the_fields_that_client_go_writes() -> None:
    seen: list[bytes] = []

    async def read_leases(election: ElectionScenario, first: Process, second: Process) -> None:
        await election.clock.wait(30)
        seen.append(await election.client.get(LEASE, "kube-system", "kube-scheduler"))
        first.stop()
        await election.clock.wait(1)
        seen.append(await election.client.get(LEASE, "kube-system", "kube-scheduler"))
        await election.clock.wait(30)
        seen.append(await election.client.get(LEASE, "kube-system", "kube-scheduler"))

    _, first, second = run_election(read_leases)
    held, given_back, acquired_record = (record_in(raw) for raw in seen)
    assert (held.holder, held.lease_s, held.transitions) == ("a", 15, 0)
    assert held.acquired == "2026-01-01T00:00:00.000000Z"
    assert held.renewed > held.acquired
    assert (given_back.holder, given_back.lease_s, given_back.transitions) == ("", 1, 0)
    assert given_back.acquired == given_back.renewed
    assert (acquired_record.holder, acquired_record.lease_s, acquired_record.transitions) == ("b", 15, 1)
    assert first.told == ["a became leader", "a stopped leading"]
    assert second.told == ["b became leader", "b stopped leading"]


def test_a_leader_that_cannot_renew_its_lease_reports_an_ailment() -> None:
    async def stuck(election: ElectionScenario, first: Process, second: Process) -> None:
        await election.clock.wait(30)
        assert first.elector.health_problem() == ""
        first.pause()
        await election.clock.wait(40)
        assert first.elector.health_problem() == "failed election to renew leadership on lease kube-scheduler"
        assert second.elector.health_problem() == ""

    run_election(stuck)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        pytest.param(
            (10, 10, 2),
            "leaseDuration must be greater than renewDeadline",
            id="no margin between deadline and duration",
        ),
        pytest.param(
            (15, 2.4, 2), "renewDeadline must be greater than retryPeriod*JitterFactor", id="no time for retries"
        ),
        pytest.param((15, 10, 0), "retryPeriod must be greater than zero", id="no retry period"),
        pytest.param(
            (0.9, 0.5, 0.1),
            "leaseDuration must be at least one second: leases have whole seconds",
            id="less than a second",
        ),
    ],
)
def test_contradicting_settings_are_rejected(times: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ElectionSettingsError) as refusal:
        ElectionSettings("kube-system", "kube-scheduler", "a", *times)
    assert str(refusal.value) == message


NOW_S = 1_767_225_600.25
NOW = "2026-01-01T00:00:00.250000Z"
EARLIER = "2025-12-31T23:00:00.000000Z"


@pytest.mark.parametrize(
    ("lease", "record"),
    [
        pytest.param({}, ElectionRecord(), id="no spec"),
        pytest.param({"spec": None}, ElectionRecord(), id="an empty spec"),
        pytest.param({"spec": {"holderIdentity": None, "leaseTransitions": None}}, ElectionRecord(), id="nulls"),
        pytest.param(
            {
                "spec": {
                    "holderIdentity": "host_1",
                    "leaseDurationSeconds": 15,
                    "acquireTime": EARLIER,
                    "renewTime": NOW,
                    "leaseTransitions": 3,
                    "strategy": "OldestEmulationVersion",
                }
            },
            ElectionRecord("host_1", 15, EARLIER, NOW, 3),
            id="what client-go wrote",
        ),
    ],
)
def test_record_in_reads_a_lease(lease: dict[str, object], record: ElectionRecord) -> None:
    assert record_in(msgspec.json.encode(lease)) == record


@pytest.mark.parametrize("raw", [b"", b"<html>", b'{"spec": 3}'], ids=["empty", "HTML", "a number"])
def test_record_in_rejects_documents_that_are_not_leases(raw: bytes) -> None:
    with pytest.raises(ServerError, match="something else than a lease"):
        record_in(raw)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, ElectionRecord("a", 15, NOW, NOW, 0), id="a new lease"),
        pytest.param(
            ElectionRecord("a", 15, EARLIER, EARLIER, 4),
            ElectionRecord("a", 15, EARLIER, NOW, 4),
            id="our lease is renewed",
        ),
        pytest.param(
            ElectionRecord("b", 15, EARLIER, EARLIER, 4),
            ElectionRecord("a", 15, NOW, NOW, 5),
            id="another's lease is taken over",
        ),
        pytest.param(
            ElectionRecord("", 1, EARLIER, EARLIER, 4),
            ElectionRecord("a", 15, NOW, NOW, 5),
            id="a released lease is acquired",
        ),
    ],
)
def test_taken_acquires_or_renews_a_record(before: ElectionRecord | None, after: ElectionRecord) -> None:
    assert acquired_record("a", 15, NOW_S, before) == after


def test_released_clears_the_holder() -> None:
    assert released_record(ElectionRecord("a", 15, EARLIER, EARLIER, 4), NOW_S) == ElectionRecord("", 1, NOW, NOW, 4)


def test_lease_with_keeps_unknown_fields() -> None:
    raw = msgspec.json.encode({"metadata": {"resourceVersion": "7", "labels": {"a": "b"}}, "spec": {"strategy": "s"}})
    assert lease_with(raw, ElectionRecord("a", 15, EARLIER, NOW, 1)) == {
        "metadata": {"resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {
            "strategy": "s",
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": EARLIER,
            "renewTime": NOW,
            "leaseTransitions": 1,
        },
    }


def test_a_new_lease_is_read_back_as_its_record() -> None:
    record = acquired_record("a", 15, NOW_S, None)
    assert record_in(msgspec.json.encode(new_lease("kube-system", "kube-scheduler", record))) == record
