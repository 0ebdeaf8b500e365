"""The members of a StatefulSet: pods with a number, which is their identity.

Comes in   a StatefulSet, names of pods, templates
Goes out   ordinals, names, the pod of an ordinal

 1. A pod is a member by its name: `<set>-<ordinal>`. Its ordinal says which claims it has.
 2. Pods that are not there yet are made from the current template below the partition, from the new one above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import StatefulSet
from mooring.controllers.pod_control import pod_of_template
from mooring.controllers.pods import is_available
from mooring.controllers.replicas import replicas_of

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"
_INT32_MAX = 2**31 - 1
FindClaim: TypeAlias = Callable[[str], PersistentVolumeClaim | None]
"""A claim of the set's namespace by its name."""


def parent_and_ordinal(pod_name: str) -> tuple[str, int]:
    """The set and the number in a pod's name; "" and -1 if it has none."""
    parent, hyphen, digits = pod_name.rpartition("-")
    if not hyphen or not digits.isdecimal() or not digits.isascii():
        return "", -1
    ordinal = int(digits)
    return parent, ordinal if ordinal <= _INT32_MAX else -1


def ordinal_of(pod: Pod) -> int:
    return parent_and_ordinal(pod.metadata.name)[1]


def is_member(wanted: StatefulSet, pod: Pod) -> bool:
    return parent_and_ordinal(pod.metadata.name)[0] == wanted.metadata.name


def start_of(wanted: StatefulSet) -> int:
    """The first ordinal."""
    return wanted.spec.ordinals.start if wanted.spec.ordinals is not None else 0


def is_in_range(wanted: StatefulSet, ordinal: int) -> bool:
    start = start_of(wanted)
    return start <= ordinal < start + replicas_of(wanted)


def member_name(wanted: StatefulSet, ordinal: int) -> str:
    return f"{wanted.metadata.name}-{ordinal}"


def claim_names(wanted: StatefulSet, ordinal: int) -> dict[str, str]:
    """By the name of the template: the name of the claim that a member has."""
    set_name = wanted.metadata.name
    templates = [template.metadata.name for template in wanted.spec.volume_claim_templates]
    return {template: f"{template}-{set_name}-{ordinal}" for template in templates}


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def partition_of(wanted: StatefulSet) -> int:
    rolling = wanted.spec.update_strategy.rolling_update
    return (rolling.partition or 0) if rolling is not None else 0


def is_made_of_current(wanted: StatefulSet, ordinal: int) -> bool:
    """Whether a new member is made of the current template rather than of the new one."""
    start = start_of(wanted)
    if wanted.spec.update_strategy.rolling_update is not None:
        return ordinal < start + partition_of(wanted)
    is_rolling = wanted.spec.update_strategy.type == "RollingUpdate"
    return is_rolling and ordinal < start + wanted.status.current_replicas


def has_identity(wanted: StatefulSet, pod: Pod) -> bool:
    """Whether a member is who its name says."""
    metadata = pod.metadata
    parent, ordinal = parent_and_ordinal(metadata.name)
    return (
        ordinal >= 0
        and parent == wanted.metadata.name
        and metadata.name == member_name(wanted, ordinal)
        and metadata.namespace == wanted.metadata.namespace
        and metadata.labels.get(POD_NAME_LABEL) == metadata.name
    )


def has_storage(wanted: StatefulSet, pod: Pod) -> bool:
    """Whether a member uses its own claims."""
    claims = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    ordinal = ordinal_of(pod)
    return ordinal >= 0 and all(claims.get(name) == claim for name, claim in claim_names(wanted, ordinal).items())


def is_unavailable(wanted: StatefulSet, pod: Pod, now_s: float) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return True
    return not is_available(pod, wanted.spec.min_ready_seconds, now_s)


def member_document(wanted: StatefulSet, template: Document, revision_name: str, ordinal: int) -> Document:
    """The pod of an ordinal, as it is created."""
    pod = pod_of_template(template, wanted)
    name = member_name(wanted, ordinal)
    metadata = {**pod["metadata"], "name": name, "namespace": wanted.metadata.namespace}
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        **identity_labels(name, ordinal),
        REVISION_LABEL: revision_name,
    }
    spec = {**pod["spec"], "hostname": name}
    if wanted.spec.service_name:
        spec["subdomain"] = wanted.spec.service_name
    volumes = with_claims(wanted, spec.get("volumes") or [], ordinal)
    if volumes:
        spec["volumes"] = volumes
    return {**pod, "metadata": metadata, "spec": spec}


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def with_claims(wanted: StatefulSet, volumes: list[Document], ordinal: int) -> list[Document]:
    """The volumes with those of the claims, which replace any of the same name."""
    claims = claim_names(wanted, ordinal)
    own = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
    return [*own, *(volume for volume in volumes if volume.get("name") not in claims)]


@dataclass(frozen=True, slots=True)
class Member:
    """One ordinal of a set, whether its pod is there or not."""

    wanted: StatefulSet
    ordinal: int
    uid: str = ""
    """Of its pod; empty if that was not made yet."""

    @property
    def name(self) -> str:
        return member_name(self.wanted, self.ordinal)

    def claims(self) -> list[str]:
        return [*claim_names(self.wanted, self.ordinal).values()]


