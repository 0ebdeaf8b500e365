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
    lease_with,
    new_lease,
    record_in,
    released,
    taken,
)
from mooring.client.errors import ServerError
from mooring.client.interface import PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import open_loopback_client
from tests.client.election.play import ElectionPlay, Process

Scene = Callable[[ElectionPlay, Process, Process], Awaitable[None]]

STEP_S = 0.001


def played(
    scene: Scene, *, seed: int = 1, skew_s: float = 0.0, rate: float = 1.0
) -> tuple[ElectionPlay, Process, Process]:
    """`a` starts before `b`; after the scenario both are stopped."""
    clock = VirtualClock()

    async def main() -> tuple[ElectionPlay, Process, Process]:
        entropy = Entropy(seed)
        async with open_loopback_client(clock, entropy.fork("apiserver")) as client, TaskGroup("play") as group:
            play = ElectionPlay(client, clock, entropy)
            first, second = play.process("a"), play.process("b", wall_skew_s=skew_s, rate=rate)
            play.begin(group, first)
            await clock.wait(STEP_S)
            play.begin(group, second)
            await scene(play, first, second)
            for process in (first, second):
                process.go_on()
                process.stop()
        return play, first, second

    return run(main(), clock)


async def nothing_happens(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(120)


async def first_is_killed(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(30)
    first.kill()
    await play.clock.wait(60)


async def first_stops_cleanly(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(30)
    first.stop()
    await play.clock.wait(60)


async def first_is_cut_off(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(30)
    first.is_cut_off = True
    await play.clock.wait(60)


async def first_hears_no_answers(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(30)
    first.are_answers_lost = True
    await play.clock.wait(60)


async def first_is_stopped_for_a_minute(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(30)
    first.pause()
    await play.clock.wait(60)
    first.go_on()
    await play.clock.wait(30)


async def first_is_stopped_for_a_moment(play: ElectionPlay, first: Process, second: Process) -> None:
    for pause_s in (1.0, 3.0, 6.0):
        await play.clock.wait(30)
        first.pause()
        await play.clock.wait(pause_s)
        first.go_on()
    await play.clock.wait(30)


async def first_is_cut_off_for_a_moment(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(30)
    first.is_cut_off = True
    await play.clock.wait(2)
    first.is_cut_off = False
    await play.clock.wait(30)


async def answers_take_four_seconds(play: ElectionPlay, first: Process, second: Process) -> None:
    await play.clock.wait(30)
    first.delay_s = 2.0
    await play.clock.wait(120)


@pytest.mark.parametrize(
    ("scene", "leaders", "gap_s_max"),
    [
        pytest.param(nothing_happens, ["a"], 0.3, id="whoever comes first leads for as long as it lives"),
        pytest.param(first_is_killed, ["a", "b"], 24.0, id="after a kill the other leads when the lease is over"),
        pytest.param(first_stops_cleanly, ["a", "b"], 4.5, id="after a clean stop the other leads at its next look"),
        pytest.param(first_is_cut_off, ["a", "b"], 24.0, id="a leader that is cut off stops, and the other leads"),
        pytest.param(first_hears_no_answers, ["a", "b"], 30.0, id="renewals that nobody hears of are no renewals"),
        pytest.param(first_is_stopped_for_a_minute, ["a", "b"], 24.0, id="a process that was stopped leads no more"),
        pytest.param(first_is_stopped_for_a_moment, ["a"], 7.0, id="a process that was stopped for a moment goes on"),
        pytest.param(first_is_cut_off_for_a_moment, ["a"], 0.3, id="a network that fails for a moment changes nothing"),
        pytest.param(answers_take_four_seconds, ["a"], 0.3, id="a slow server changes nothing"),
    ],
)
@pytest.mark.parametrize("skew_s", [0.0, 86_400.0, -86_400.0], ids=["clocks agree", "a day ahead", "a day behind"])
def test_leaders_after_each_failure(scene: Scene, leaders: list[str], gap_s_max: float, skew_s: float) -> None:
    play, _, _ = played(scene, skew_s=skew_s)
    assert play.actors() == leaders
    assert play.gap_s() <= gap_s_max


@pytest.mark.parametrize("seed", range(40))
def test_two_processes_never_lead_despite_random_failures(seed: int) -> None:
    async def storm(play: ElectionPlay, first: Process, second: Process) -> None:
        dice = play.entropy.fork("storm")
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
            await play.clock.wait(dice.uniform(0.0, 20.0))
            if dice.integer_below(2):
                process.go_on()

    play, _, _ = played(storm, seed=seed, rate=1.0 + (seed % 5 - 2) * 0.02)
    assert play.acts, "nobody ever led"


@pytest.mark.parametrize(
    ("scene", "outcome"),
    [
        pytest.param(nothing_happens, "stopped", id="asked to stop"),
        pytest.param(first_is_cut_off, "lost: the lease was not renewed within 10 s", id="cut off"),
        pytest.param(first_is_stopped_for_a_minute, "lost: the lease was not renewed within 10 s", id="stopped"),
    ],
)
def test_outcome_of_the_first_leader(scene: Scene, outcome: str) -> None:
    _, first, _ = played(scene)
    assert first.outcome == outcome


def test_a_leader_whose_lease_was_taken_over_stops_immediately() -> None:
    async def thief(play: ElectionPlay, first: Process, second: Process) -> None:
        await play.clock.wait(30)
        stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}}
        await play.client.patch(LEASE, "kube-system", "kube-scheduler", stolen, form=PatchForm.MERGE)
        await play.clock.wait(3)
        assert first.outcome == "lost: the lease is held by thief"

    played(thief)


def test_a_deleted_lease_is_created_again() -> None:
    async def deletion(play: ElectionPlay, first: Process, second: Process) -> None:
        await play.clock.wait(30)
        await play.client.delete(LEASE, "kube-system", "kube-scheduler")
        await play.clock.wait(30)

    play, _, _ = played(deletion)
    assert len(play.actors()) in (1, 2)  # either process may create the lease; `act` checks that only one leads


def test_the_lease_has_the_fields_that_client_go_writes() -> None:
    seen: list[bytes] = []

    async def look(play: ElectionPlay, first: Process, second: Process) -> None:
        await play.clock.wait(30)
        seen.append(await play.client.get(LEASE, "kube-system", "kube-scheduler"))
        first.stop()
        await play.clock.wait(1)
        seen.append(await play.client.get(LEASE, "kube-system", "kube-scheduler"))
        await play.clock.wait(30)
        seen.append(await play.client.get(LEASE, "kube-system", "kube-scheduler"))

    _, first, second = played(look)
    held, given_back, taken = (record_in(raw) for raw in seen)
    assert (held.holder, held.lease_s, held.transitions) == ("a", 15, 0)
    assert held.acquired == "2026-01-01T00:00:00.000000Z"
    assert held.renewed > held.acquired
    assert (given_back.holder, given_back.lease_s, given_back.transitions) == ("", 1, 0)
    assert given_back.acquired == given_back.renewed
    assert (taken.holder, taken.lease_s, taken.transitions) == ("b", 15, 1)
    assert first.told == ["a became leader", "a stopped leading"]
    assert second.told == ["b became leader", "b stopped leading"]


def test_a_leader_that_cannot_renew_its_lease_reports_an_ailment() -> None:
    async def stuck(play: ElectionPlay, first: Process, second: Process) -> None:
        await play.clock.wait(30)
        assert first.elector.ailment() == ""
        first.pause()
        await play.clock.wait(40)
        assert first.elector.ailment() == "failed election to renew leadership on lease kube-scheduler"
        assert second.elector.ailment() == ""

    played(stuck)


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        pytest.param((10, 10, 2), "leaseDuration must be greater than renewDeadline", id="no time left to take over"),
        pytest.param(
            (15, 2.4, 2), "renewDeadline must be greater than retryPeriod*JitterFactor", id="no time left to try"
        ),
        pytest.param((15, 10, 0), "retryPeriod must be greater than zero", id="no pause"),
        pytest.param(
            (0.9, 0.5, 0.1),
            "leaseDuration must be at least one second: leases have whole seconds",
            id="less than a lease can say",
        ),
    ],
)
def test_contradicting_settings_are_rejected(times: tuple[float, float, float], complaint: str) -> None:
    with pytest.raises(ElectionSettingsError) as refusal:
        ElectionSettings("kube-system", "kube-scheduler", "a", *times)
    assert str(refusal.value) == complaint


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


@pytest.mark.parametrize("raw", [b"", b"<html>", b'{"spec": 3}'], ids=["nothing", "a page", "a number"])
def test_record_in_rejects_documents_that_are_not_leases(raw: bytes) -> None:
    with pytest.raises(ServerError, match="something else than a lease"):
        record_in(raw)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, ElectionRecord("a", 15, NOW, NOW, 0), id="a new lease"),
        pytest.param(
            ElectionRecord("a", 15, EARLIER, EARLIER, 4), ElectionRecord("a", 15, EARLIER, NOW, 4), id="ours goes on"
        ),
        pytest.param(
            ElectionRecord("b", 15, EARLIER, EARLIER, 4), ElectionRecord("a", 15, NOW, NOW, 5), id="another's is taken"
        ),
        pytest.param(
            ElectionRecord("", 1, EARLIER, EARLIER, 4), ElectionRecord("a", 15, NOW, NOW, 5), id="nobody's is taken"
        ),
    ],
)
def test_taken_acquires_or_renews_a_record(before: ElectionRecord | None, after: ElectionRecord) -> None:
    assert taken("a", 15, NOW_S, before) == after


def test_released_clears_the_holder() -> None:
    assert released(ElectionRecord("a", 15, EARLIER, EARLIER, 4), NOW_S) == ElectionRecord("", 1, NOW, NOW, 4)


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
    record = taken("a", 15, NOW_S, None)
    assert record_in(msgspec.json.encode(new_lease("kube-system", "kube-scheduler", record))) == record
