"""Provisioning, and reclaiming released volumes."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.api.views.storage import StorageClass
from mooring.client.errors import NotFoundError
from mooring.controllers.volume.provisioning import (
    HOST_PATH,
    BuiltIn,
    External,
    Provisioner,
    Unsupported,
    deleter_of,
    provisioned_volume,
    provisioner_of,
    provisioning_error,
)
from tests.controllers.cluster_builders import claim_view, class_view, volume_view
from tests.controllers.volume_bench import Bench, run_story

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@pytest.mark.parametrize(
    ("provisioner", "maker"),
    [
        pytest.param(HOST_PATH, BuiltIn(), id="host path"),
        pytest.param("example.com/disk", External("example.com/disk"), id="any provisioner"),
        pytest.param("kubernetes.io/aws-ebs", External("ebs.csi.aws.com"), id="one that became a driver"),
        pytest.param(
            "kubernetes.io/no-provisioner",
            Unsupported("no volume plugin matched name: kubernetes.io/no-provisioner"),
            id="no provisioner",
        ),
        pytest.param("kubernetes.io/nfs", Unsupported("no provisionable volume plugin matched"), id="nfs"),
    ],
)
def test_a_class_is_provisioned_by(provisioner: str, maker: Provisioner) -> None:
    assert provisioner_of(class_view(provisioner=provisioner)) == maker


def test_the_old_host_path_provisioner_is_disabled() -> None:
    why = provisioning_error(claim_view())
    assert why == 'Failed to create provisioner: provisioning in volume plugin "kubernetes.io/host-path" is disabled'


def test_contents_from_elsewhere_are_for_drivers() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "other"}
    why = provisioning_error(claim_view(dataSource=source))
    assert why.startswith('plugin "kubernetes.io/host-path" is not a CSI plugin.')


@pytest.mark.parametrize(
    ("host_name", "affinity"),
    [
        pytest.param(None, False, id="for all namespaces"),
        pytest.param("n1", True, id="for the host that the scheduler chose"),
    ],
)
def test_a_made_volume_is_the_claims_own(host_name: str | None, affinity: bool) -> None:
    made = provisioned_volume(class_view(), claim_view(storage="3Gi"), host_name, "/volumes")
    assert made["metadata"]["name"] == "pvc-uid-c"
    assert made["spec"]["claimRef"]["uid"] == "uid-c"
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert ("nodeAffinity" in made["spec"]) is affinity


PROVISIONED = "pv.kubernetes.io/provisioned-by"


@pytest.mark.parametrize(
    ("volume", "remover"),
    [
        pytest.param({}, External(), id="a driver's volume"),
        pytest.param({"source": {"hostPath": {"path": "/tmp/x"}}}, BuiltIn(), id="a directory below /tmp"),
        pytest.param({"annotations": {PROVISIONED: "example.com/disk"}}, External("example.com/disk"), id="others"),
        pytest.param(
            {"annotations": {PROVISIONED: "kubernetes.io/gone"}},
            Unsupported("no volume plugin matched name: kubernetes.io/gone"),
            id="a plug-in that is no more",
        ),
        pytest.param(
            {"source": {"hostPath": {"path": "/data/x"}}},
            Unsupported("host_path deleter only supports /tmp/.+ but received provided /data/x"),
            id="a directory that must stay",
        ),
        pytest.param(
            {"source": {"nfs": {"server": "s", "path": "/p"}}},
            Unsupported('error getting deleter volume plugin for volume "v": no deletable volume plugin matched'),
            id="nfs",
        ),
        pytest.param(
            {"source": {"local": {"path": "/disk"}}},
            Unsupported('error getting deleter volume plugin for volume "v": no volume plugin matched'),
            id="a local disk",
        ),
    ],
)
def test_a_released_volume_is_deleted_by(volume: dict[str, Any], remover: Provisioner) -> None:
    assert deleter_of(volume_view(policy="Delete", **volume)) == remover


# --- making -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage_class", "parts", "message"),
    [
        pytest.param(None, {}, 'storageclass.storage.k8s.io "slow" not found', id="no such class"),
        pytest.param(
            class_view(provisioner="kubernetes.io/nfs"),
            {},
            "no provisionable volume plugin matched",
            id="by no provisioner",
        ),
        pytest.param(
            class_view(provisioner=HOST_PATH),
            {},
            'Failed to create provisioner: provisioning in volume plugin "kubernetes.io/host-path" is disabled',
            id="not by us",
        ),
    ],
)
def test_a_volume_is_not_made(storage_class: StorageClass | None, parts: Document, message: str) -> None:
    async def story(bench: Bench) -> None:
        found = await bench.claim(**parts)
        await (await bench.start(storage_class)).provision(found)
        assert bench.recorded == [("ProvisioningFailed", message)]
        assert await bench.volumes() == []

    run_story(story)


def test_an_external_provisioner_is_requested_to_create_a_volume() -> None:
    async def story(bench: Bench) -> None:
        found = await bench.claim()
        await (await bench.start(class_view())).provision(found)
        annotations = (await bench.get(PERSISTENT_VOLUME_CLAIM, "c"))["metadata"]["annotations"]
        assert annotations[PROVISIONER] == "example.com/disk"
        assert [reason for reason, _ in bench.recorded] == ["ExternalProvisioning"]
        assert await bench.volumes() == []

    run_story(story)


# --- reclaiming -------------------------------------------------------------------------------------------------

BY_US: Document = {"source": {"hostPath": {"path": "/tmp/x"}}}


@pytest.mark.parametrize(
    ("parts", "is_gone", "recorded"),
    [
        pytest.param({**BY_US, "policy": "Retain"}, False, "", id="it is kept"),
        pytest.param({**BY_US, "policy": "Delete"}, True, "", id="it is deleted"),
        pytest.param({"policy": "Delete"}, False, "", id="others delete theirs"),
        pytest.param({**BY_US, "policy": "Recycle"}, False, "VolumeFailedRecycle", id="it is not scrubbed"),
        pytest.param({**BY_US, "policy": "Burn"}, False, "VolumeUnknownReclaimPolicy", id="an unheard-of policy"),
        pytest.param(
            {**BY_US, "annotations": {"pv.kubernetes.io/migrated-to": "csi"}, "policy": "Burn"},
            False,
            "",
            id="it is a driver's by now",
        ),
    ],
)
def test_a_released_volume(parts: Document, is_gone: bool, recorded: str) -> None:
    async def story(bench: Bench) -> None:
        found = await bench.volume(is_valid=parts["policy"] != "Burn", **parts)
        await (await bench.start()).reclaim(found)
        assert (await bench.volumes() == []) is is_gone
        assert [reason for reason, _ in bench.recorded] == ([recorded] if recorded else [])
        if recorded:
            assert (await bench.get(PERSISTENT_VOLUME, "v"))["status"]["phase"] == "Failed"

    run_story(story)


def test_a_volume_that_is_claimed_again_is_not_deleted() -> None:
    async def story(bench: Bench) -> None:
        bench.is_released = False
        found = await bench.volume(policy="Delete", **BY_US)
        await (await bench.start()).reclaim(found)
        assert len(await bench.volumes()) == 1

    run_story(story)


def test_our_finalizer_is_taken_off_before_a_volume_is_deleted() -> None:
    async def story(bench: Bench) -> None:
        ours = "kubernetes.io/pv-controller"
        parts: Document = {"policy": "Delete", **BY_US}
        found = await bench.volume(finalizers=[ours, "example.com/other"], **parts)
        await (await bench.start()).reclaim(found)
        left = (await bench.get(PERSISTENT_VOLUME, "v"))["metadata"]
        assert left["finalizers"] == ["example.com/other"]
        assert "deletionTimestamp" in left

    run_story(story)


def test_a_volume_that_is_gone_already_is_no_failure() -> None:
    async def story(bench: Bench) -> None:
        found = await bench.volume(policy="Delete", **BY_US)
        await bench.client.delete(PERSISTENT_VOLUME, "", "v")
        await (await bench.start()).reclaim(found)
        with pytest.raises(NotFoundError):
            await bench.get(PERSISTENT_VOLUME, "v")

    run_story(story)
