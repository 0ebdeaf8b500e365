"""Stories of claims that pods imply, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD, RESOURCE_CLAIM
from mooring.controllers.resourceclaim.plan import generated_base
from tests.controllers.world import Story, World, play

RESOURCE_CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
EXACTLY: Document = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
SPEC: Document = {"devices": {"requests": [{"name": "gpu", "exactly": EXACTLY}]}}
TEMPLATE: Document = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t"},
    "spec": {"metadata": {"labels": {"from": "t"}}, "spec": SPEC},
}


def pod(name: str = "p", node_name: str = "", **use: str) -> Document:
    use = use or {"resourceClaimTemplateName": "t"}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "a"}], "resourceClaims": [{"name": "gpu", **use}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**spec, "nodeName": node_name},
        "status": {"phase": "Pending"},
    }


def run_story(story: Story) -> None:
    play(story, controllers=["resourceclaim-controller"])


async def end(world: World, name: str) -> None:
    await world.patch(POD, name, {"status": {"phase": "Succeeded"}}, "status")
    await world.settle()


def test_a_pod_gets_a_claim_of_its_template_which_goes_when_the_pod_ends() -> None:
    async def story(world: World) -> None:
        await world.create(TEMPLATE, pod())
        await world.settle()
        (claim,) = await world.list(RESOURCE_CLAIM)
        metadata = claim["metadata"]
        assert metadata["name"].startswith("p-gpu-")
        assert metadata["labels"] == {"from": "t"}
        assert metadata["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
        assert [(each["kind"], each["name"]) for each in metadata["ownerReferences"]] == [("Pod", "p")]
        assert claim["spec"] == SPEC
        status = (await world.get(POD, "p"))["status"]
        assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": metadata["name"]}]
        await end(world, "p")
        assert await world.list(RESOURCE_CLAIM) == []

    run_story(story)


def test_a_pod_waits_for_its_template() -> None:
    async def story(world: World) -> None:
        await world.create(pod())
        await world.settle()
        not_found = 'resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
        assert await world.events() == [("p", "FailedResourceClaimCreation", f"PodResourceClaim gpu: {not_found}")]
        await world.create(TEMPLATE)
        await world.settle()
        assert len(await world.list(RESOURCE_CLAIM)) == 1

    run_story(story)


async def reserve(world: World, *pods: str) -> None:
    uids = [(await world.get(POD, name))["metadata"]["uid"] for name in pods]
    consumers = [{"resource": "pods", "name": name, "uid": uid} for name, uid in zip(pods, uids, strict=True)]
    await world.patch(RESOURCE_CLAIM, "shared", {"metadata": {"finalizers": [RESOURCE_CLAIM_FINALIZER]}})
    status = {"allocation": {"devices": {}}, "reservedFor": consumers}
    await world.patch(RESOURCE_CLAIM, "shared", {"status": status}, "status")
    await world.settle()


async def shared(world: World) -> tuple[list[str], bool, bool]:
    """Its consumers; whether it has devices, and its finalizer."""
    claim = await world.get(RESOURCE_CLAIM, "shared")
    status = claim.get("status", {})
    consumers = [each["name"] for each in status.get("reservedFor", [])]
    return consumers, "allocation" in status, RESOURCE_CLAIM_FINALIZER in claim["metadata"].get("finalizers", [])


SHARED: Document = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "shared"},
    "spec": SPEC,
}


def test_a_shared_claim_is_given_back_when_its_last_pod_is_done() -> None:
    async def story(world: World) -> None:
        use = {"resourceClaimName": "shared"}
        await world.create(SHARED, pod("one", "n1", **use), pod("two", "n1", **use))
        await reserve(world, "one", "two")
        assert await shared(world) == (["one", "two"], True, True)
        await end(world, "one")
        assert await shared(world) == (["two"], True, True)
        await world.delete(POD, "two")
        await world.settle()
        assert await shared(world) == ([], False, False)

    run_story(story)


def test_a_pod_that_was_bound_by_hand_gets_its_claim_reserved() -> None:
    async def story(world: World) -> None:
        use = {"resourceClaimName": "shared"}
        await world.create(SHARED, pod("one", "n1", **use), pod("two", "n1", **use))
        await reserve(world, "one")
        assert await shared(world) == (["one", "two"], True, True)

    run_story(story)


@pytest.mark.parametrize(
    ("pod_name", "use", "base"),
    [
        pytest.param("web", "gpu", "web-gpu-", id="short"),
        pytest.param("p" * 60, "gpu", f"{'p' * 52}-gp", id="both are shortened alike"),
    ],
)
def test_a_claim_is_named_after(pod_name: str, use: str, base: str) -> None:
    assert generated_base(pod_name, use) == base
