"""Claims and volumes that are in use are not deleted."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from mooring.api.views.pod import Pod
from mooring.controllers.volume.protection import uses
from tests.controllers.storage_documents import claim, claim_view, volume
from tests.controllers.world import World, play

CONTROLLERS = ["persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller"]


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
    ("owner", "is_user"), [pytest.param("uid-p", True, id="its own"), pytest.param("x", False, id="somebody else's")]
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

    play(story, controllers=CONTROLLERS)


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

    play(story, controllers=CONTROLLERS)
