"""Stories of claims that pods imply, on virtual time.

Claims of devices that pods imply: their names, their making, and when they are no longer needed.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.decode import convert_as, decode_as
from mooring.api.document import Document
from mooring.api.kinds import POD, RESOURCE_CLAIM
from mooring.api.views.devices import ResourceClaim, ResourceClaimTemplate
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.api.well_known import RESOURCE_CLAIM_FINALIZER
from mooring.controllers.resourceclaim import (
    NAME_BASE_MAX,
    ClaimName,
    claim_name_of,
    generated_base,
    is_for_pod,
    is_pod_done,
    must_reserve,
    owning_pod,
    released_document,
    reserved_document,
    template_claim,
)
from tests.controllers.world import Story, World, play

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
        assert [
            (owner_reference["kind"], owner_reference["name"]) for owner_reference in metadata["ownerReferences"]
        ] == [("Pod", "p")]
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


OWNER: Document = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}


def pod_view(*, status: Document | None = None, metadata: Document | None = None, **spec: Any) -> Pod:
    identity = {"name": "p", "namespace": "default", "uid": "u"}
    return convert_as(Pod, {"metadata": {**identity, **(metadata or {})}, "spec": spec, "status": status or {}})


def claim(*consumers: str, is_allocated: bool = False, **metadata: Any) -> ResourceClaim:
    status: Document = {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in consumers]}
    if is_allocated:
        status["allocation"] = {"devices": {}}
    document = {"metadata": {"name": "c", "namespace": "default", **metadata}, "status": status}
    return decode_as(ResourceClaim, msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("use", "statuses", "expected"),
    [
        pytest.param({"resourceClaimName": "mine"}, [], ClaimName("mine"), id="a claim that is named"),
        pytest.param(
            {"resourceClaimTemplateName": "t"},
            [{"name": "other", "resourceClaimName": "x"}, {"name": "gpu", "resourceClaimName": "p-gpu-1"}],
            ClaimName("p-gpu-1", is_from_template=True),
            id="the claim of a template, as the status says",
        ),
        pytest.param(
            {"resourceClaimTemplateName": "t"},
            [{"name": "gpu"}],
            ClaimName(None, is_from_template=True),
            id="none is needed",
        ),
        pytest.param({"resourceClaimTemplateName": "t"}, [], None, id="not created yet"),
    ],
)
def test_a_pod_means_a_claim(use: Document, statuses: list[Document], expected: ClaimName | None) -> None:
    found = pod_view(status={"resourceClaimStatuses": statuses})
    assert claim_name_of(found, convert_as(PodResourceClaim, {"name": "gpu", **use})) == expected


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("found", "is_done"),
    [
        pytest.param(pod_view(), False, id="it waits"),
        pytest.param(pod_view(status={"phase": "Succeeded"}, nodeName="n"), True, id="it has ended"),
        pytest.param(pod_view(metadata=GOING), True, id="deleted before it got a node"),
        pytest.param(pod_view(metadata=GOING, nodeName="n"), False, id="deleted, and its containers may still run"),
    ],
)
def test_a_pod_needs_no_devices_any_more(found: Pod, is_done: bool) -> None:
    assert is_pod_done(found) is is_done


@pytest.mark.parametrize(
    ("owners", "namespace", "is_its_own"),
    [
        pytest.param([OWNER], "default", True, id="created for it"),
        pytest.param([{**OWNER, "uid": "v"}], "default", False, id="created for one of that name before"),
        pytest.param([{**OWNER, "controller": False}], "default", False, id="owned beside others"),
        pytest.param([OWNER], "other", False, id="elsewhere"),
        pytest.param([], "default", False, id="without an owner"),
    ],
)
def test_a_claim_is_for_a_pod(owners: list[Document], namespace: str, is_its_own: bool) -> None:
    assert is_for_pod(claim(ownerReferences=owners, namespace=namespace), pod_view()) is is_its_own


@pytest.mark.parametrize(
    ("owner", "is_pod"),
    [
        pytest.param(OWNER, True, id="a pod"),
        pytest.param({**OWNER, "kind": "Job"}, False, id="a job"),
        pytest.param({**OWNER, "apiVersion": "example.com/v1"}, False, id="a pod of another group"),
    ],
)
def test_a_claim_is_owned_by_a_pod(owner: Document, is_pod: bool) -> None:
    assert (owning_pod(claim(ownerReferences=[owner])) is not None) is is_pod


@pytest.mark.parametrize(
    ("found", "created", "is_due"),
    [
        pytest.param(pod_view(nodeName="n"), claim(is_allocated=True), True, id="bound without asking the scheduler"),
        pytest.param(pod_view(), claim(is_allocated=True), False, id="not bound yet"),
        pytest.param(pod_view(nodeName="n"), claim(), False, id="not allocated yet"),
        pytest.param(pod_view(nodeName="n"), claim("u", is_allocated=True), False, id="reserved already"),
    ],
)
def test_a_claim_must_be_reserved(found: Pod, created: ResourceClaim, is_due: bool) -> None:
    assert must_reserve(created, found) is is_due


def test_a_pod_is_added_to_the_consumers_of_a_claim() -> None:
    reserved = reserved_document(claim("other"), pod_view())["status"]["reservedFor"]
    assert reserved[1:] == [{"resource": "pods", "name": "p", "uid": "u"}]
    assert [each["uid"] for each in reserved] == ["other", "u"]


@pytest.mark.parametrize(
    ("created", "gone", "status"),
    [
        pytest.param(claim("a", "b"), ["c"], None, id="all stay"),
        pytest.param(
            claim("a", "b", is_allocated=True, finalizers=[RESOURCE_CLAIM_FINALIZER]),
            ["a"],
            {"reservedFor": [{"resource": "pods", "name": "b", "uid": "b"}], "allocation": {"devices": {}}},
            id="one consumer stays",
        ),
        pytest.param(
            claim("a", is_allocated=True, finalizers=[RESOURCE_CLAIM_FINALIZER]),
            ["a"],
            {},
            id="the last gives devices back",
        ),
        pytest.param(
            claim("a", is_allocated=True), ["a"], {"allocation": {"devices": {}}}, id="a driver of old keeps them"
        ),
    ],
)
def test_consumers_that_are_gone_are_released(created: ResourceClaim, gone: list[str], status: Document | None) -> None:
    document = released_document(created, gone)
    assert (document["status"] if document is not None else None) == status


@pytest.mark.parametrize(
    ("pod_name", "use_name", "expected"),
    [
        pytest.param("p", "gpu", "p-gpu-", id="short names stay"),
        pytest.param("p" * 50, "g" * 5, f"{'p' * 50}-{'g' * 5}-", id="as long as it may be"),
        pytest.param("p" * 60, "g" * 20, f"{'p' * 41}-{'g' * 13}", id="long ones are shortened alike"),
    ],
)
def test_a_generated_name_begins_with(pod_name: str, use_name: str, expected: str) -> None:
    assert generated_base(pod_name, use_name) == expected
    assert len(expected) <= NAME_BASE_MAX


def test_a_template_becomes_the_pods_own_claim() -> None:
    template = {
        "metadata": {"name": "t"},
        "spec": {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": {"devices": {"requests": []}}},
    }
    view = decode_as(ResourceClaimTemplate, msgspec.json.encode(template))
    assert template_claim(pod_view(), PodResourceClaim(name="gpu"), view) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "p-gpu-",
            "labels": {"a": "b"},
            "annotations": {"x": "y", "resource.kubernetes.io/pod-claim-name": "gpu"},
            "ownerReferences": [OWNER],
        },
        "spec": {"devices": {"requests": []}},
    }
