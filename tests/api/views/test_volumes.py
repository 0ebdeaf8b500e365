"""The sources of volumes."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ImageVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource,
    PortworxVolumeSource,
    RBDVolumeSource,
    TypedObjectReference,
    Volume,
    VolumeResourceRequirements,
    VsphereVirtualDiskVolumeSource,
)


@pytest.mark.parametrize(
    ("source", "written", "read"),
    [
        (
            "persistentVolumeClaim",
            {"claimName": "c", "readOnly": True},
            Volume(persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="c", read_only=True)),
        ),
        (
            "gcePersistentDisk",
            {"pdName": "d", "partition": 1},
            Volume(gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name="d", partition=1)),
        ),
        (
            "awsElasticBlockStore",
            {"volumeID": "v", "fsType": "ext4"},
            Volume(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="v", fs_type="ext4")),
        ),
        (
            "azureDisk",
            {"diskName": "d", "diskURI": "u"},
            Volume(azure_disk=AzureDiskVolumeSource(disk_name="d", disk_uri="u")),
        ),
        (
            "azureFile",
            {"secretName": "s", "shareName": "f"},
            Volume(azure_file=AzureFileVolumeSource(secret_name="s", share_name="f")),
        ),
        ("cinder", {"volumeID": "v"}, Volume(cinder=CinderVolumeSource(volume_id="v"))),
        ("portworxVolume", {"volumeID": "v"}, Volume(portworx_volume=PortworxVolumeSource(volume_id="v"))),
        ("vsphereVolume", {"volumePath": "p"}, Volume(vsphere_volume=VsphereVirtualDiskVolumeSource(volume_path="p"))),
        (
            "rbd",
            {"monitors": ["m"], "image": "i", "pool": "p"},
            Volume(rbd=RBDVolumeSource(monitors=("m",), image="i", pool="p")),
        ),
        (
            "iscsi",
            {"targetPortal": "t", "iqn": "q", "lun": 2},
            Volume(iscsi=ISCSIVolumeSource(target_portal="t", iqn="q", lun=2)),
        ),
        ("csi", {"driver": "d"}, Volume(csi=CSIVolumeSource(driver="d"))),
        ("image", {"reference": "r"}, Volume(image=ImageVolumeSource(reference="r"))),
        ("configMap", {"name": "c"}, Volume()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_read_of_a_pods_volume(source: str, written: dict[str, object], read: Volume) -> None:
    assert convert_as(Volume, {source: written}) == read


def test_an_ephemeral_volume_carries_a_claim() -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "selector": None,
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        "volumeMode": "Block",
        "dataSource": {"kind": "PersistentVolumeClaim", "name": "other"},
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    assert convert_as(Volume, {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}) == Volume(
        name="v",
        ephemeral=EphemeralVolumeSource(
            volume_claim_template=PersistentVolumeClaimTemplate(
                metadata=ObjectMeta(labels={"a": "b"}),
                spec=PersistentVolumeClaimSpec(
                    access_modes=("ReadWriteOnce",),
                    resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
                    storage_class_name="",
                    volume_mode="Block",
                    data_source=TypedObjectReference(kind="PersistentVolumeClaim", name="other"),
                ),
            )
        ),
    )
