"""Who makes a volume, and who takes it away."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.controllers.volume.provision_plan import (
    ByNobody,
    ByOthers,
    ByUs,
    Maker,
    made_volume,
    maker_of,
    remover_of,
    why_not_made,
)
from tests.controllers.storage_documents import claim_view, class_view, volume_view


@pytest.mark.parametrize(
    ("provisioner", "maker"),
    [
        pytest.param("mooring.dev/demo", ByUs(), id="the built-in one"),
        pytest.param("example.com/disk", ByOthers("example.com/disk"), id="anybody"),
        pytest.param("kubernetes.io/aws-ebs", ByOthers("ebs.csi.aws.com"), id="one that became a driver"),
        pytest.param(
            "kubernetes.io/no-provisioner",
            ByNobody("no volume plugin matched name: kubernetes.io/no-provisioner"),
            id="nobody",
        ),
        pytest.param("kubernetes.io/nfs", ByNobody("no provisionable volume plugin matched"), id="nfs"),
    ],
)
def test_a_class_is_provisioned_by(provisioner: str, maker: Maker) -> None:
    assert maker_of(class_view(provisioner=provisioner)) == maker


def test_the_old_host_path_provisioner_is_disabled() -> None:
    why = why_not_made(class_view(provisioner="kubernetes.io/host-path"), claim_view())
    assert why == 'Failed to create provisioner: provisioning in volume plugin "kubernetes.io/host-path" is disabled'


def test_contents_from_elsewhere_are_for_drivers() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "other"}
    why = why_not_made(class_view(provisioner="mooring.dev/demo"), claim_view(dataSource=source))
    assert why.startswith('plugin "mooring.dev/demo" is not a CSI plugin.')


@pytest.mark.parametrize(
    ("host_name", "affinity"),
    [
        pytest.param(None, False, id="for everybody"),
        pytest.param("n1", True, id="for the host that the scheduler chose"),
    ],
)
def test_a_made_volume_is_the_claims_own(host_name: str | None, affinity: bool) -> None:
    made = made_volume(class_view(provisioner="mooring.dev/demo"), claim_view(storage="3Gi"), host_name)
    assert made["metadata"]["name"] == "pvc-uid-c"
    assert made["spec"]["claimRef"]["uid"] == "uid-c"
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert ("nodeAffinity" in made["spec"]) is affinity


PROVISIONED = "pv.kubernetes.io/provisioned-by"


@pytest.mark.parametrize(
    ("volume", "remover"),
    [
        pytest.param({}, ByOthers(), id="a driver's volume"),
        pytest.param({"annotations": {PROVISIONED: "mooring.dev/demo"}}, ByUs(), id="what we made"),
        pytest.param({"annotations": {PROVISIONED: "example.com/disk"}}, ByOthers("example.com/disk"), id="others"),
        pytest.param(
            {"annotations": {PROVISIONED: "kubernetes.io/gone"}},
            ByNobody("no volume plugin matched name: kubernetes.io/gone"),
            id="a plug-in that is no more",
        ),
        pytest.param(
            {"source": {"hostPath": {"path": "/data/x"}}},
            ByNobody("host_path deleter only supports /tmp/.+ but received provided /data/x"),
            id="a directory that must stay",
        ),
        pytest.param(
            {"source": {"nfs": {"server": "s", "path": "/p"}}},
            ByNobody('error getting deleter volume plugin for volume "v": no deletable volume plugin matched'),
            id="nfs",
        ),
        pytest.param(
            {"source": {"local": {"path": "/disk"}}},
            ByNobody('error getting deleter volume plugin for volume "v": no volume plugin matched'),
            id="a local disk",
        ),
    ],
)
def test_a_released_volume_is_deleted_by(volume: dict[str, Any], remover: Maker) -> None:
    assert remover_of(volume_view(policy="Delete", **volume)) == remover
