"""What a StatefulSet needs next: members created, corrected, deleted, in the order of their ordinals. No I/O.

Inputs: a StatefulSet, its pods, the names of its revisions, its claims, the time. Outputs: a `StatefulSetPlan` of
ordered actions; the status.

1. OrderedReady: a member is created, deleted or updated only when all before it are running and available. A sync
   does one step.
2. Parallel: members are created and deleted all at once. Updates go one by one.
3. Corrections come before scaling, scaling before updates.
4. Updates go from the highest ordinal down to the partition, and wait for each member to become available.
5. A StatefulSet that is being deleted only gets its status updated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import StatefulSet, StatefulSetStatus
from mooring.controllers.documents import view_document
from mooring.controllers.pods import is_available, is_finished, is_ready, replicas_of
from mooring.controllers.statefulset.members import (
    FindClaim,
    Member,
    are_claims_right,
    has_identity,
    has_storage,
    is_any_claim_stale,
    is_in_range,
    is_unavailable,
    member_of,
    ordinal_of,
    partition_of,
    revision_of,
    start_of,
)


@dataclass(frozen=True, slots=True)
class CreateMember:
    """Create a pod and its claims."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class DeleteMember:
    """Delete a pod."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class EnsureClaims:
    """Create missing claims of a pending pod."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class CorrectMember:
    """Restore identity, storage and claims of a pod."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class CorrectClaims:
    """Set the owners of a pod's claims."""

    pod: Pod


Action: TypeAlias = CreateMember | DeleteMember | EnsureClaims | CorrectMember | CorrectClaims


@dataclass(slots=True)
class StatefulSetPlan:
    """Phases of actions. A failure ends the sync."""

    members: list[list[Action]] = field(default_factory=list)
    """The actions of each member."""
    claims: list[CorrectClaims] = field(default_factory=list)
    condemned: list[DeleteMember] = field(default_factory=list)
    update: DeleteMember | None = None


def is_parallel(stateful_set: StatefulSet) -> bool:
    return stateful_set.spec.pod_management_policy == "Parallel"


def plan(
    stateful_set: StatefulSet, pods: Sequence[Pod], update: str, find_claim: FindClaim, now_s: float
) -> StatefulSetPlan:
    """Plan a sync. `update` is the name of the newest revision."""
    planned = StatefulSetPlan()
    if stateful_set.metadata.deletion_timestamp is not None:
        return planned
    start = start_of(stateful_set)
    by_ordinal = {ordinal_of(pod): pod for pod in pods if is_in_range(stateful_set, ordinal_of(pod))}
    replicas = [by_ordinal.get(ordinal) for ordinal in range(start, start + replicas_of(stateful_set))]
    condemned = sorted(
        (pod for pod in pods if ordinal_of(pod) >= 0 and not is_in_range(stateful_set, ordinal_of(pod))),
        key=ordinal_of,
        reverse=True,
    )
    if _plan_members(planned, stateful_set, replicas, find_claim, now_s):
        return planned
    planned.claims = [
        CorrectClaims(pod) for pod in condemned if not are_claims_right(member_of(stateful_set, pod), find_claim)
    ]
    if _plan_condemned(planned, stateful_set, replicas, condemned, now_s):
        return planned
    if stateful_set.spec.update_strategy.type != "OnDelete":
        planned.update = _next_update(stateful_set, replicas, update, now_s)
    return planned


def count_status(
    stateful_set: StatefulSet, pods: Sequence[Pod], current: str, update: str, collision_count: int, now_s: float
) -> StatefulSetStatus:
    """The status, by the pods before this sync."""
    replicas = ready = available = currents = updated = 0
    for pod in pods:
        if ordinal_of(pod) < 0:
            continue
        is_created = pod.status.phase != ""
        replicas += is_created
        if pod.status.phase == "Running" and is_ready(pod):
            ready += 1
            available += is_available(pod, stateful_set.spec.min_ready_seconds, now_s)
        if is_created and pod.metadata.deletion_timestamp is None:
            currents += revision_of(pod) == current
            updated += revision_of(pod) == update
    return StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=replicas,
        ready_replicas=ready,
        current_replicas=currents,
        updated_replicas=updated,
        current_revision=current,
        update_revision=update,
        collision_count=collision_count,
        available_replicas=available,
    )


