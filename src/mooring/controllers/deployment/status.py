"""The status of a Deployment: counts and conditions. No I/O.

Inputs: a Deployment with its present status, and its ReplicaSets. Outputs: the new status; when to sync again.

A condition keeps its transition time while its status stays, and is not written while status and reason stay.
Progressing is the exception: it is renewed with each progress, because the deadline counts from its last update.

    Progressing     NewReplicaSetCreated, FoundNewReplicaSet -> ReplicaSetUpdated -> NewReplicaSetAvailable
                    or ProgressDeadlineExceeded, ReplicaSetCreateError; DeploymentPaused, DeploymentResumed
    Available       enough pods are available
    ReplicaFailure  copied from a ReplicaSet that cannot create or delete pods
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mooring.api.views.meta import Condition, find_condition
from mooring.api.views.workloads import Deployment, DeploymentStatus, ReplicaSet
from mooring.controllers.deployment.sizes import max_unavailable, sum_of_sizes
from mooring.controllers.documents import REPLICA_FAILURE
from mooring.controllers.pods import replicas_of
from mooring.kit.clock import format_rfc3339, parse_rfc3339

PROGRESSING = "Progressing"
AVAILABLE = "Available"

NEW_SET_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"

_NO_DEADLINE = 2**31 - 1
CHECK_MARGIN_S = 1.0
"""Added to the deadline: timestamps have whole seconds."""
CHECK_SOON_S = 0.005


# --- status --------------------------------------------------------------------------------------------------


def counted_status(
    deployment: Deployment, new: ReplicaSet | None, sets: Sequence[ReplicaSet], now_s: float
) -> DeploymentStatus:
    """Counts and the condition Available. Other conditions stay. `sets` include the new one."""
    available = sum(replica_set.status.available_replicas for replica_set in sets)
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(replica_set.status.replicas for replica_set in sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(replica_set.status.ready_replicas for replica_set in sets),
        available_replicas=available,
        unavailable_replicas=max(0, sum_of_sizes(sets) - available),
        terminating_replicas=_terminating(sets),
        collision_count=deployment.status.collision_count,
        conditions=deployment.status.conditions,
    )
    if available >= replicas_of(deployment) - max_unavailable(deployment):
        enough = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        enough = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return with_condition(status, new_condition(AVAILABLE, *enough, now_s))


def rollout_status(
    deployment: Deployment, new: ReplicaSet | None, sets: Sequence[ReplicaSet], now_s: float
) -> DeploymentStatus:
    """`counted_status` with the condition Progressing."""
    status = counted_status(deployment, new, sets, now_s)
    current = find_condition(deployment.status.conditions, PROGRESSING)
    if not has_deadline(deployment):
        status = without_condition(status, PROGRESSING)
    else:
        is_over = current is not None and current.reason == NEW_SET_AVAILABLE
        if not (is_over and status.replicas == status.updated_replicas):
            status = _with_progress(deployment, status, current, new, now_s)
    failure = _replica_failure(new, sets)
    return with_condition(status, failure) if failure is not None else without_condition(status, REPLICA_FAILURE)


def _with_progress(
    deployment: Deployment, status: DeploymentStatus, current: Condition | None, new: ReplicaSet | None, now_s: float
) -> DeploymentStatus:
    subject = f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_condition(status, new_condition(PROGRESSING, "True", NEW_SET_AVAILABLE, message, now_s))
    if _is_progressing(deployment.status, status):
        condition = new_condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now_s)
        if current is not None and current.status == "True":
            condition = replace(condition, last_transition_time=current.last_transition_time)
        return with_condition(without_condition(status, PROGRESSING), condition)
    if _is_timed_out(deployment, status, now_s):
        message = f"{subject} has timed out progressing."
        return with_condition(status, new_condition(PROGRESSING, "False", TIMED_OUT, message, now_s))
    return status


def paused_status(deployment: Deployment, now_s: float) -> DeploymentStatus:
    """The present status with a condition for being paused or resumed."""
    status = deployment.status
    condition = find_condition(status.conditions, PROGRESSING)
    if not has_deadline(deployment) or (condition is not None and condition.reason == TIMED_OUT):
        return status
    is_noted = condition is not None and condition.reason == PAUSED
    if deployment.spec.paused and not is_noted:
        note = new_condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now_s)
        return with_condition(status, note)
    if not deployment.spec.paused and is_noted:
        note = new_condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now_s)
        return with_condition(status, note)
    return status


def check_again_in_s(deployment: Deployment, status: DeploymentStatus, now_s: float) -> float | None:
    """Seconds until a stalled rollout may exceed its deadline. None if there is no deadline to wait for."""
    condition = find_condition(status.conditions, PROGRESSING)
    if not has_deadline(deployment) or condition is None or is_complete(deployment, status):
        return None
    if condition.reason == TIMED_OUT or condition.last_update_time is None:
        return None
    if condition.reason == NEW_SET_AVAILABLE and status.replicas == status.updated_replicas:
        return None  # the rollout is over and cannot time out: pods are missing, but not because of it
    left_s = parse_rfc3339(condition.last_update_time) + _deadline_s(deployment) - now_s
    return left_s + CHECK_MARGIN_S if left_s >= CHECK_MARGIN_S else max(left_s, 0.0) + CHECK_SOON_S


# --- predicates ----------------------------------------------------------------------------------------------


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, _NO_DEADLINE)


def _deadline_s(deployment: Deployment) -> int:
    return deployment.spec.progress_deadline_seconds or 0


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods have the new template and are available, and no old pod is left."""
    replicas = replicas_of(deployment)
    return (
        status.updated_replicas == replicas
        and status.replicas == replicas
        and status.available_replicas == replicas
        and status.observed_generation >= deployment.metadata.generation
    )


