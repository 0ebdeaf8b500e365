"""Claims of devices that pods imply by naming a template: what they are called, and when they are no longer needed.

Comes in   pods, claims, templates
Goes out   the claim of a template; whether a pod still needs anything; who is still a consumer

 1. A template's claim is the pod's own: its status says which one it is, and the claim says whose.
 2. A pod that has ended, or was deleted before it got a node, needs no claims. Others need theirs until they are gone:
    their containers may still hold the devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.ownership import controller_of
from mooring.api.views.devices import ResourceClaim, ResourceClaimTemplate
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.controllers.documents import document_of
from mooring.controllers.pods import is_finished

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
FINALIZER = "resource.kubernetes.io/delete-protection"

NAME_BASE_MAX = 57
"""So long may a generated name be before its five random characters."""


@dataclass(frozen=True, slots=True)
class ClaimName:
    """Which claim a pod means; none if it turned out that none is needed."""

    name: str | None
    is_from_template: bool = False


def claim_name_of(pod: Pod, use: PodResourceClaim) -> ClaimName | None:
    """None if the claim has not been created yet."""
    if use.resource_claim_name is not None:
        return ClaimName(use.resource_claim_name)
    for status in pod.status.resource_claim_statuses:
        if status.name == use.name:
            return ClaimName(status.resource_claim_name, is_from_template=True)
    return None


def is_pod_done(pod: Pod) -> bool:
    """Whether it will never use a device any more."""
    return is_finished(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def is_for_pod(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim was created for this very pod."""
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid and claim.metadata.namespace == pod.metadata.namespace


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    owner = controller_of(claim.metadata)
    return owner if owner is not None and owner.kind == "Pod" and owner.api_version == "v1" else None


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for)


def must_reserve(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether somebody bound the pod without asking the scheduler, who would have reserved the claim."""
    return pod.spec.node_name != "" and claim.status.allocation is not None and not is_reserved_for(claim, pod)


def template_claim(pod: Pod, use: PodResourceClaim, template: ResourceClaimTemplate) -> Document:
    """The claim that a pod gets of a template."""
    wanted: Document = document_of(template).get("spec") or {}
    metadata_wanted: Document = wanted.get("metadata") or {}
    metadata: Document = {
        "generateName": generated_base(pod.metadata.name, use.name),
        "annotations": {**(metadata_wanted.get("annotations") or {}), POD_CLAIM_NAME: use.name},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.metadata.name,
                "uid": pod.metadata.uid,
                "controller": True,
            }
        ],
    }
    if metadata_wanted.get("labels"):
        metadata["labels"] = metadata_wanted["labels"]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": wanted.get("spec") or {},
    }


def generated_base(pod_name: str, use_name: str) -> str:
    """What the claim's name begins with; both parts are shortened alike if they are too long."""
    base = f"{pod_name}-{use_name}-"
    if len(base) <= NAME_BASE_MAX:
        return base
    pod_length, use_length = (len(name) * NAME_BASE_MAX // len(base) for name in (pod_name, use_name))
    return f"{pod_name[:pod_length]}-{use_name[:use_length]}"


def released_document(claim: ResourceClaim, gone_uids: Iterable[str]) -> Document | None:
    """The claim without the consumers that are gone, without its devices if they were the last; None if all stay."""
    gone = set(gone_uids)
    remaining = [consumer for consumer in claim.status.reserved_for if consumer.uid not in gone]
    if len(remaining) == len(claim.status.reserved_for):
        return None
    document = document_of(claim)
    status: Document = document["status"]
    kept: Sequence[Document] = [each for each in status["reservedFor"] if each.get("uid") not in gone]
    if kept:
        status["reservedFor"] = kept
        return document
    del status["reservedFor"]
    if FINALIZER in claim.metadata.finalizers:
        status.pop("allocation", None)
    return document


def reserved_document(claim: ResourceClaim, pod: Pod) -> Document:
    document = document_of(claim)
    consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    status: Document = document["status"]
    status["reservedFor"] = [*(status.get("reservedFor") or []), consumer]
    return document
