"""The rules of claims and volumes that several components share.

Input: persistent volumes, claims, volumes of pods. Output: their storage class, the name of the claim of a pod volume,
which volume is bound to which claim, and the views after a binding.

 1. The beta annotation for the class precedes the field that replaced it.
 2. A claim is bound if it names a volume and has the annotation of a completed binding. A claim that only names a
    volume was bound by a user, and the volume may not exist.
 3. A volume with a claimRef belongs to that claim only, whatever its phase. Without a uid the claimRef matches any
    claim of that name.
"""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.views.meta import ObjectMeta, RawQuantity, controller_of, reference_to
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, Volume

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Set on a claim by the scheduler: provision a volume that this node can reach."""
STORAGE_CLASS_BETA = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""A class with one of these as "true" is the default class."""

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a class without dynamic provisioning."""

_FILESYSTEM = "Filesystem"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The storage class of a claim; "" without one."""
    beta = claim.metadata.annotations.get(STORAGE_CLASS_BETA)
    return beta if beta is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(STORAGE_CLASS_BETA, volume.spec.storage_class_name)


def volume_mode_of(spec_mode: str | None) -> str:
    return _FILESYSTEM if spec_mode is None else spec_mode


def claim_named_by(volume: Volume, pod_name: str) -> str | None:
    """The claim of a pod's volume (an ephemeral volume only implies its name); None if it needs no claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod_name}-{volume.name}"
    return None


def is_ephemeral(volume: Volume) -> bool:
    """Whether the volume's claim is made for the pod, and has to be the pod's own."""
    return volume.ephemeral is not None and volume.persistent_volume_claim is None


def is_controlled_by_pod(claim: PersistentVolumeClaim, namespace: str, pod_name: str, pod_uid: str) -> bool:
    """Whether the claim was made for this pod. A pod without a uid goes by `namespace/name`, as a record of it does."""
    owner = controller_of(claim.metadata)
    if owner is None or claim.metadata.namespace != namespace:
        return False
    return (owner.uid or f"{namespace}/{pod_name}") == pod_uid


def not_controlled_text(claim: PersistentVolumeClaim, namespace: str, pod_name: str) -> str:
    return f"PVC {claim.key} was not created for pod {namespace}/{pod_name} (pod is not owner)"


def not_found_text(resource: str, name: str) -> str:
    """The message of an API server about an object that does not exist."""
    return f'{resource} "{name}" not found'


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names this claim, by its uid if it gives one."""
    reference = volume.spec.claim_ref
    if reference is None or reference.name != claim.metadata.name or reference.namespace != claim.metadata.namespace:
        return False
    return reference.uid in ("", claim.metadata.uid)


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume after it is bound to the claim; the same object if it is bound already."""
    reference = volume.spec.claim_ref
    metadata = volume.metadata
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in metadata.annotations:
        metadata = _annotated(metadata, BOUND_BY_CONTROLLER, "yes")
    if reference is None or not is_bound_to(volume, claim) or reference.uid != claim.metadata.uid:
        reference = reference_to(claim)
    if reference is volume.spec.claim_ref and metadata is volume.metadata:
        return volume
    return replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=reference))


def with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim after the scheduler has chosen a node for it; the same object if it has already."""
    if claim.metadata.annotations.get(SELECTED_NODE) == node_name:
        return claim
    return replace(claim, metadata=_annotated(claim.metadata, SELECTED_NODE, node_name))


def storage_requested(spec: PersistentVolumeClaimSpec) -> RawQuantity | None:
    """The requested storage of a claim as text; None without a request."""
    return spec.resources.requests.get("storage")


def _annotated(metadata: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return replace(metadata, annotations={**metadata.annotations, key: value})