def _is_progressing(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _is_timed_out(deployment: Deployment, status: DeploymentStatus, now_s: float) -> bool:
    condition = find_condition(status.conditions, PROGRESSING)
    if condition is None or condition.reason == NEW_SET_AVAILABLE or condition.last_update_time is None:
        return False
    if condition.reason == TIMED_OUT:
        return True
    return parse_rfc3339(condition.last_update_time) + _deadline_s(deployment) < now_s


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """None if a ReplicaSet that was synced does not report the number."""
    counts = [
        replica_set.status.terminating_replicas
        for replica_set in sets
        if replica_set.status.terminating_replicas is not None or replica_set.status.observed_generation
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _replica_failure(new: ReplicaSet | None, sets: Sequence[ReplicaSet]) -> Condition | None:
    """The first ReplicaFailure condition, that of the new ReplicaSet first."""
    for replica_set in [new, *sets] if new is not None else sets:
        condition = find_condition(replica_set.status.conditions, REPLICA_FAILURE)
        if condition is not None:
            return replace(condition, last_update_time=condition.last_transition_time)
    return None


# --- conditions ----------------------------------------------------------------------------------------------


def new_condition(type_: str, status: str, reason: str, message: str, now_s: float) -> Condition:
    now = format_rfc3339(now_s)
    return Condition(
        type=type_, status=status, reason=reason, message=message, last_update_time=now, last_transition_time=now
    )


def with_condition(status: DeploymentStatus, condition: Condition) -> DeploymentStatus:
    """The status with a condition at the end, unless status and reason are unchanged."""
    current = find_condition(status.conditions, condition.type)
    if current is not None and current.status == condition.status:
        if current.reason == condition.reason:
            return status
        condition = replace(condition, last_transition_time=current.last_transition_time)
    return replace(without_condition(status, condition.type), conditions=(*_others(status, condition.type), condition))


def without_condition(status: DeploymentStatus, type_: str) -> DeploymentStatus:
    others = _others(status, type_)
    return status if len(others) == len(status.conditions) else replace(status, conditions=others)


def _others(status: DeploymentStatus, type_: str) -> tuple[Condition, ...]:
    return tuple(condition for condition in status.conditions if condition.type != type_)
