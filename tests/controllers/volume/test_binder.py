"""The binder of claims and volumes, and their protection, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, VOLUME_ATTRIBUTES_CLASS, Kind
from mooring.api.views.pod import Pod
from mooring.controllers.volume.protection import uses
from tests.controllers.cluster_builders import BOUND, claim, claim_view, storage_class, volume
from tests.controllers.world import Story, World, play

CONTROLLERS = ["persistentvolume-binder-controller"]
SYNC_PERIOD_S = 15.0


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


async def phases(world: World) -> dict[str, str]:
    """Of all claims and volumes, by name."""
    found = [*await world.list(PERSISTENT_VOLUME_CLAIM), *await world.list(PERSISTENT_VOLUME)]
    return {each["metadata"]["name"]: each["status"].get("phase", "") for each in found}


def test_a_claim_and_a_volume_find_each_other() -> None:
    async def story(world: World) -> None:
        await world.create(volume("v", storage="5Gi"))
        await world.settle()
        assert await phases(world) == {"v": "Available"}
        await world.create(claim("c"))
        await world.settle()
        assert await phases(world) == {"c": "Bound", "v": "Bound"}
        bound = await world.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert bound["spec"]["volumeName"] == "v"
        assert bound["metadata"]["annotations"] == BOUND
        assert bound["status"]["capacity"] == {"storage": "5Gi"}
        taken = await world.get(PERSISTENT_VOLUME, "v")
        assert taken["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]

    run_story(story)


def test_many_claims_at_once_never_take_the_same_volume() -> None:
    async def story(world: World) -> None:
        await world.create(*(volume(f"v{number}") for number in range(10)))
        await world.settle()
        await world.create(*(claim(f"c{number}") for number in range(10)))
        await world.settle()
        claims = await world.list(PERSISTENT_VOLUME_CLAIM)
        assert sorted(each["spec"]["volumeName"] for each in claims) == [f"v{number}" for number in range(10)]

    run_story(story)


def test_a_claim_that_came_first_is_bound_with_the_next_look() -> None:
    async def story(world: World) -> None:
        await world.create(claim("c"))
        await world.settle()
        assert await world.events("ProvisioningFailed") == [
            ("c", "ProvisioningFailed", 'storageclass.storage.k8s.io "slow" not found')
        ]
        await world.create(volume("v"))
        await world.settle()
        assert (await phases(world))["c"] == "Pending"
        await world.settle(SYNC_PERIOD_S)
        assert (await phases(world))["c"] == "Bound"

    run_story(story)


@pytest.mark.parametrize(
    ("policy", "source", "phase", "event"),
    [
        pytest.param("Retain", None, "Released", "", id="kept"),
        pytest.param("Delete", None, "Released", "", id="left to its driver"),
        pytest.param("Delete", {"hostPath": {"path": "/data/x"}}, "Failed", "VolumeFailedDelete", id="not deletable"),
        pytest.param("Recycle", None, "Failed", "VolumeFailedRecycle", id="not recyclable"),
        pytest.param("Delete", {"hostPath": {"path": "/tmp/x"}}, None, "", id="deleted"),
    ],
)
def test_a_volume_whose_claim_goes_is(policy: str, source: Document | None, phase: str | None, event: str) -> None:
    async def story(world: World) -> None:
        await world.create(volume("v", policy=policy, source=source), claim("c"))
        await world.settle(SYNC_PERIOD_S)
        await world.delete(PERSISTENT_VOLUME_CLAIM, "c")
        await world.settle()
        assert (await phases(world)).get("v") == phase
        assert [recorded for _, recorded, _ in await world.events() if recorded.startswith("VolumeFailed")] == [
            event
        ] * bool(event)

    run_story(story)


def test_a_claim_whose_volume_is_gone_is_lost_with_one_event() -> None:
    async def story(world: World) -> None:
        await world.create(volume("v"), claim("c"))
        await world.settle(SYNC_PERIOD_S)
        await world.delete(PERSISTENT_VOLUME, "v")
        await world.settle(3 * SYNC_PERIOD_S)
        lost = await world.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert lost["status"] == {"phase": "Lost"}
        assert len(await world.events("ClaimLost")) == 1

    run_story(story)


def test_an_external_provisioner_is_requested_and_awaited() -> None:
    async def story(world: World) -> None:
        await world.create(storage_class(provisioner="example.com/disk"), claim("c"))
        await world.settle()
        asked = await world.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert asked["metadata"]["annotations"] == {
            "volume.beta.kubernetes.io/storage-provisioner": "example.com/disk",
            "volume.kubernetes.io/storage-provisioner": "example.com/disk",
        }
        assert [reason for _, reason, _ in await world.events()] == ["ExternalProvisioning"]

    run_story(story)


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    async def story(world: World) -> None:
        await world.create(claim("c", class_name=None))
        await world.settle()
        await world.create(storage_class("standard", is_default=True))
        await world.settle(SYNC_PERIOD_S)
        assert (await world.get(PERSISTENT_VOLUME_CLAIM, "c"))["spec"]["storageClassName"] == "standard"

    run_story(story)


def test_a_volume_that_was_bound_to_a_claim_with_another_volume_is_free_again() -> None:
    async def story(world: World) -> None:
        await world.create(volume("v"), claim("c"))
        await world.settle(SYNC_PERIOD_S)
        uid = (await world.get(PERSISTENT_VOLUME_CLAIM, "c"))["metadata"]["uid"]
        mark: dict[str, Any] = {"pv.kubernetes.io/bound-by-controller": "yes"}
        await world.create(volume("w", claim="c", uid=uid, annotations=mark))
        await world.settle()
        freed = await world.get(PERSISTENT_VOLUME, "w")
        assert "claimRef" not in freed["spec"]
        assert freed["status"]["phase"] == "Available"

    run_story(story)


# --- Claims and volumes that are in use are not deleted --------------------------------------------------------------


PROTECTION_CONTROLLERS = [
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "volumeattributesclass-protection-controller",
]


def user(claim_name: str = "c", *, node_name: str = "n1", **metadata: Any) -> Document:
    source = {"name": "d", "persistentVolumeClaim": {"claimName": claim_name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", **metadata},
        "spec": {"nodeName": node_name, "containers": [{"name": "c", "image": "a"}], "volumes": [source]},
        "status": {"phase": "Running"},
    }


def owned_by(uid: str) -> Document:
    document = user()
    document["metadata"]["uid"] = uid
    document["spec"]["volumes"] = [{"name": "d", "ephemeral": {"volumeClaimTemplate": {}}}]
    return document


@pytest.mark.parametrize(
    ("pod", "is_user"),
    [
        pytest.param(user(), True, id="it names the claim"),
        pytest.param(user("other"), False, id="it names another"),
        pytest.param(user(node_name=""), False, id="it was never scheduled"),
        pytest.param({**user(), "status": {"phase": "Succeeded"}}, True, id="it has ended but is still there"),
    ],
)
def test_a_pod_uses_a_claim(pod: Document, is_user: bool) -> None:
    assert uses(convert_as(Pod, pod), claim_view()) is is_user


@pytest.mark.parametrize(
    ("owner", "is_user"), [pytest.param("uid-p", True, id="its own"), pytest.param("x", False, id="of another owner")]
)
def test_a_pod_uses_the_claim_of_its_ephemeral_volume(owner: str, is_user: bool) -> None:
    document = claim("p-d")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
    document["metadata"] |= {"namespace": "default", "ownerReferences": [reference]}
    found = convert_as(type(claim_view()), document)
    assert uses(convert_as(Pod, owned_by("uid-p")), found) is is_user


def test_a_claim_stays_until_its_last_pod_is_gone() -> None:
    async def story(world: World) -> None:
        await world.create(claim("c"), user())
        await world.settle()
        finalizers = (await world.get(PERSISTENT_VOLUME_CLAIM, "c"))["metadata"]["finalizers"]
        assert finalizers == ["kubernetes.io/pvc-protection"]
        await world.delete(PERSISTENT_VOLUME_CLAIM, "c")
        await world.settle()
        assert len(await world.list(PERSISTENT_VOLUME_CLAIM)) == 1
        await world.delete(POD, "p")
        await world.settle()
        assert await world.list(PERSISTENT_VOLUME_CLAIM) == []

    play(story, controllers=PROTECTION_CONTROLLERS)


def attributes_class(name: str = "gold") -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttributesClass",
        "metadata": {"name": name},
        "driverName": "example.com/disk",
        "parameters": {"iops": "1000"},
    }


def of_class(document: Document) -> Document:
    document["spec"]["volumeAttributesClassName"] = "gold"
    return document


@pytest.mark.parametrize(
    ("user_of_class", "kind", "name"),
    [
        pytest.param(of_class(claim("c")), PERSISTENT_VOLUME_CLAIM, "c", id="a claim"),
        pytest.param(of_class(volume("v")), PERSISTENT_VOLUME, "v", id="a volume"),
    ],
)
def test_an_attributes_class_stays_as_long_as_it_is_used(user_of_class: Document, kind: Kind, name: str) -> None:
    async def story(world: World) -> None:
        await world.create(attributes_class(), user_of_class)
        await world.settle()
        await world.delete(VOLUME_ATTRIBUTES_CLASS, "gold")
        await world.settle()
        [found] = await world.list(VOLUME_ATTRIBUTES_CLASS)
        assert found["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
        await world.delete(kind, name)
        await world.settle()
        assert await world.list(VOLUME_ATTRIBUTES_CLASS) == []

    play(story, controllers=PROTECTION_CONTROLLERS)


def test_a_volume_stays_as_long_as_it_is_bound() -> None:
    async def story(world: World) -> None:
        await world.create(volume("v", phase="Bound"))
        await world.settle()
        await world.patch(PERSISTENT_VOLUME, "v", {"status": {"phase": "Bound"}}, "status")
        await world.delete(PERSISTENT_VOLUME, "v")
        await world.settle()
        assert len(await world.list(PERSISTENT_VOLUME)) == 1
        await world.patch(PERSISTENT_VOLUME, "v", {"status": {"phase": "Released"}}, "status")
        await world.settle()
        assert await world.list(PERSISTENT_VOLUME) == []

    play(story, controllers=PROTECTION_CONTROLLERS)
