"""Jobs that have finished, and how long they stay."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import JOB
from mooring.api.views.batch import Job, JobCondition, JobSpec, JobStatus
from mooring.api.views.meta import ObjectMeta
from mooring.controllers.ttl_after_finished import left_s_of
from mooring.kit.clock import format_rfc3339
from tests.controllers.builders import template
from tests.controllers.world import World, play

NOW_S = 1000.0


def job(ttl_s: int | None, *conditions: JobCondition, going: bool = False) -> Job:
    metadata = ObjectMeta(name="j", deletion_timestamp="now" if going else None)
    return Job(
        metadata=metadata,
        spec=JobSpec(ttl_seconds_after_finished=ttl_s),
        status=JobStatus(conditions=conditions),
    )


def finished(type: str = "Complete", status: str = "True") -> JobCondition:
    return JobCondition(type=type, status=status, last_transition_time=format_rfc3339(990.0))


@pytest.mark.parametrize(
    ("seen", "left_s"),
    [
        pytest.param(job(30, finished()), 20.0, id="complete"),
        pytest.param(job(30, finished("Failed")), 20.0, id="failed"),
        pytest.param(job(0, finished()), -10.0, id="at once"),
        pytest.param(job(None, finished()), None, id="without a TTL it stays"),
        pytest.param(job(30), None, id="it has not finished"),
        pytest.param(job(30, finished(status="False")), None, id="it has not finished, in words"),
        pytest.param(job(30, finished("SuccessCriteriaMet")), None, id="on the way to its end"),
        pytest.param(job(30, finished(), going=True), None, id="it is going already"),
    ],
)
def test_how_long_a_job_is_kept(seen: Job, left_s: float | None) -> None:
    assert left_s_of(seen, NOW_S) == left_s


def test_a_job_goes_when_its_time_is_over_pods_first() -> None:
    async def story(world: World) -> None:
        pod_template = template({})
        pod_template["spec"]["restartPolicy"] = "Never"
        document: Document = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"ttlSecondsAfterFinished": 10, "template": pod_template},
        }
        await world.create(document)
        await world.settle(20)
        now = format_rfc3339(world.clock.wall_s())
        conditions = [
            {"type": type, "status": "True", "lastTransitionTime": now} for type in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"startTime": now, "completionTime": now, "conditions": conditions}
        await world.patch(JOB, "j", {"status": status}, "status")
        await world.settle(8)
        assert "deletionTimestamp" not in (await world.get(JOB, "j"))["metadata"]
        await world.settle(4)
        metadata = (await world.get(JOB, "j"))["metadata"]
        assert metadata["deletionTimestamp"]
        assert metadata["finalizers"] == ["foregroundDeletion"]

    play(story, controllers=["ttl-after-finished-controller"])
