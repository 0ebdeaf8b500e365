"""What a StatefulSet needs next: members made, corrected, deleted, in the order of their numbers. Decides only.

Comes in   a StatefulSet, its pods, the names of its revisions, its claims, the time
Goes out   a `Plan` of actions, in the order in which they are to be carried out; the status

 1. Ordered: a member is made, deleted or updated only when all before it are running and available. One step a round.
 2. Parallel: members are made and deleted all at once. Updates still go one by one.
 3. Scaling goes before updating; correcting goes before both.
 4. Updates go from the highest number down to the partition, and wait for each member to be available again.
 5. A set that is going does nothing but tell its status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import StatefulSet, StatefulSetStatus
from mooring.controllers.pods import is_available, is_finished, is_ready
from mooring.controllers.replicas import replicas_of
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
    """With its claims."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class DeleteMember:
    pod: Pod


@dataclass(frozen=True, slots=True)
class EnsureClaims:
    """Of a pod that waits, perhaps for claims that somebody deleted."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class CorrectMember:
    pod: Pod


@dataclass(frozen=True, slots=True)
class CorrectClaims:
    pod: Pod


Action: TypeAlias = CreateMember | DeleteMember | EnsureClaims | CorrectMember | CorrectClaims


@dataclass(slots=True)
class Plan:
    """Phase after phase; whatever fails ends the round."""

    members: list[list[Action]] = field(default_factory=list)
    """Of each member what is to be done about it."""
    claims: list[CorrectClaims] = field(default_factory=list)
    condemned: list[DeleteMember] = field(default_factory=list)
    update: DeleteMember | None = None


def is_parallel(wanted: StatefulSet) -> bool:
    return wanted.spec.pod_management_policy == "Parallel"


def plan(wanted: StatefulSet, pods: Sequence[Pod], update: str, find_claim: FindClaim, now_s: float) -> Plan:
    """`update` is the name of the newest revision."""
    planned = Plan()
    if wanted.metadata.deletion_timestamp is not None:
        return planned
    start = start_of(wanted)
    by_ordinal = {ordinal_of(pod): pod for pod in pods if is_in_range(wanted, ordinal_of(pod))}
    replicas = [by_ordinal.get(ordinal) for ordinal in range(start, start + replicas_of(wanted))]
    condemned = sorted(
        (pod for pod in pods if ordinal_of(pod) >= 0 and not is_in_range(wanted, ordinal_of(pod))),
        key=ordinal_of,
        reverse=True,
    )
    if _plan_members(planned, wanted, replicas, find_claim, now_s):
        return planned
    planned.claims = [
        CorrectClaims(pod) for pod in condemned if not are_claims_right(member_of(wanted, pod), find_claim)
    ]
    if _plan_condemned(planned, wanted, replicas, condemned, now_s):
        return planned
    if wanted.spec.update_strategy.type != "OnDelete":
        planned.update = _next_update(wanted, replicas, update, now_s)
    return planned


def count_status(
    wanted: StatefulSet, pods: Sequence[Pod], current: str, update: str, collision_count: int, now_s: float
) -> StatefulSetStatus:
    """By the pods as they were before this round."""
    replicas = ready = available = currents = updated = 0
    for pod in pods:
        if ordinal_of(pod) < 0:
            continue
        is_created = pod.status.phase != ""
        replicas += is_created
        if pod.status.phase == "Running" and is_ready(pod):
            ready += 1
            available += is_available(pod, wanted.spec.min_ready_seconds, now_s)
        if is_created and pod.metadata.deletion_timestamp is None:
            currents += revision_of(pod) == current
            updated += revision_of(pod) == update
    return StatefulSetStatus(
        observed_generation=wanted.metadata.generation,
        replicas=replicas,
        ready_replicas=ready,
        current_replicas=currents,
        updated_replicas=updated,
        current_revision=current,
        update_revision=update,
        collision_count=collision_count,
        available_replicas=available,
    )


def is_update_complete(wanted: StatefulSet, status: StatefulSetStatus) -> bool:
    """Whether the new revision is the current one from now on."""
    replicas = replicas_of(wanted)
    is_rolling = wanted.spec.update_strategy.type == "RollingUpdate"
    return is_rolling and status.updated_replicas == status.ready_replicas == status.replicas == replicas


def is_status_stale(known: StatefulSetStatus, status: StatefulSetStatus) -> bool:
    """Whether the status must be written."""
    return status.observed_generation > known.observed_generation or any(
        getattr(status, name) != getattr(known, name)
        for name in (
            "replicas",
            "current_replicas",
            "ready_replicas",
            "updated_replicas",
            "current_revision",
            "available_replicas",
            "update_revision",
        )
    )


def status_document(status: StatefulSetStatus) -> Document:
    """As it is sent."""
    document: Document = {"replicas": status.replicas, "availableReplicas": status.available_replicas}
    optional = {
        "observedGeneration": status.observed_generation,
        "readyReplicas": status.ready_replicas,
        "currentReplicas": status.current_replicas,
        "updatedReplicas": status.updated_replicas,
        "currentRevision": status.current_revision,
        "updateRevision": status.update_revision,
    }
    document |= {name: value for name, value in optional.items() if value}
    if status.collision_count is not None:
        document["collisionCount"] = status.collision_count
    return document


# --- members ----------------------------------------------------------------------------------------------------


def _plan_members(
    planned: Plan, wanted: StatefulSet, replicas: Sequence[Pod | None], find_claim: FindClaim, now_s: float
) -> bool:
    """Whether that is all for this round."""
    is_ordered = not is_parallel(wanted)
    for place, pod in enumerate(replicas):
        if pod is None:
            actions, is_last = _plan_missing(wanted, start_of(wanted) + place, find_claim)
        else:
            actions, is_last = _plan_present(wanted, pod, is_ordered, find_claim, now_s)
        if actions:
            planned.members.append(actions)
        if is_last and is_ordered:
            return True
    return False


def _plan_missing(wanted: StatefulSet, ordinal: int, find_claim: FindClaim) -> tuple[list[Action], bool]:
    if is_any_claim_stale(Member(wanted, ordinal), find_claim):
        return [], True
    return [CreateMember(ordinal)], True


def _plan_present(
    wanted: StatefulSet, pod: Pod, is_ordered: bool, find_claim: FindClaim, now_s: float
) -> tuple[list[Action], bool]:
    """What is to be done about a member, and whether the next has to wait for it."""
    is_being_deleted = pod.metadata.deletion_timestamp is not None
    if is_finished(pod):
        return ([] if is_being_deleted else [DeleteMember(pod)]), True
    actions: list[Action] = [EnsureClaims(pod)] if pod.status.phase == "Pending" else []
    is_running = pod.status.phase == "Running" and not is_unavailable(wanted, pod, now_s)
    if is_ordered and not is_running:
        return actions, True
    is_right = has_identity(wanted, pod) and has_storage(wanted, pod)
    if not is_right or not are_claims_right(member_of(wanted, pod), find_claim):
        actions.append(CorrectMember(pod))
    return actions, False


def _plan_condemned(
    planned: Plan,
    wanted: StatefulSet,
    replicas: Sequence[Pod | None],
    condemned: Sequence[Pod],
    now_s: float,
) -> bool:
    """Whether that is all for this round."""
    if is_parallel(wanted):
        planned.condemned = [DeleteMember(pod) for pod in condemned if pod.metadata.deletion_timestamp is None]
        return False
    if not condemned:
        return False
    pod = condemned[0]
    present = [*replicas, *reversed(condemned)]
    first_unavailable = next((each for each in present if each is None or is_unavailable(wanted, each, now_s)), None)
    is_well = pod.status.phase == "Running" and not is_unavailable(wanted, pod, now_s)
    if pod.metadata.deletion_timestamp is None and (is_well or pod is first_unavailable):
        planned.condemned = [DeleteMember(pod)]
    return True


def _next_update(wanted: StatefulSet, replicas: Sequence[Pod | None], update: str, now_s: float) -> DeleteMember | None:
    for place in range(len(replicas) - 1, partition_of(wanted) - 1, -1):
        pod = replicas[place]
        if pod is None:
            return None
        if revision_of(pod) != update and pod.metadata.deletion_timestamp is None:
            return DeleteMember(pod)
        if is_unavailable(wanted, pod, now_s):
            return None
    return None
