"""The claims of a StatefulSet's members: whose they are, and so what becomes of them. Decides only.

Comes in   claims, their set and their pod, the set's retention policy
Goes out   whether a claim's owners are right; the owners that it should have

                         whenDeleted: Retain      whenDeleted: Delete
    whenScaled: Retain   nobody                   the set
    whenScaled: Delete   the pod, once it is      the set; the pod, once it is
                         scaled away              scaled away

The garbage collector does the deleting: a claim goes with its owner.

 1. A claim that names a set or a pod of the same name but another uid is left alone: it is about to be collected.
 2. A claim that somebody else controls is given up, and an event says so.
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
from mooring.controllers.statefulset.members import claim_names, is_in_range, member_name

FindClaim: TypeAlias = Callable[[str], PersistentVolumeClaim | None]
"""A claim of the set's namespace by its name."""


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