def is_update_complete(stateful_set: StatefulSet, status: StatefulSetStatus) -> bool:
    """Whether the updated revision becomes the current one."""
    replicas = replicas_of(stateful_set)
    is_rolling = stateful_set.spec.update_strategy.type == "RollingUpdate"
    return is_rolling and status.updated_replicas == status.ready_replicas == status.replicas == replicas


def is_status_stale(known: StatefulSetStatus, status: StatefulSetStatus) -> bool:
    """Whether the status has to be written."""
    kept = replace(known, observed_generation=status.observed_generation, collision_count=status.collision_count)
    return status.observed_generation > known.observed_generation or status != kept


def status_document(status: StatefulSetStatus) -> Document:
    """A status in the form of the API."""
    required = {"replicas": status.replicas, "availableReplicas": status.available_replicas}
    return {**required, **view_document(status)}


# --- members -------------------------------------------------------------------------------------------------


def _plan_members(
    planned: StatefulSetPlan,
    stateful_set: StatefulSet,
    replicas: Sequence[Pod | None],
    find_claim: FindClaim,
    now_s: float,
) -> bool:
    """Plan the ordinals in range. Returns whether the sync ends here."""
    is_ordered = not is_parallel(stateful_set)
    for place, pod in enumerate(replicas):
        if pod is None:
            actions, is_last = _plan_missing(stateful_set, start_of(stateful_set) + place, find_claim)
        else:
            actions, is_last = _plan_present(stateful_set, pod, is_ordered, find_claim, now_s)
        if actions:
            planned.members.append(actions)
        if is_last and is_ordered:
            return True
    return False


def _plan_missing(stateful_set: StatefulSet, ordinal: int, find_claim: FindClaim) -> tuple[list[Action], bool]:
    if is_any_claim_stale(Member(stateful_set, ordinal), find_claim):
        return [], True
    return [CreateMember(ordinal)], True


def _plan_present(
    stateful_set: StatefulSet, pod: Pod, is_ordered: bool, find_claim: FindClaim, now_s: float
) -> tuple[list[Action], bool]:
    """The actions of a member, and whether the next one has to wait for it."""
    is_being_deleted = pod.metadata.deletion_timestamp is not None
    if is_finished(pod):
        return ([] if is_being_deleted else [DeleteMember(pod)]), True
    actions: list[Action] = [EnsureClaims(pod)] if pod.status.phase == "Pending" else []
    is_running = pod.status.phase == "Running" and not is_unavailable(stateful_set, pod, now_s)
    if is_ordered and not is_running:
        return actions, True
    is_right = has_identity(stateful_set, pod) and has_storage(stateful_set, pod)
    if not is_right or not are_claims_right(member_of(stateful_set, pod), find_claim):
        actions.append(CorrectMember(pod))
    return actions, False


def _plan_condemned(
    planned: StatefulSetPlan,
    stateful_set: StatefulSet,
    replicas: Sequence[Pod | None],
    condemned: Sequence[Pod],
    now_s: float,
) -> bool:
    """Plan the pods beyond the range. Returns whether the sync ends here."""
    if is_parallel(stateful_set):
        planned.condemned = [DeleteMember(pod) for pod in condemned if pod.metadata.deletion_timestamp is None]
        return False
    if not condemned:
        return False
    pod = condemned[0]
    present = [*replicas, *reversed(condemned)]
    first_unavailable = next(
        (member for member in present if member is None or is_unavailable(stateful_set, member, now_s)), None
    )
    is_well = pod.status.phase == "Running" and not is_unavailable(stateful_set, pod, now_s)
    if pod.metadata.deletion_timestamp is None and (is_well or pod is first_unavailable):
        planned.condemned = [DeleteMember(pod)]
    return True


def _next_update(
    stateful_set: StatefulSet, replicas: Sequence[Pod | None], update: str, now_s: float
) -> DeleteMember | None:
    for place in range(len(replicas) - 1, partition_of(stateful_set) - 1, -1):
        pod = replicas[place]
        if pod is None:
            return None
        if revision_of(pod) != update and pod.metadata.deletion_timestamp is None:
            return DeleteMember(pod)
        if is_unavailable(stateful_set, pod, now_s):
            return None
    return None
