"""The pods that a Job makes."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import JOB, POD
from mooring.client.interface import Deletion
from mooring.controllers.job.pods import indexed_generate_name, indexed_pod, is_managed_externally, job_pod
from tests.controllers.batch_builders import INDEX, TRACKING, job, job_view
from tests.controllers.builders import template
from tests.controllers.world import NAMESPACE, World, play


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
        pytest.param(None, False, id="nobody owns it"),
        pytest.param(JOB_THAT_IS_GONE, False, id="its Job is gone"),
        pytest.param({**JOB_THAT_IS_GONE, "apiVersion": "example.com/v1"}, True, id="somebody else's Job"),
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
def test_who_manages_it(manager: str | None, expected: bool) -> None:
    assert is_managed_externally(job_view(managedBy=manager)) == expected
