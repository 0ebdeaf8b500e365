"""The members of a StatefulSet: pods with an ordinal, and their claims. No I/O.

Inputs: a StatefulSet, names of pods, templates, claims, the retention policy. Outputs: ordinals, names and pods;
the owners that a claim should have.

    owner of a claim     whenDeleted: Retain          whenDeleted: Delete
    whenScaled: Retain   none                         the StatefulSet
    whenScaled: Delete   the pod, once it is          the StatefulSet; the pod, once it is
                         scaled away                  scaled away

1. A pod is a member by its name `<set>-<ordinal>`. The ordinal determines its claims.
2. New pods below the partition have the current template, others the updated one.
3. The garbage collector deletes a claim with its owner.
4. A claim that names a StatefulSet or pod of the same name but another uid is not changed: it is about to be
   deleted.
5. A claim that another controller controls is not changed. An event reports it.
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
from mooring.api.well_known import CONTROLLER_REVISION_HASH_LABEL, POD_INDEX_LABEL, STATEFUL_SET_POD_NAME_LABEL
from mooring.controllers.documents import controller_reference, owner_reference
from mooring.controllers.pod_control import pod_of_template
from mooring.controllers.pods import is_available, replicas_of

_INT32_MAX = 2**31 - 1
FindClaim: TypeAlias = Callable[[str], PersistentVolumeClaim | None]
"""Finds a claim of the StatefulSet's namespace by name."""


def parent_and_ordinal(pod_name: str) -> tuple[str, int]:
    """The StatefulSet and the ordinal in a pod's name. "" and -1 if the name has another form."""
    parent, hyphen, digits = pod_name.rpartition("-")
    if not hyphen or not digits.isdecimal() or not digits.isascii():
        return "", -1
    ordinal = int(digits)
    return parent, ordinal if ordinal <= _INT32_MAX else -1


def ordinal_of(pod: Pod) -> int:
    return parent_and_ordinal(pod.metadata.name)[1]


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    return parent_and_ordinal(pod.metadata.name)[0] == stateful_set.metadata.name


def start_of(stateful_set: StatefulSet) -> int:
    """The first ordinal."""
    return stateful_set.spec.ordinals.start if stateful_set.spec.ordinals is not None else 0


def is_in_range(stateful_set: StatefulSet, ordinal: int) -> bool:
    start = start_of(stateful_set)
    return start <= ordinal < start + replicas_of(stateful_set)


def member_name(stateful_set: StatefulSet, ordinal: int) -> str:
    return f"{stateful_set.metadata.name}-{ordinal}"


def claim_names(stateful_set: StatefulSet, ordinal: int) -> dict[str, str]:
    """Names of a member's claims, by name of their template."""
    set_name = stateful_set.metadata.name
    templates = [template.metadata.name for template in stateful_set.spec.volume_claim_templates]
    return {template: f"{template}-{set_name}-{ordinal}" for template in templates}


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL, "")


def partition_of(stateful_set: StatefulSet) -> int:
    rolling = stateful_set.spec.update_strategy.rolling_update
    return (rolling.partition or 0) if rolling is not None else 0


def is_made_of_current(stateful_set: StatefulSet, ordinal: int) -> bool:
    """Whether a new member is created from the current template instead of the updated one."""
    start = start_of(stateful_set)
    if stateful_set.spec.update_strategy.rolling_update is not None:
        return ordinal < start + partition_of(stateful_set)
    is_rolling = stateful_set.spec.update_strategy.type == "RollingUpdate"
    return is_rolling and ordinal < start + stateful_set.status.current_replicas


