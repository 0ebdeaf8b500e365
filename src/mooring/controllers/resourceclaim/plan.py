"""Claims of pods from templates: names, contents, and when they are no longer needed. No I/O.

Inputs: pods, claims, templates. Outputs: the claim of a template; whether a pod still needs its claims; the
remaining consumers.

1. The status of the pod names the claim of a template, and the claim names the pod as its controller.
2. A finished pod, or one that was deleted before it was bound, needs no claims. Others need them until they are
   gone: their containers may hold the devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.views.devices import ResourceClaim, ResourceClaimTemplate
from mooring.api.views.meta import OwnerReference, controller_of
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.api.well_known import POD_CLAIM_NAME_ANNOTATION, RESOURCE_CLAIM_FINALIZER
from mooring.controllers.documents import document_of
from mooring.controllers.pods import is_finished

NAME_BASE_MAX = 57
"""Maximum length of a generated name before its five random characters."""


@dataclass(frozen=True, slots=True)
class ClaimName:
    """The claim of a pod. The name is None if no claim is needed."""

    name: str | None
    is_from_template: bool = False


def claim_name_of(pod: Pod, use: PodResourceClaim) -> ClaimName | None:
    """The claim that a pod uses. None if it is not created yet."""
    if use.resource_claim_name is not None:
        return ClaimName(use.resource_claim_name)
    for status in pod.status.resource_claim_statuses:
        if status.name == use.name:
            return ClaimName(status.resource_claim_name, is_from_template=True)
    return None


def is_pod_done(pod: Pod) -> bool:
    """Whether a pod will not use devices any more."""
    return is_finished(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def is_for_pod(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim was created for this pod."""
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid and claim.metadata.namespace == pod.metadata.namespace


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    owner = controller_of(claim.metadata)
    return owner if owner is not None and owner.kind == "Pod" and owner.api_version == "v1" else None


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for)


def must_reserve(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod was bound without the scheduler, which would have reserved the claim."""
    return pod.spec.node_name != "" and claim.status.allocation is not None and not is_reserved_for(claim, pod)


def template_claim(pod: Pod, use: PodResourceClaim, template: ResourceClaimTemplate) -> Document:
    """The claim of a pod, from a template."""
    wanted: Document = document_of(template).get("spec") or {}
    metadata_wanted: Document = wanted.get("metadata") or {}
    metadata: Document = {
        "generateName": generated_base(pod.metadata.name, use.name),
        "annotations": {**(metadata_wanted.get("annotations") or {}), POD_CLAIM_NAME_ANNOTATION: use.name},
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
    """The prefix of the claim's name. Both parts are shortened in proportion if it is too long."""
    base = f"{pod_name}-{use_name}-"
    if len(base) <= NAME_BASE_MAX:
        return base
    pod_length, use_length = (len(name) * NAME_BASE_MAX // len(base) for name in (pod_name, use_name))
    return f"{pod_name[:pod_length]}-{use_name[:use_length]}"


def released_document(claim: ResourceClaim, gone_uids: Iterable[str]) -> Document | None:
    """The claim without the consumers that are gone, and without its allocation if none is left. None if all remain."""
    gone = set(gone_uids)
    remaining = [consumer for consumer in claim.status.reserved_for if consumer.uid not in gone]
    if len(remaining) == len(claim.status.reserved_for):
        return None
    document = document_of(claim)
    status: Document = document["status"]
    consumers: Sequence[Document] = [each for each in status["reservedFor"] if each.get("uid") not in gone]
    if consumers:
        status["reservedFor"] = consumers
        return document
    del status["reservedFor"]
    if RESOURCE_CLAIM_FINALIZER in claim.metadata.finalizers:
        status.pop("allocation", None)
    return document


def reserved_document(claim: ResourceClaim, pod: Pod) -> Document:
    document = document_of(claim)
    consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    status: Document = document["status"]
    status["reservedFor"] = [*(status.get("reservedFor") or []), consumer]
    return document
