"""Views of volumes, claims, storage classes, CSI drivers and CSI nodes.

1. `storage_class_name` of a claim is `None` if the claim names no class and "" if it requests none: volume binding
treats the two differently.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.views.base import Int32, RawQuantity, ResourceList, View
from mooring.api.views.meta import ApiObject, Condition, ObjectReference, ObjectWithRaw
from mooring.api.views.selectors import LabelSelector, NodeSelector, TopologySelectorTerm
from mooring.api.views.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    ISCSIVolumeSource,
    LocalVolumeSource,
    NFSVolumeSource,
    PersistentVolumeClaimSpec,
    PortworxVolumeSource,
    RBDVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class VolumeNodeAffinity(View):
    required: NodeSelector | None = None


class PersistentVolumeSpec(View):
    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    mount_options: tuple[str, ...] = ()
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None


class PersistentVolumeStatus(View):
    phase: str = ""


class PersistentVolume(ObjectWithRaw):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "PersistentVolume"

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class ModifyVolumeStatus(View):
    target_volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(View):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    current_volume_attributes_class_name: str | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(ObjectWithRaw):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "PersistentVolumeClaim"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class StorageClass(ApiObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "StorageClass"

    provisioner: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allow_volume_expansion: bool | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(View):
    count: Int32 | None = None


class CSINodeDriver(View):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(View):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "CSINode"

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(View):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "CSIDriver"

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "CSIStorageCapacity"

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None


class VolumeAttachmentSource(View):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(View):
    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(View):
    attached: bool = False


class VolumeAttachment(ApiObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "VolumeAttachment"

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
