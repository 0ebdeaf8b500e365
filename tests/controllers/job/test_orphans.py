"""Pods that a Job has left behind."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import JOB, POD
from mooring.client.interface import Deletion
from mooring.controllers.job.orphans import is_managed_elsewhere
from tests.controllers.batch_builders import TRACKING, job, job_view
from tests.controllers.world import NAMESPACE, World, play


def tracked(name: str, owner: Document | None = None) -> Document:
    references = [{**owner, "controller": True}] if owner is not None else []
    metadata: Document = {"name": name, "finalizers": [TRACKING], "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


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
    assert is_managed_elsewhere(job_view(managedBy=manager)) == expected
