"""The provisioner of `mooring up`: volumes on the selected node, deleted with their directories; one default class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from mooring.api.well_known import LOCAL_PROVISIONER
from mooring.controllers.manager import CONTROLLERS
from mooring.controllers.volume.local_provisioner import LocalProvisionerController, unsupported
from tests.api_servers import store_object
from tests.controllers.cluster_builders import claim, claim_view, storage_class
from tests.controllers.world import Story, World, play

BINDER = "persistentvolume-binder-controller"
SELECTED = {"volume.kubernetes.io/selected-node": "n1"}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "host-1"}}}
FOLDER = "/var/lib/none"


def run_story(story: Story, folder: str = FOLDER) -> None:
    play(story, controllers=[BINDER, LocalProvisionerController.name], local_volumes=folder)


async def bound_volume(world: World) -> Document:
    await world.create(NODE, claim("c", class_name="standard", storage="3Gi"))
    await world.settle()
    assert await world.list(PERSISTENT_VOLUME) == [], "no node is selected yet"
    await world.patch(PERSISTENT_VOLUME_CLAIM, "c", {"metadata": {"annotations": SELECTED}})
    await world.settle()
    (made,) = await world.list(PERSISTENT_VOLUME)
    return made


def test_the_class_is_the_default() -> None:
    async def story(world: World) -> None:
        (made,) = await world.list(STORAGE_CLASS)
        assert made["metadata"]["name"] == "standard"
        assert made["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
        fields = (made["provisioner"], made["reclaimPolicy"], made["volumeBindingMode"])
        assert fields == (LOCAL_PROVISIONER, "Delete", "WaitForFirstConsumer")

    run_story(story)


@pytest.mark.parametrize(
    ("existing", "names"),
    [
        pytest.param(storage_class("gp3", is_default=True), ["gp3"], id="the cluster has a default"),
        pytest.param(storage_class("standard"), ["standard"], id="the name is taken"),
        pytest.param(storage_class("slow"), ["slow", "standard"], id="another class"),
    ],
)
def test_there_is_never_a_second_default(existing: Document, names: list[str]) -> None:
    async def story(world: World) -> None:
        await world.create(existing)
        world.start_manager([LocalProvisionerController.name], local_volumes=FOLDER)
        await world.settle()
        assert sorted(each["metadata"]["name"] for each in await world.list(STORAGE_CLASS)) == names

    play(story, controllers=[BINDER])


def test_without_a_directory_it_does_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(NODE, storage_class("standard", provisioner=LOCAL_PROVISIONER))
        await world.create(claim("c", class_name="standard", annotations=SELECTED))
        await world.settle()
        assert await world.list(PERSISTENT_VOLUME) == []

    run_story(story, folder="")


def test_a_claim_gets_a_directory_of_the_selected_node() -> None:
    async def story(world: World) -> None:
        made = await bound_volume(world)
        found = await world.get(PERSISTENT_VOLUME_CLAIM, "c")
        name = f"pvc-{found['metadata']['uid']}"
        assert (found["status"]["phase"], found["spec"]["volumeName"]) == ("Bound", name)
        spec = made["spec"]
        assert spec["hostPath"] == {"path": f"{FOLDER}/{name}", "type": "DirectoryOrCreate"}
        assert (spec["capacity"], spec["persistentVolumeReclaimPolicy"]) == ({"storage": "3Gi"}, "Delete")
        (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["host-1"]
        assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == LOCAL_PROVISIONER
        assert len(await world.events("ProvisioningSucceeded")) == 1

    run_story(story)


@pytest.mark.parametrize(("policy", "is_kept"), [("Delete", False), ("Retain", True)])
def test_the_directory_goes_with_its_volume(tmp_path: Path, policy: str, is_kept: bool) -> None:
    async def story(world: World) -> None:
        made = await bound_volume(world)
        name = made["metadata"]["name"]
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep/file").touch()
        (tmp_path / "other").mkdir()
        # The API server rejects a change of the path; another writer of the store might make one.
        elsewhere = {"persistentVolumeReclaimPolicy": policy, "hostPath": {"path": str(tmp_path / "other")}}
        found = await world.get(PERSISTENT_VOLUME, name)
        await store_object(world.store, PERSISTENT_VOLUME, "", {**found, "spec": {**found["spec"], **elsewhere}})
        await world.delete(PERSISTENT_VOLUME_CLAIM, "c")
        await world.settle()
        assert bool(await world.list(PERSISTENT_VOLUME)) is is_kept
        assert (tmp_path / name).exists() is is_kept
        assert (tmp_path / "other").exists(), "only its own directory is removed"

    run_story(story, str(tmp_path))


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({}, ""),
        ({"volumeMode": "Block"}, "Block"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "Selector"),
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}, "dataSource"),
    ],
)
def test_what_is_not_provisioned(spec: dict[str, Any], word: str) -> None:
    why = unsupported(claim_view(**spec))
    assert word in why
    assert bool(why) == bool(word)


def test_what_cannot_be_provisioned_is_an_event() -> None:
    async def story(world: World) -> None:
        await world.create(claim("c", class_name="standard", annotations=SELECTED))
        await world.create(NODE, claim("b", class_name="standard", annotations=SELECTED, volumeMode="Block"))
        await world.settle()
        reasons = {(name, reason) for name, reason, _ in await world.events("ProvisioningFailed")}
        assert ("b", "ProvisioningFailed") in reasons
        assert [each["spec"]["claimRef"]["name"] for each in await world.list(PERSISTENT_VOLUME)] in ([], ["c"])

    run_story(story)


def test_the_flag_knows_it() -> None:
    assert LocalProvisionerController.name in CONTROLLERS
