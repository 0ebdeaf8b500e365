"""CronJobs on virtual time, schedule times, and the Job of a time."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.cron_schedule import parse_schedule
from mooring.api.document import Document
from mooring.api.kinds import CRON_JOB, JOB
from mooring.client.interface import Deletion, Propagation
from mooring.controllers.cronjob import (
    ImpossibleScheduleError,
    Missed,
    excess_jobs,
    is_too_late,
    job_document,
    job_name,
    missed_text,
    most_recent,
    next_sync_in_s,
    schedule_text,
)
from mooring.kit.clock import VIRTUAL_WALL_S, format_rfc3339, parse_rfc3339
from tests.client.faulty import FaultyClient
from tests.controllers.batch_builders import cron_job, cron_job_view, job_view, storm_of
from tests.controllers.world import NAMESPACE, Story, World, play

CONTROLLERS = ["cronjob-controller"]
FIRST_MINUTE = int(VIRTUAL_WALL_S) // 60 + 1


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


async def minutes(world: World) -> list[int]:
    """Of which minutes there are Jobs; the first is 1."""
    return sorted(int(job["metadata"]["name"].rpartition("-")[2]) - FIRST_MINUTE + 1 for job in await world.list(JOB))


async def end_jobs(world: World, type: str = "Complete") -> None:
    now = format_rfc3339(world.clock.wall_s())
    for job in await world.list(JOB):
        if not job.get("status", {}).get("conditions"):
            types = ("SuccessCriteriaMet" if type == "Complete" else "FailureTarget", type)
            status: Document = {
                "conditions": [{"type": condition_type, "status": "True"} for condition_type in types],
                "startTime": now,
            }
            if type == "Complete":
                status["completionTime"] = now
            await world.patch(JOB, job["metadata"]["name"], {"status": status}, "status")
    await world.settle()


async def status_of(world: World) -> Document:
    return dict((await world.get(CRON_JOB, "tick")).get("status", {}))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param("Allow", [1, 2, 3], id="one more each minute"),
        pytest.param("Forbid", [1], id="not while one is at work"),
        pytest.param("Replace", [3], id="in place of the one before"),
    ],
)
def test_concurrency(policy: str, expected: list[int]) -> None:
    async def story(world: World) -> None:
        await world.create(cron_job(concurrencyPolicy=policy))
        await world.settle(185)
        assert await minutes(world) == expected
        assert len((await status_of(world))["active"]) == len(expected)

    run_story(story)


def test_what_has_ended_is_noted_and_cleaned_up() -> None:
    async def story(world: World) -> None:
        await world.create(cron_job(successfulJobsHistoryLimit=1))
        await world.settle(62)
        await end_jobs(world)
        status = await status_of(world)
        assert "active" not in status
        assert status["lastScheduleTime"] == format_rfc3339(VIRTUAL_WALL_S + 60)
        assert status["lastSuccessfulTime"] >= status["lastScheduleTime"]
        (event,) = await world.events("SawCompletedJob")
        assert event[2] == f"Saw completed job: tick-{FIRST_MINUTE}, condition: Complete"
        await world.settle(60)
        await end_jobs(world)
        assert await minutes(world) == [2]
        assert await world.events("SuccessfulDelete") == [
            ("tick", "SuccessfulDelete", f"Deleted job tick-{FIRST_MINUTE}")
        ]

    run_story(story)


def test_a_job_that_went_missing_is_forgotten() -> None:
    async def story(world: World) -> None:
        await world.create(cron_job(concurrencyPolicy="Forbid"))
        await world.settle(62)
        how = Deletion(propagation=Propagation.BACKGROUND)
        await world.client.delete(JOB, NAMESPACE, f"tick-{FIRST_MINUTE}", how)
        await world.settle()
        assert "active" not in await status_of(world)
        assert [reason for _, reason, _ in await world.events("MissingJob")] == ["MissingJob"]
        await world.settle(60)
        assert await minutes(world) == [2]

    run_story(story)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"suspend": True}, "", id="suspended"),
        pytest.param({"schedule": "0 0 31 2 *"}, "InvalidSchedule", id="never"),
        pytest.param({"schedule": "often"}, "UnparseableSchedule", id="in words"),
        pytest.param({"timeZone": "Nowhere"}, "UnknownTimeZone", id="nowhere"),
    ],
)
def test_what_never_runs(spec: dict[str, Any], reason: str) -> None:
    async def story(world: World) -> None:
        if reason in ("UnparseableSchedule", "UnknownTimeZone"):
            await world.store_invalid(cron_job(**spec))
        else:
            await world.create(cron_job(**spec))
        await world.settle(200)
        assert await world.list(JOB) == []
        assert [event[1] for event in await world.events()] == ([reason] if reason else [])

    run_story(story)


def test_times_that_were_missed() -> None:
    async def story(world: World) -> None:
        await world.create(cron_job(suspend=True))
        await world.settle(600)
        await world.patch(CRON_JOB, "tick", {"spec": {"suspend": False}})
        await world.settle()
        assert await minutes(world) == [10]
        await world.patch(CRON_JOB, "tick", {"spec": {"suspend": True}})
        await world.settle(630)
        await world.patch(CRON_JOB, "tick", {"spec": {"suspend": False, "startingDeadlineSeconds": 20}})
        await world.settle()
        assert await minutes(world) == [10]

    run_story(story)


def test_a_new_schedule_counts_at_once() -> None:
    async def story(world: World) -> None:
        await world.create(cron_job(schedule="0 0 * * *"))
        await world.settle(90)
        await world.patch(CRON_JOB, "tick", {"spec": {"schedule": "*/5 * * * *"}})
        await world.settle(240)
        assert await minutes(world) == [5]

    run_story(story)


@pytest.mark.parametrize("seed", range(6))
def test_in_any_storm_no_time_is_run_twice(seed: int) -> None:
    storm = storm_of(seed)

    async def story(world: World) -> None:
        await world.create(cron_job())
        for _ in range(12):
            await world.settle(60)
            await end_jobs(world)
            found = await minutes(world)
            assert len(found) == len({*found})
        await world.settle(4000)
        await end_jobs(world)
        assert len(await minutes(world)) <= 4
        assert "active" not in await status_of(world)

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, storm), seed=seed)


CREATED = "2026-01-01T10:00:30Z"


@pytest.mark.parametrize(
    ("schedule", "spec", "status", "now", "expected", "missed"),
    [
        pytest.param("0 * * * *", {}, {}, "2026-01-01T10:59:59Z", None, Missed.NONE, id="not yet"),
        pytest.param("0 * * * *", {}, {}, "2026-01-01T11:00:00Z", "2026-01-01T11:00:00Z", Missed.NONE, id="now"),
        pytest.param(
            "0 * * * *", {}, {}, "2026-01-01T11:59:00Z", "2026-01-01T11:00:00Z", Missed.NONE, id="a while ago"
        ),
        pytest.param(
            "0 * * * *", {}, {}, "2026-01-01T13:10:00Z", "2026-01-01T13:00:00Z", Missed.FEW, id="some were missed"
        ),
        pytest.param(
            "0 * * * *", {}, {}, "2026-01-09T13:10:00Z", "2026-01-09T13:00:00Z", Missed.MANY, id="many were missed"
        ),
        pytest.param(
            "0 * * * *",
            {},
            {"lastScheduleTime": "2026-01-01T13:00:00Z"},
            "2026-01-01T13:10:00Z",
            None,
            Missed.NONE,
            id="the last one was made",
        ),
        pytest.param(
            "0 * * * *",
            {"startingDeadlineSeconds": 300},
            {},
            "2026-01-01T13:10:00Z",
            None,
            Missed.NONE,
            id="past the deadline",
        ),
        pytest.param(
            "0 * * * *",
            {"startingDeadlineSeconds": 900},
            {},
            "2026-01-01T13:10:00Z",
            "2026-01-01T13:00:00Z",
            Missed.NONE,
            id="within the deadline",
        ),
        pytest.param(
            "30 6-16/4 * * 1-5",
            {},
            {},
            "2026-01-05T07:00:00Z",
            "2026-01-05T06:30:00Z",
            Missed.FEW,
            id="steps that differ",
        ),
    ],
)
def test_due_times(
    schedule: str, spec: dict[str, Any], status: Document, now: str, expected: str | None, missed: Missed
) -> None:
    wanted = cron_job_view(created=CREATED, schedule=schedule, status=status, **spec)
    recent = most_recent(wanted, parse_schedule(schedule), parse_rfc3339(now), uses_deadline=True)
    assert (format_rfc3339(recent.at_s) if recent.at_s is not None else None, recent.missed) == (expected, missed)


def test_a_schedule_that_never_comes() -> None:
    wanted = cron_job_view(created=CREATED, schedule="59 23 31 2 *")
    with pytest.raises(ImpossibleScheduleError, match="time difference between two schedules is less than 1 second"):
        most_recent(wanted, parse_schedule("59 23 31 2 *"), parse_rfc3339(CREATED) + 60, uses_deadline=True)


@pytest.mark.parametrize(
    ("last", "now", "expected_s"),
    [
        pytest.param(None, "2026-01-01T10:00:45Z", 15.1, id="the first time"),
        pytest.param("2026-01-01T10:01:00Z", "2026-01-01T10:01:00Z", 60.1, id="the next time"),
        pytest.param("2026-01-01T10:01:00Z", "2026-01-01T10:09:10Z", 50.1, id="after some were missed"),
    ],
)
def test_looking_again(last: str | None, now: str, expected_s: float) -> None:
    wanted = cron_job_view(created=CREATED, status={"lastScheduleTime": last} if last else {})
    assert next_sync_in_s(wanted, parse_schedule("* * * * *"), parse_rfc3339(now)) == pytest.approx(expected_s)


def test_too_late() -> None:
    assert is_too_late(cron_job_view(created=CREATED, startingDeadlineSeconds=10), 100.0, 111.0)
    assert not is_too_late(cron_job_view(created=CREATED, startingDeadlineSeconds=10), 100.0, 110.0)
    assert not is_too_late(cron_job_view(created=CREATED), 100.0, 1e9)


@pytest.mark.parametrize(
    ("schedule", "zone", "expected"),
    [
        ("0 0 * * *", None, "0 0 * * *"),
        ("0 0 * * *", "Europe/Berlin", "TZ=Europe/Berlin 0 0 * * *"),
        ("TZ=UTC 0 0 * * *", "Europe/Berlin", "TZ=UTC 0 0 * * *"),
    ],
)
def test_time_zones(schedule: str, zone: str | None, expected: str) -> None:
    spec: dict[str, Any] = {"timeZone": zone} if zone else {}
    assert schedule_text(cron_job_view(created=CREATED, schedule=schedule, **spec)) == expected


@pytest.mark.parametrize(
    ("zone", "stamp"), [(None, "2026-01-01T10:01:00Z"), ("Asia/Kolkata", "2026-01-01T15:31:00+05:30")]
)
def test_the_job_of_a_time(zone: str | None, stamp: str) -> None:
    spec: dict[str, Any] = {"timeZone": zone} if zone else {}
    wanted = cron_job_view(created=CREATED, **spec)
    at_s = parse_rfc3339("2026-01-01T10:01:00Z")
    made = job_document(wanted, at_s)
    assert made["metadata"]["name"] == job_name(wanted, at_s) == "tick-29454361"
    assert made["metadata"]["annotations"] == {"batch.kubernetes.io/cronjob-scheduled-timestamp": stamp}
    assert made["metadata"]["labels"] == {"from": "tick"}
    assert made["metadata"]["ownerReferences"][0]["name"] == "tick"
    assert made["spec"]["completions"] == 1


def test_the_event_of_a_missed_time() -> None:
    assert missed_text(parse_rfc3339("2026-01-01T10:01:00Z")) == "Thu, 01 Jan 2026 10:01:00 +0000"


def test_the_oldest_are_too_many() -> None:
    started = {"a": "2026-01-02T00:00:00Z", "b": "2026-01-01T00:00:00Z", "c": "2026-01-01T00:00:00Z", "d": None}
    jobs = [job_view(name, status={"startTime": at} if at else {}) for name, at in started.items()]
    assert [job.metadata.name for job in excess_jobs(jobs, 1)] == ["b", "c", "a"]
    assert excess_jobs(jobs, None) == []
    assert excess_jobs(jobs, 4) == []