def has_identity(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether a member has the labels and name of its ordinal."""
    metadata = pod.metadata
    parent, ordinal = parent_and_ordinal(metadata.name)
    return (
        ordinal >= 0
        and parent == stateful_set.metadata.name
        and metadata.name == member_name(stateful_set, ordinal)
        and metadata.namespace == stateful_set.metadata.namespace
        and metadata.labels.get(STATEFUL_SET_POD_NAME_LABEL) == metadata.name
    )


def has_storage(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether a member uses the claims of its ordinal."""
    claims = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    ordinal = ordinal_of(pod)
    return ordinal >= 0 and all(claims.get(name) == claim for name, claim in claim_names(stateful_set, ordinal).items())


def is_unavailable(stateful_set: StatefulSet, pod: Pod, now_s: float) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return True
    return not is_available(pod, stateful_set.spec.min_ready_seconds, now_s)


def member_document(stateful_set: StatefulSet, template: Document, revision_name: str, ordinal: int) -> Document:
    """The pod of an ordinal."""
    pod = pod_of_template(template, stateful_set)
    name = member_name(stateful_set, ordinal)
    metadata = {**pod["metadata"], "name": name, "namespace": stateful_set.metadata.namespace}
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        **identity_labels(name, ordinal),
        CONTROLLER_REVISION_HASH_LABEL: revision_name,
    }
    spec = {**pod["spec"], "hostname": name}
    if stateful_set.spec.service_name:
        spec["subdomain"] = stateful_set.spec.service_name
    volumes = with_claims(stateful_set, spec.get("volumes") or [], ordinal)
    if volumes:
        spec["volumes"] = volumes
    return {**pod, "metadata": metadata, "spec": spec}


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {STATEFUL_SET_POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def with_claims(stateful_set: StatefulSet, volumes: list[Document], ordinal: int) -> list[Document]:
    """The volumes with those of the claims, which replace others of the same name."""
    claims = claim_names(stateful_set, ordinal)
    own = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
    return [*own, *(volume for volume in volumes if volume.get("name") not in claims)]


@dataclass(frozen=True, slots=True)
class Member:
    """One ordinal of a StatefulSet, with or without a pod."""

    stateful_set: StatefulSet
    ordinal: int
    uid: str = ""
    """Uid of the pod. Empty if it does not exist."""

    @property
    def name(self) -> str:
        return member_name(self.stateful_set, self.ordinal)

    def claims(self) -> list[str]:
        return [*claim_names(self.stateful_set, self.ordinal).values()]


def are_claims_right(member: Member, find_claim: FindClaim) -> bool:
    """Whether all existing claims of a member have the owners of the retention policy."""
    claims = [find_claim(name) for name in member.claims()]
    return all(claim is None or is_claim_right(claim, member) for claim in claims)


def is_any_claim_stale(member: Member, find_claim: FindClaim) -> bool:
    """Whether a claim is still to be deleted with the former pod of the ordinal. A new pod must wait for that."""
    if _when_scaled(member.stateful_set) == "Retain":
        return False
    for name in member.claims():
        claim = find_claim(name)
        if claim is not None and _is_stale(claim, Pod.api_version, Pod.kind, member.name, member.uid):
            return True
    return False


def is_claim_right(claim: PersistentVolumeClaim, member: Member) -> bool:
    """Whether the owners of a claim match the policy, or must not be changed."""
    stateful_set = member.stateful_set
    set_metadata = stateful_set.metadata
    if _is_stale(claim, stateful_set.api_version, stateful_set.kind, set_metadata.name, set_metadata.uid):
        return True
    if _is_stale(claim, Pod.api_version, Pod.kind, member.name, member.uid):
        return True
    owners = claim.metadata.owner_references
    is_sets, is_pods = (_is_owned_by(owners, uid) for uid in (set_metadata.uid, member.uid))
    if is_controlled_by_others(claim, member):
        return not is_sets and not is_pods
    ours = [owner for owner in owners if owner.uid in (set_metadata.uid, member.uid)]
    if any(not owner.controller for owner in ours):
        return False
    return (is_sets, is_pods) == _desired_owners(member)


def is_controlled_by_others(claim: PersistentVolumeClaim, member: Member) -> bool:
    """Whether another controller prevents the policy."""
    stateful_set = member.stateful_set
    if _when_scaled(stateful_set) == "Retain" and _when_deleted(stateful_set) == "Retain":
        return False
    for owner in claim.metadata.owner_references:
        if _is_named(owner, stateful_set.api_version, stateful_set.kind, stateful_set.metadata.name):
            if owner.uid != stateful_set.metadata.uid:
                return True
        elif _is_named(owner, Pod.api_version, Pod.kind, member.name):
            if owner.uid != member.uid:
                return True
        elif owner.controller:
            return True
    return False


def right_owners(claim: PersistentVolumeClaim, owners: Iterable[Document], member: Member) -> list[Document]:
    """The owner references that a claim should have."""
    stateful_set = member.stateful_set
    set_name = (stateful_set.api_version, stateful_set.kind, stateful_set.metadata.name)
    pod_name = (Pod.api_version, Pod.kind, member.name)
    others = [
        owner
        for owner in owners
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) not in (set_name, pod_name)
    ]
    if is_controlled_by_others(claim, member):
        return others
    is_sets, is_pods = _desired_owners(member)
    if is_pods:
        others.append(controller_reference(*pod_name, member.uid))
    if is_sets:
        others.append(owner_reference(stateful_set))
    return others


def claim_document(stateful_set: StatefulSet, template: Document, name: str) -> Document:
    """A claim of a volumeClaimTemplate."""
    metadata: Document = template.get("metadata") or {}
    copied = {part: metadata[part] for part in ("annotations", "finalizers") if metadata.get(part)}
    selector = stateful_set.spec.selector
    labels = {**(metadata.get("labels") or {}), **(selector.match_labels if selector is not None else {})}
    return {
        "apiVersion": PersistentVolumeClaim.api_version,
        "kind": PersistentVolumeClaim.kind,
        "metadata": {**copied, "name": name, "namespace": stateful_set.metadata.namespace, "labels": labels},
        "spec": template.get("spec") or {},
    }


def _desired_owners(member: Member) -> tuple[bool, bool]:
    """Whether the StatefulSet, and whether the pod, should own the claim."""
    stateful_set = member.stateful_set
    is_scaled_away = not is_in_range(stateful_set, member.ordinal)
    match _when_scaled(stateful_set), _when_deleted(stateful_set):
        case "Retain", "Delete":
            return True, False
        case "Delete", "Retain":
            return False, is_scaled_away
        case "Delete", "Delete":
            return not is_scaled_away, is_scaled_away
    return False, False


def _when_scaled(stateful_set: StatefulSet) -> str:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return policy.when_scaled if policy is not None else "Retain"


def _when_deleted(stateful_set: StatefulSet) -> str:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
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


def member_of(stateful_set: StatefulSet, pod: Pod) -> Member:
    return Member(stateful_set, ordinal_of(pod), pod.metadata.uid)
