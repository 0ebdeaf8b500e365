"""The kinds of storage."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert
from mooring.api.views.meta import ApiObject, ObjectReference
from mooring.api.views.selectors import (
    LabelSelector,
    NodeSelector,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from mooring.api.views.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from mooring.api.views.volumes import CSIPersistentVolumeSource, LocalVolumeSource, PersistentVolumeClaimSpec


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
def test_what_is_read_of_each_kind(api_version: str, kind: str, written: dict[str, object], read: ApiObject) -> None:
    assert convert({"apiVersion": api_version, "kind": kind} | written) == read


def test_a_claim_that_names_no_class_differs_from_one_that_wants_none() -> None:
    assert PersistentVolumeClaimSpec().storage_class_name is None
