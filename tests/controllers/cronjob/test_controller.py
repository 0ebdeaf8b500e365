"""Stories of CronJobs, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CRON_JOB, JOB
from mooring.client.interface import Deletion, Propagation
from mooring.kit.clock import VIRTUAL_WALL_S, format_rfc3339
from tests.client.faulty import FaultyClient
from tests.controllers.batch_builders import cron_job, storm_of
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
            status: Document = {"conditions": [{"type": each, "status": "True"} for each in types], "startTime": now}
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
