"""The Job controller and the TTL of finished Jobs, on virtual time.

The pods that a Job makes.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import JOB, POD
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.workloads import Job, JobCondition, JobSpec, JobStatus
from mooring.client.interface import Deletion
from mooring.controllers.job.pods import indexed_generate_name, indexed_pod, is_managed_externally, job_pod
from mooring.controllers.ttl_after_finished import left_s_of
from mooring.kit.clock import format_rfc3339
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.controllers.batch_builders import INDEX, TRACKING, job, job_view, storm_of
from tests.controllers.builders import template
from tests.controllers.world import NAMESPACE, Story, World, play

CONTROLLERS = ["job-controller"]


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


async def end_pods(world: World, phase: str, count: int = 1000, exit_code: int = 0) -> int:
    """As a kubelet would: the first pods that are at work end so."""
    alive = [pod for pod in await world.pods() if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
    now = format_rfc3339(world.clock.wall_s())
    for pod in alive[:count]:
        state = {"terminated": {"exitCode": exit_code, "finishedAt": now}}
        status = {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]}
        await world.patch(POD, pod["metadata"]["name"], {"status": status}, "status")
    await world.settle(3)
    return len(alive[:count])


async def status_of(world: World, name: str = "work") -> Document:
    return dict((await world.get(JOB, name)).get("status", {}))


def counts(status: Document) -> tuple[int, int, int]:
    return status.get("active", 0), status.get("succeeded", 0), status.get("failed", 0)


def test_a_job_runs_to_completion() -> None:
    async def story(world: World) -> None:
        await world.create(job(completions=5, parallelism=2))
        await world.settle(3)
        assert counts(await status_of(world)) == (2, 0, 0)
        assert [pod["metadata"]["finalizers"] for pod in await world.pods()] == [[TRACKING]] * 2
        ended = 0
        while ended < 5:
            ended += await end_pods(world, "Succeeded")
        status = await status_of(world)
        assert counts(status) == (0, 5, 0)
        assert status["uncountedTerminatedPods"] == {}
        assert await world.conditions("work", JOB) == {
            "SuccessCriteriaMet": ("True", "CompletionsReached"),
            "Complete": ("True", "CompletionsReached"),
        }
        assert not any(pod["metadata"].get("finalizers") for pod in await world.pods())
        assert len(await world.events("SuccessfulCreate")) == 5
        assert await world.events("Completed") == [("work", "Completed", "Job completed")]

    run_story(story)


def test_a_failed_pod_is_replaced_after_a_while() -> None:
    async def story(world: World) -> None:
        await world.create(job(backoffLimit=1))
        await world.settle(3)
        await end_pods(world, "Failed", exit_code=1)
        assert counts(await status_of(world)) == (0, 0, 1)
        await world.settle(9)
        assert counts(await status_of(world)) == (1, 0, 1)
        await end_pods(world, "Failed", exit_code=1)
        assert counts(await status_of(world)) == (0, 0, 2)
        conditions = await world.conditions("work", JOB)
        assert conditions["Failed"] == conditions["FailureTarget"] == ("True", "BackoffLimitExceeded")
        assert len(await world.events("BackoffLimitExceeded")) == 1

    run_story(story)


def test_the_deadline_ends_it() -> None:
    async def story(world: World) -> None:
        await world.create(job(completions=2, parallelism=2, activeDeadlineSeconds=30))
        await world.settle(3)
        await world.make_ready()
        await world.settle(20)
        assert counts(await status_of(world)) == (2, 0, 0)
        await world.settle(10)
        assert (await status_of(world)).get("active", 0) == 0
        assert (await world.conditions("work", JOB))["FailureTarget"] == ("True", "DeadlineExceeded")

    run_story(story)


def test_suspended_and_resumed() -> None:
    async def story(world: World) -> None:
        await world.create(job(suspend=True))
        await world.settle(3)
        assert await world.pods() == []
        assert await world.conditions("work", JOB) == {"Suspended": ("True", "JobSuspended")}
        assert "startTime" not in await status_of(world)
        await world.patch(JOB, "work", {"spec": {"suspend": False}})
        await world.settle(3)
        assert len(await world.pods()) == 1
        assert await world.conditions("work", JOB) == {"Suspended": ("False", "JobResumed")}
        assert "startTime" in await status_of(world)
        await world.patch(JOB, "work", {"spec": {"suspend": True}})
        await world.settle(5)
        assert all(pod["metadata"].get("deletionTimestamp") for pod in await world.pods())
        assert [event[1] for event in await world.events("Resumed")] == ["Resumed"]

    run_story(story)


def test_every_index_has_its_pod() -> None:
    async def story(world: World) -> None:
        await world.create(job(completionMode="Indexed", completions=3, parallelism=3))
        await world.settle(3)
        pods = await world.pods()
        assert sorted(pod["metadata"]["annotations"][INDEX] for pod in pods) == ["0", "1", "2"]
        await end_pods(world, "Succeeded", count=2)
        await world.delete(POD, (await world.pods())[2]["metadata"]["name"], grace_s=30)
        await world.settle(15)
        status = await status_of(world)
        assert (status["completedIndexes"], status["succeeded"], status["failed"], status["active"]) == ("0,1", 2, 1, 1)

    run_story(story)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"managedBy": "example.com/other"}, 0, id="managed by another controller"),
        pytest.param({"completionMode": "Sideways"}, 0, id="in an unknown mode"),
        pytest.param({"parallelism": 3, "completions": None}, 3, id="a work queue"),
    ],
)
def test_how_many_pods_are_made(spec: dict[str, Any], expected: int) -> None:
    async def story(world: World) -> None:
        if "completionMode" in spec:
            await world.store_invalid(job(**spec))
        else:
            await world.create(job(**spec))
        await world.settle(3)
        assert len(await world.pods()) == expected

    run_story(story)


def test_pods_without_an_owner_are_adopted_and_tracked() -> None:
    async def story(world: World) -> None:
        labels = {"job-name": "work"}
        spec = job()["spec"]["template"]["spec"]
        await world.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lost", "labels": labels}, "spec": spec}
        )
        await world.create(job(manualSelector=True))
        await world.settle(3)
        (pod,) = await world.pods()
        assert pod["metadata"]["name"] == "lost"
        assert pod["metadata"]["finalizers"] == [TRACKING]
        assert pod["metadata"]["ownerReferences"][0]["name"] == "work"

    run_story(story)


def test_no_pod_is_created_while_the_informer_of_jobs_is_behind() -> None:
    """Pods that were counted have lost their finalizer, and the old status does not name them either."""
    behind = Fault("next_batch", Outcome.DONE, kind=JOB, after=2, answer_delay_s=30.0)

    async def story(world: World) -> None:
        await world.create(job(completions=4, parallelism=2))
        await world.settle(3)
        await end_pods(world, "Succeeded")
        assert (len(await world.pods()), counts(await status_of(world))) == (4, (2, 2, 0))
        await end_pods(world, "Succeeded", count=1)
        await world.settle(10)
        assert (len(await world.pods()), counts(await status_of(world))) == (4, (2, 2, 0))
        await end_pods(world, "Succeeded")
        await world.settle(30)
        assert (len(await world.pods()), counts(await status_of(world))) == (4, (0, 4, 0))
        assert "Complete" in await world.conditions("work", JOB)

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, Script(behind)))


@pytest.mark.parametrize("seed", range(8))
def test_every_end_is_counted_once_in_any_storm(seed: int) -> None:
    storm = storm_of(seed)

    async def story(world: World) -> None:
        await world.create(job(completions=6, parallelism=3, backoffLimit=1000))
        for round in range(12):
            await world.settle(20)
            await end_pods(world, "Failed" if round % 3 == 2 else "Succeeded", count=1)
        await world.settle(600)
        while "Complete" not in await world.conditions("work", JOB):
            assert await end_pods(world, "Succeeded") or (await status_of(world)).get("active", 0) == 0
            await world.settle(600)
        ended = [pod["status"]["phase"] for pod in await world.pods()]
        assert counts(await status_of(world)) == (0, ended.count("Succeeded"), ended.count("Failed"))
        assert not any(pod["metadata"].get("finalizers") for pod in await world.pods())

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, storm), seed=seed)


# --- Jobs that have finished, and how long they stay -----------------------------------------------------------------


NOW_S = 1000.0


def finished_job(ttl_s: int | None, *conditions: JobCondition, going: bool = False) -> Job:
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
        pytest.param(finished_job(30, finished()), 20.0, id="complete"),
        pytest.param(finished_job(30, finished("Failed")), 20.0, id="failed"),
        pytest.param(finished_job(0, finished()), -10.0, id="at once"),
        pytest.param(finished_job(None, finished()), None, id="without a TTL it stays"),
        pytest.param(finished_job(30), None, id="it has not finished"),
        pytest.param(finished_job(30, finished(status="False")), None, id="it has not finished, in words"),
        pytest.param(finished_job(30, finished("SuccessCriteriaMet")), None, id="on the way to its end"),
        pytest.param(finished_job(30, finished(), going=True), None, id="it is going already"),
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


def test_every_pod_is_tracked() -> None:
    pod = job_pod(job_view())
    assert pod["metadata"]["finalizers"] == [TRACKING]
    assert pod["metadata"]["generateName"] == "work-"
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"


def test_an_indexed_pod_knows_its_index() -> None:
    wanted = job_view(completionMode="Indexed", backoffLimitPerIndex=1)
    plain = job_pod(wanted)
    pod = indexed_pod(wanted, plain, 3, None)
    assert pod["metadata"]["generateName"] == "work-3-"
    assert pod["metadata"]["labels"][INDEX] == pod["metadata"]["annotations"][INDEX] == "3"
    assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"
    assert pod["spec"]["hostname"] == "work-3"
    path = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    assert pod["spec"]["containers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": path}]
    assert "env" not in plain["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [pytest.param("work", "work-7-", id="short"), pytest.param("w" * 63, "w" * 55 + "-7-", id="long")],
)
def test_generated_names(name: str, expected: str) -> None:
    assert indexed_generate_name(name, 7) == expected


def tracked(name: str, owner: Document | None = None) -> Document:
    references = [{**owner, "controller": True}] if owner is not None else []
    metadata: Document = {"name": name, "finalizers": [TRACKING], "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template({})["spec"]}


JOB_THAT_IS_GONE: Document = {"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "uid": "1"}


@pytest.mark.parametrize(
    ("owner", "stays"),
    [
        pytest.param(None, False, id="without an owner"),
        pytest.param(JOB_THAT_IS_GONE, False, id="its Job is gone"),
        pytest.param({**JOB_THAT_IS_GONE, "apiVersion": "example.com/v1"}, True, id="a Job of another group"),
    ],
)
def test_whose_finalizer_is_taken_away(owner: Document | None, stays: bool) -> None:
    async def story(world: World) -> None:
        await world.create(tracked("p", owner))
        await world.client.delete(POD, NAMESPACE, "p", Deletion(grace_s=0))
        await world.settle(3)
        assert bool(await world.pods()) == stays

    play(story, controllers=["job-controller"])


def test_pods_of_a_deleted_job_can_go() -> None:
    async def story(world: World) -> None:
        await world.create(job(completions=3, parallelism=3))
        await world.settle(3)
        assert len(await world.pods()) == 3
        await world.delete(JOB, "work")
        await world.settle(3)
        assert not any(pod["metadata"].get("finalizers") for pod in await world.pods())

    play(story, controllers=["job-controller"])


@pytest.mark.parametrize(
    ("manager", "expected"),
    [(None, False), ("kubernetes.io/job-controller", False), ("example.com/other", True)],
)
def test_managed_by(manager: str | None, expected: bool) -> None:
    assert is_managed_externally(job_view(managedBy=manager)) == expected
