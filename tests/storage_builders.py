"""Builders that speak of storage: volumes, claims on them, classes, drivers and what drivers say.

volume("pv-1", size="10Gi", of_class="local", reached=from_nodes(ZONE, "a"))
bound("data", to="pv-1")                        a claim that has its volume
waiting("scratch", size="5Gi", of_class="local")  a claim that has none yet
csi_node("n1", {"ebs.csi.aws.com": 25})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.storage import BIND_COMPLETED, SELECTED_NODE
from mooring.api.views.meta import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    ObjectReference,
    OwnerReference,
    RawQuantity,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    CSIStorageCapacity,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResourceRequirements,
)
from mooring.kit.clock import format_rfc3339

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


def volume(
    name: str,
    *,
    size: RawQuantity = "10Gi",
    of_class: str = "",
    reached: NodeSelector | None = None,
    claimed_by: str = "",
    claimed_uid: str = "",
    phase: str = "Available",
    modes: Sequence[str] = ("ReadWriteOnce",),
    mode: str | None = None,
    attributes_class: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    driver: str = "",
    ebs: str = "",
    gce: str = "",
    version: str = "1",
    deleting: bool = False,
) -> PersistentVolume:
    """A persistent volume; with `driver` its handle is its name, with `ebs` or `gce` it is an in-tree disk."""
    return PersistentVolume(
        metadata=_metadata(name, "", labels, annotations, version, deleting),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            storage_class_name=of_class,
            access_modes=tuple(modes),
            volume_mode=mode,
            volume_attributes_class_name=attributes_class,
            node_affinity=VolumeNodeAffinity(required=reached) if reached is not None else None,
            claim_ref=ObjectReference(namespace="default", name=claimed_by, uid=claimed_uid) if claimed_by else None,
            csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name) if driver else None,
            host_path=None if driver or ebs or gce else HostPathVolumeSource(path=f"/volumes/{name}"),
            aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id=ebs) if ebs else None,
            gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name=gce) if gce else None,
        ),
        status=PersistentVolumeStatus(phase=phase),
    )


def from_nodes(key: str, *values: str) -> NodeSelector:
    """The node affinity of a volume that nodes with one of these label values reach."""
    requirement = NodeSelectorRequirement(key=key, operator="In", values=values)
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))


def bound(
    name: str,
    to: str,
    *,
    modes: Sequence[str] = ("ReadWriteOnce",),
    of_class: str = "",
    phase: str = "Bound",
    completed: bool = True,
    deleting: bool = False,
) -> PersistentVolumeClaim:
    """A claim that names its volume; not `completed`, a user did so and nobody has confirmed it."""
    annotations = {BIND_COMPLETED: "yes"} if completed else {}
    return PersistentVolumeClaim(
        metadata=_metadata(name, "default", None, annotations, "1", deleting),
        spec=PersistentVolumeClaimSpec(volume_name=to, access_modes=tuple(modes), storage_class_name=of_class),
        status=PersistentVolumeClaimStatus(phase=phase),
    )


def waiting(
    name: str,
    *,
    size: RawQuantity | None = "5Gi",
    of_class: str | None = "local",
    on: str | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    mode: str | None = None,
    attributes_class: str | None = None,
    like: LabelSelector | None = None,
    uid: str = "",
    annotations: Mapping[str, str] | None = None,
    owner: Pod | None = None,
    version: str = "1",
) -> PersistentVolumeClaim:
    """A claim without a volume; `on` is the node that was selected for it."""
    selected = {SELECTED_NODE: on} if on is not None else {}
    metadata = _metadata(name, "default", None, {**(annotations or {}), **selected}, version, False, uid)
    if owner is not None:
        metadata = _owned(metadata, owner)
    return PersistentVolumeClaim(
        metadata=metadata,
        spec=PersistentVolumeClaimSpec(
            storage_class_name=of_class,
            access_modes=tuple(modes),
            volume_mode=mode,
            volume_attributes_class_name=attributes_class,
            selector=like,
            resources=VolumeResourceRequirements(requests={"storage": size} if size is not None else {}),
        ),
        status=PersistentVolumeClaimStatus(phase="Pending"),
    )


def storage_class(
    name: str,
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    binding: str | None = "WaitForFirstConsumer",
    allowed: Sequence[TopologySelectorTerm] = (),
) -> StorageClass:
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=binding,
        allowed_topologies=tuple(allowed),
    )


def allowing(**topologies: Sequence[str]) -> TopologySelectorTerm:
    """A term of a class's allowed topologies; keys are label keys."""
    return TopologySelectorTerm(
        match_label_expressions=tuple(
            TopologySelectorLabelRequirement(key=key, values=tuple(values)) for key, values in topologies.items()
        )
    )


def csi_node(name: str, limits: Mapping[str, int | None] | None = None, *, migrated: Sequence[str] = ()) -> CSINode:
    """What drivers say about a node; a limit of None: the driver is there, and states none."""
    return CSINode(
        metadata=ObjectMeta(name=name, annotations={MIGRATED_PLUGINS: ",".join(migrated)} if migrated else {}),
        spec=CSINodeSpec(
            drivers=tuple(
                CSINodeDriver(name=driver, allocatable=VolumeNodeResources(count=count) if count is not None else None)
                for driver, count in (limits or {}).items()
            )
        ),
    )


def csi_driver(name: str, *, tracks_capacity: bool | None = True) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(storage_capacity=tracks_capacity))


def capacity(
    name: str,
    *,
    of_class: str,
    size: RawQuantity | None = None,
    largest: RawQuantity | None = None,
    reached: LabelSelector | None = None,
) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        storage_class_name=of_class,
        node_topology=reached,
        capacity=size,
        maximum_volume_size=largest,
    )


def attachment(name: str, *, of: str | None, on: str, by: str) -> VolumeAttachment:
    """A persistent volume that the attach controller wants on a node."""
    return VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(attacher=by, node_name=on, source=VolumeAttachmentSource(persistent_volume_name=of)),
    )


def ephemeral(name: str) -> Volume:
    """A volume whose claim is made for the pod."""
    return Volume(name=name, ephemeral=EphemeralVolumeSource())


def _metadata(
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    version: str,
    deleting: bool,
    uid: str = "",
) -> ObjectMeta:
    return ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid,
        labels=labels or {},
        annotations=annotations or {},
        resource_version=version,
        deletion_timestamp=format_rfc3339(0.0) if deleting else None,
    )


def _owned(metadata: ObjectMeta, owner: Pod) -> ObjectMeta:
    reference = OwnerReference(kind="Pod", name=owner.metadata.name, uid=owner.metadata.uid, controller=True)
    return ObjectMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        annotations=metadata.annotations,
        resource_version=metadata.resource_version,
        owner_references=(reference,),
    )