def are_claims_right(member: Member, find_claim: FindClaim) -> bool:
    """Whether all claims of a member that there are have the owners that the policy wants."""
    claims = [find_claim(name) for name in member.claims()]
    return all(claim is None or is_claim_right(claim, member) for claim in claims)


def is_any_claim_stale(member: Member, find_claim: FindClaim) -> bool:
    """Whether a claim is still to go with the pod that the member had before: a new one must wait for that."""
    if _when_scaled(member.wanted) == "Retain":
        return False
    for name in member.claims():
        claim = find_claim(name)
        if claim is not None and _is_stale(claim, Pod.api_version, Pod.kind, member.name, member.uid):
            return True
    return False


def is_claim_right(claim: PersistentVolumeClaim, member: Member) -> bool:
    """Whether the claim's owners are those that the policy wants, or are not ours to change."""
    wanted = member.wanted
    set_metadata = wanted.metadata
    if _is_stale(claim, wanted.api_version, wanted.kind, set_metadata.name, set_metadata.uid):
        return True
    if _is_stale(claim, Pod.api_version, Pod.kind, member.name, member.uid):
        return True
    owners = claim.metadata.owner_references
    is_sets, is_pods = (_is_owned_by(owners, uid) for uid in (set_metadata.uid, member.uid))
    if is_controlled_by_others(claim, member):
        return not is_sets and not is_pods
    ours = [each for each in owners if each.uid in (set_metadata.uid, member.uid)]
    if any(not each.controller for each in ours):
        return False
    return (is_sets, is_pods) == _wanted_owners(member)


def is_controlled_by_others(claim: PersistentVolumeClaim, member: Member) -> bool:
    """Whether somebody stands in the way of the policy."""
    wanted = member.wanted
    if _when_scaled(wanted) == "Retain" and _when_deleted(wanted) == "Retain":
        return False
    for owner in claim.metadata.owner_references:
        if _is_named(owner, wanted.api_version, wanted.kind, wanted.metadata.name):
            if owner.uid != wanted.metadata.uid:
                return True
        elif _is_named(owner, Pod.api_version, Pod.kind, member.name):
            if owner.uid != member.uid:
                return True
        elif owner.controller:
            return True
    return False


def right_owners(claim: PersistentVolumeClaim, owners: Iterable[Document], member: Member) -> list[Document]:
    """The owners that the claim should have."""
    wanted = member.wanted
    set_name = (wanted.api_version, wanted.kind, wanted.metadata.name)
    pod_name = (Pod.api_version, Pod.kind, member.name)
    others = [
        owner
        for owner in owners
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) not in (set_name, pod_name)
    ]
    if is_controlled_by_others(claim, member):
        return others
    is_sets, is_pods = _wanted_owners(member)
    if is_pods:
        others.append(_controller(*pod_name, member.uid))
    if is_sets:
        others.append(_controller(*set_name, wanted.metadata.uid))
    return others


def claim_document(wanted: StatefulSet, template: Document, name: str) -> Document:
    """A claim as a template of the set wants it."""
    metadata: Document = template.get("metadata") or {}
    kept = {part: metadata[part] for part in ("annotations", "finalizers") if metadata.get(part)}
    selector = wanted.spec.selector
    labels = {**(metadata.get("labels") or {}), **(selector.match_labels if selector is not None else {})}
    return {
        "apiVersion": PersistentVolumeClaim.api_version,
        "kind": PersistentVolumeClaim.kind,
        "metadata": {**kept, "name": name, "namespace": wanted.metadata.namespace, "labels": labels},
        "spec": template.get("spec") or {},
    }


def _wanted_owners(member: Member) -> tuple[bool, bool]:
    """Whether the set, and whether the pod, should own the claim."""
    wanted = member.wanted
    is_scaled_away = not is_in_range(wanted, member.ordinal)
    match _when_scaled(wanted), _when_deleted(wanted):
        case "Retain", "Delete":
            return True, False
        case "Delete", "Retain":
            return False, is_scaled_away
        case "Delete", "Delete":
            return not is_scaled_away, is_scaled_away
    return False, False


def _when_scaled(wanted: StatefulSet) -> str:
    policy = wanted.spec.persistent_volume_claim_retention_policy
    return policy.when_scaled if policy is not None else "Retain"


def _when_deleted(wanted: StatefulSet) -> str:
    policy = wanted.spec.persistent_volume_claim_retention_policy
    return policy.when_deleted if policy is not None else "Retain"


def _is_named(owner: OwnerReference, api_version: str, kind: str, name: str) -> bool:
    return owner.api_version == api_version and owner.kind == kind and owner.name == name


def _is_stale(claim: PersistentVolumeClaim, api_version: str, kind: str, name: str, uid: str) -> bool:
    for owner in claim.metadata.owner_references:
        if _is_named(owner, api_version, kind, name):
            return owner.uid != uid
    return False


def _is_owned_by(owners: Iterable[OwnerReference], uid: str) -> bool:
    return any(owner.uid == uid for owner in owners)


def _controller(api_version: str, kind: str, name: str, uid: str) -> Document:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def member_of(wanted: StatefulSet, pod: Pod) -> Member:
    return Member(wanted, ordinal_of(pod), pod.metadata.uid)
