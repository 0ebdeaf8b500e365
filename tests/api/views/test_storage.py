"""Views of the kinds of storage, and of the sources of volumes."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert, convert_as
from mooring.api.views.meta import (
    ApiObject,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
    ObjectReference,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    CSIStorageCapacity,
    CSIVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ImageVolumeSource,
    ISCSIVolumeSource,
    LocalVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    PortworxVolumeSource,
    RBDVolumeSource,
    StorageClass,
    TypedObjectReference,
    Volume,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResourceRequirements,
    VsphereVirtualDiskVolumeSource,
)


@pytest.mark.parametrize(
    ("api_version", "kind", "written", "read"),
    [
        (
            "v1",
            "PersistentVolume",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "claimRef": {"namespace": "a", "name": "b", "uid": "c"},
                    "storageClassName": "fast",
                    "volumeMode": "Filesystem",
                    "nodeAffinity": {"required": {"nodeSelectorTerms": []}},
                    "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"x": "y"}},
                    "local": {"path": "/mnt"},
                },
                "status": {"phase": "Bound"},
            },
            PersistentVolume(
                spec=PersistentVolumeSpec(
                    capacity={"storage": "1Gi"},
                    access_modes=("ReadWriteOnce",),
                    claim_ref=ObjectReference(namespace="a", name="b", uid="c"),
                    storage_class_name="fast",
                    volume_mode="Filesystem",
                    node_affinity=VolumeNodeAffinity(required=NodeSelector()),
                    csi=CSIPersistentVolumeSource(driver="d", volume_handle="h", volume_attributes={"x": "y"}),
                    local=LocalVolumeSource(path="/mnt"),
                ),
                status=PersistentVolumeStatus(phase="Bound"),
            ),
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            {"spec": {"volumeName": "v", "storageClassName": ""}, "status": {"phase": "Pending"}},
            PersistentVolumeClaim(
                spec=PersistentVolumeClaimSpec(volume_name="v", storage_class_name=""),
                status=PersistentVolumeClaimStatus(phase="Pending"),
            ),
        ),
        (
            "storage.k8s.io/v1",
            "StorageClass",
            {
                "provisioner": "p",
                "volumeBindingMode": "WaitForFirstConsumer",
                "parameters": {"a": "b"},
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
            },
            StorageClass(
                provisioner="p",
                volume_binding_mode="WaitForFirstConsumer",
                parameters={"a": "b"},
                allowed_topologies=(
                    TopologySelectorTerm(
                        match_label_expressions=(TopologySelectorLabelRequirement(key="zone", values=("a",)),)
                    ),
                ),
            ),
        ),
        (
            "storage.k8s.io/v1",
            "CSINode",
            {"spec": {"drivers": [{"name": "d", "nodeID": "i", "topologyKeys": ["z"], "allocatable": {"count": 0}}]}},
            CSINode(
                spec=CSINodeSpec(
                    drivers=(
                        CSINodeDriver(
                            name="d", node_id="i", topology_keys=("z",), allocatable=VolumeNodeResources(count=0)
                        ),
                    )
                )
            ),
        ),
        (
            "storage.k8s.io/v1",
            "CSIDriver",
            {"spec": {"storageCapacity": True, "attachRequired": False}},
            CSIDriver(spec=CSIDriverSpec(storage_capacity=True, attach_required=False)),
        ),
        (
            "storage.k8s.io/v1",
            "CSIStorageCapacity",
            {"nodeTopology": {"matchLabels": {"z": "a"}}, "storageClassName": "fast", "capacity": "5Gi"},
            CSIStorageCapacity(
                node_topology=LabelSelector(match_labels={"z": "a"}), storage_class_name="fast", capacity="5Gi"
            ),
        ),
        (
            "storage.k8s.io/v1",
            "VolumeAttachment",
            {
                "spec": {"attacher": "d", "nodeName": "n1", "source": {"persistentVolumeName": "v"}},
                "status": {"attached": True},
            },
            VolumeAttachment(
                spec=VolumeAttachmentSpec(
                    attacher="d", node_name="n1", source=VolumeAttachmentSource(persistent_volume_name="v")
                ),
                status=VolumeAttachmentStatus(attached=True),
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_view_of_each_kind(api_version: str, kind: str, written: dict[str, object], read: ApiObject) -> None:
    assert convert({"apiVersion": api_version, "kind": kind} | written) == read


def test_an_absent_class_differs_from_an_empty_one() -> None:
    assert PersistentVolumeClaimSpec().storage_class_name is None


# --- The sources of volumes ------------------------------------------------------------------------------------------


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
def test_view_of_a_volume_of_a_pod(source: str, written: dict[str, object], read: Volume) -> None:
    assert convert_as(Volume, {source: written}) == read


def test_view_of_an_ephemeral_volume() -> None:
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
