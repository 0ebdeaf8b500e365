"""What a Job needs next: its end, more pods, or fewer pods. No I/O.

Inputs: a Job, its pods, the finalizers that are being removed, the time. Outputs: a `PodSummary`; the condition
with which the Job ends; `CreatePods`, `RemovePods` or `WaitForBackoff`.

A pod of a Job has a finalizer until it is counted, so that no success is lost with a deleted pod. A pod with the
finalizer is not counted yet. A pod without it is (or is about to be: `removed`).

1. Failures are checked before successes. The result of an earlier sync stays.
2. A sync creates or removes pods, never both. Removing comes first.
3. At most `BURST_MAX` pods are created or removed in one sync.
4. Of several pods with the same index all but one are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from mooring.api.views.meta import find_condition
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Job, JobCondition
from mooring.api.well_known import JOB_TRACKING_FINALIZER
from mooring.controllers.job.failures import (
    FAIL_INDEX,
    FailureRecord,
    absolute_failures,
    finished_at_s,
    index_failures,
    is_failed,
    is_only_replaced_when_failed,
    match_failure_policy,
    met_success_rule,
    remaining_for_index_s,
)
from mooring.controllers.job.indexes import (
    UNKNOWN,
    Intervals,
    completion_index,
    count_indexes,
    first_pending,
    has_index,
    indexes_of,
    merged,
    parse_indexes,
    with_indexes,
)
from mooring.controllers.pods import is_active, is_ready, is_terminating, ready_condition, restarts_of
from mooring.kit.clock import parse_rfc3339

BURST_MAX = 500

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Create pods, one for each index if the Job is indexed."""

    count: int
    indexes: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class RemovePods:
    """Delete pods."""

    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class WaitForBackoff:
    """Create pods later."""

    after_s: float


@dataclass(slots=True)
class PodSummary:
    """Counts and lists of a Job's pods. `active`, `ready` and `terminating` follow the actions of the sync."""

    job: Job
    pods: list[Pod]
    removed: Set[str]
    """Uids of pods whose finalizer was removed, which the informer does not show yet."""
    active_pods: list[Pod]
    active: int = 0
    ready: int = 0
    terminating: int = 0
    new_succeeded: list[Pod] = field(default_factory=list)
    new_failed: list[Pod] = field(default_factory=list)
    succeeded: int = 0
    failed: int = 0
    previous_indexes: Intervals = ()
    succeeded_indexes: Intervals = ()
    failed_indexes: Intervals | None = None
    delayed: dict[int, Pod] = field(default_factory=dict)
    """By index, the failed pod that stays until its replacement exists, because it has the count of failures."""


def summarize_pods(job: Job, pods: list[Pod], removed: Set[str]) -> PodSummary:
    """Count the pods of a Job."""
    active = [pod for pod in pods if is_active(pod)]
    summary = PodSummary(job, pods, removed, active, active=len(active))
    summary.ready = sum(is_ready(pod) for pod in active)
    summary.terminating = sum(is_terminating(pod) for pod in pods)
    uncounted = job.status.uncounted_terminated_pods
    succeeded_uids = uncounted.succeeded if uncounted is not None else ()
    failed_uids = uncounted.failed if uncounted is not None else ()
    valid = _valid_pods(summary)
    summary.new_succeeded = [
        pod for pod in valid if pod.status.phase == "Succeeded" and pod.metadata.uid not in succeeded_uids
    ]
    summary.new_failed = [pod for pod in valid if is_failed(pod, job) and pod.metadata.uid not in failed_uids]
    policy = job.spec.pod_failure_policy
    counted = sum(match_failure_policy(policy, pod).is_counted for pod in summary.new_failed)
    summary.failed = job.status.failed + counted + len(failed_uids)
    summary.succeeded = job.status.succeeded + len(summary.new_succeeded) + len(succeeded_uids)
    if is_indexed(job):
        _survey_indexes(summary)
    return summary


def end_of(summary: PodSummary, start_time: str | None, now: str, now_s: float) -> JobCondition | None:
    """The condition with which the Job ends early. None if it continues."""
    job = summary.job
    conditions = job.status.conditions
    earlier = true_condition(conditions, "SuccessCriteriaMet")
    if earlier is not None:
        return earlier
    earlier = true_condition(conditions, "FailureTarget")
    if earlier is not None:
        return new_condition("Failed", earlier.reason, earlier.message, now)
    failure = _failure(summary, start_time, now_s)
    if failure is not None:
        return new_condition("FailureTarget", *failure, now)
    rule = met_success_rule(job, summary.succeeded_indexes) if is_indexed(job) else None
    return new_condition("SuccessCriteriaMet", "SuccessPolicy", rule, now) if rule is not None else None


def completion_of(summary: PodSummary, now: str) -> JobCondition | None:
    """The condition of a Job with enough succeeded pods. None if it continues."""
    completions = summary.job.spec.completions
    is_enough = summary.succeeded > 0 if completions is None else summary.succeeded >= completions
    if not is_enough or summary.active:
        return None
    message = "Reached expected number of succeeded pods"
    return new_condition("SuccessCriteriaMet", "CompletionsReached", message, now)


def deadline_in_s(job: Job, start_time: str | None, now_s: float) -> float | None:
    """Seconds until the active deadline. None without a deadline or while suspended."""
    deadline_s = job.spec.active_deadline_seconds
    if deadline_s is None or start_time is None or job.spec.suspend:
        return None
    return deadline_s - (now_s - parse_rfc3339(start_time))


def plan_pods(
    summary: PodSummary, record: FailureRecord, now_s: float
) -> CreatePods | RemovePods | WaitForBackoff | None:
    """Pods to create or remove."""
    job = summary.job
    if job.spec.suspend:
        return RemovePods(pods_to_remove(job, summary.active_pods, summary.active))
    desired = _desired_active(summary)
    to_remove = pods_to_remove(job, summary.active_pods, max(0, summary.active - desired))
    if to_remove:
        return RemovePods(to_remove[:BURST_MAX])
    terminating = summary.terminating if is_only_replaced_when_failed(job) else 0
    missing = desired - terminating - summary.active
    if missing <= 0:
        return None
    if job.spec.backoff_limit_per_index is None:
        wait_s = record.remaining_s(now_s)
        if wait_s > 0:
            return WaitForBackoff(wait_s)
    missing = min(missing, BURST_MAX)
    return _plan_indexes(summary, missing, now_s) if is_indexed(job) else CreatePods(missing)


def pods_to_remove(job: Job, active: Sequence[Pod], at_least: int) -> list[Pod]:
    """The active pods to delete: those without a valid index, then those that have progressed least."""
    to_remove: list[Pod] = []
    remaining = [*active]
    if is_indexed(job):
        to_remove, remaining = _split_duplicates(active, job.spec.completions or 0)
    if len(to_remove) < at_least:
        remaining.sort(key=_deletion_rank)
        to_remove += remaining[: at_least - len(to_remove)]
    return to_remove


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def has_finalizer(pod: Pod) -> bool:
    return JOB_TRACKING_FINALIZER in pod.metadata.finalizers


def has_valid_index(job: Job, pod: Pod) -> bool:
    return 0 <= completion_index(pod) < (job.spec.completions or 0)


# --- counting ------------------------------------------------------------------------------------------------


def _valid_pods(summary: PodSummary) -> list[Pod]:
    """Pods that are not counted yet and have a valid index."""
    valid = [pod for pod in summary.pods if has_finalizer(pod) and pod.metadata.uid not in summary.removed]
    return [pod for pod in valid if has_valid_index(summary.job, pod)] if is_indexed(summary.job) else valid


def _survey_indexes(summary: PodSummary) -> None:
    job, completions = summary.job, summary.job.spec.completions or 0
    tracked = [pod for pod in summary.pods if has_finalizer(pod) and has_valid_index(job, pod)]
    summary.previous_indexes = parse_indexes(job.status.completed_indexes, completions)
    done = {completion_index(pod) for pod in tracked if pod.status.phase == "Succeeded"}
    summary.succeeded_indexes = with_indexes(summary.previous_indexes, done)
    summary.succeeded = count_indexes(summary.succeeded_indexes)
    if job.spec.backoff_limit_per_index is not None:
        failed_indexes = {completion_index(pod) for pod in tracked if _is_index_failed(job, pod)}
        summary.failed_indexes = with_indexes(
            parse_indexes(job.status.failed_indexes or "", completions), failed_indexes
        )
        summary.delayed = _delayed(summary)


def _is_index_failed(job: Job, pod: Pod) -> bool:
    if not is_failed(pod, job):
        return False
    result = match_failure_policy(job.spec.pod_failure_policy, pod)
    if result.action == FAIL_INDEX:
        return True
    return result.is_counted and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _delayed(summary: PodSummary) -> dict[int, Pod]:
    active = indexes_of(summary.active_pods)
    delayed: dict[int, Pod] = {}
    for pod in _valid_pods(summary):
        index = completion_index(pod)
        if not is_failed(pod, summary.job) or index in active:
            continue
        if has_index(summary.succeeded_indexes, index) or has_index(summary.failed_indexes or (), index):
            continue
        known = delayed.get(index)
        if known is None or (
            absolute_failures(known) <= absolute_failures(pod) and finished_at_s(pod) >= finished_at_s(known)
        ):
            delayed[index] = pod
    return delayed


# --- end -----------------------------------------------------------------------------------------------------


def _failure(summary: PodSummary, start_time: str | None, now_s: float) -> tuple[str, str] | None:
    """Reason and message of the failure of the Job."""
    job = summary.job
    if job.spec.pod_failure_policy is not None:
        for pod in summary.pods:
            if is_failed(pod, job):
                message = match_failure_policy(job.spec.pod_failure_policy, pod).failure_message
                if message is not None:
                    return "PodFailurePolicy", message
    if summary.failed > _backoff_limit(job) or _has_restarted_too_often(job, summary.pods):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left_s = deadline_in_s(job, start_time, now_s)
    if left_s is not None and left_s <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _failure_of_indexes(summary)


def _failure_of_indexes(summary: PodSummary) -> tuple[str, str] | None:
    spec = summary.job.spec
    if summary.failed_indexes is None:
        return None
    failed_indexes = count_indexes(summary.failed_indexes)
    if spec.max_failed_indexes is not None and failed_indexes > spec.max_failed_indexes:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if failed_indexes and failed_indexes + count_indexes(summary.succeeded_indexes) >= (spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _backoff_limit(job: Job) -> int:
    return job.spec.backoff_limit if job.spec.backoff_limit is not None else 6


def _has_restarted_too_often(job: Job, pods: Sequence[Pod]) -> bool:
    """With restartPolicy OnFailure, container restarts count as failures."""
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    limit = _backoff_limit(job)
    return restarts > 0 if limit == 0 else restarts >= limit


# --- pods ----------------------------------------------------------------------------------------------------


def _desired_active(summary: PodSummary) -> int:
    spec = summary.job.spec
    parallelism = spec.parallelism if spec.parallelism is not None else 1
    if spec.completions is None:
        # Without completions, no pod is created after the first success.
        return summary.active if summary.succeeded > 0 else parallelism
    return max(0, min(spec.completions - summary.succeeded, parallelism))


def _plan_indexes(summary: PodSummary, missing: int, now_s: float) -> CreatePods | WaitForBackoff | None:
    job = summary.job
    taken = with_indexes(summary.succeeded_indexes, indexes_of(summary.active_pods))
    if is_only_replaced_when_failed(job):
        taken = with_indexes(taken, indexes_of([pod for pod in summary.pods if is_terminating(pod)]))
    if summary.failed_indexes is not None:
        taken = merged(taken, summary.failed_indexes)
    indexes = first_pending(taken, missing, job.spec.completions or 0)
    if job.spec.backoff_limit_per_index is not None:
        waits_s = [(remaining_for_index_s(summary.delayed.get(index), now_s), index) for index in indexes]
        indexes = [index for wait_s, index in waits_s if wait_s <= 0]
        if waits_s and not indexes:
            return WaitForBackoff(min(waits_s)[0])
    return CreatePods(len(indexes), indexes) if indexes else None


def _split_duplicates(active: Sequence[Pod], completions: int) -> tuple[list[Pod], list[Pod]]:
    """Pods that share an index or have no valid one, and all others."""
    by_index: dict[int, list[Pod]] = {}
    for pod in active:
        by_index.setdefault(completion_index(pod), []).append(pod)
    to_remove: list[Pod] = []
    remaining: list[Pod] = []
    for index, pods in sorted(by_index.items()):
        if index == UNKNOWN or index >= completions:
            to_remove += pods
        else:
            pods.sort(key=_deletion_rank)
            to_remove += pods[:-1]
            remaining.append(pods[-1])
    return to_remove, remaining


def _deletion_rank(pod: Pod) -> tuple[float, ...]:
    """Sort key: pods that have progressed least are deleted first."""
    condition = ready_condition(pod) if is_ready(pod) else None
    ready_at = condition.last_transition_time if condition is not None else None
    created_at = pod.metadata.creation_timestamp
    return (
        pod.spec.node_name != "",
        _PHASE_ORDER.get(pod.status.phase, 0),
        is_ready(pod),
        -parse_rfc3339(ready_at) if ready_at is not None else float("-inf"),
        *(-restarts for restarts in restarts_of(pod)),
        -parse_rfc3339(created_at) if created_at is not None else float("-inf"),
    )


def new_condition(type: str, reason: str, message: str, now: str, status: str = "True") -> JobCondition:
    return JobCondition(
        type=type, status=status, reason=reason, message=message, last_probe_time=now, last_transition_time=now
    )


def true_condition(conditions: Iterable[JobCondition], type: str) -> JobCondition | None:
    condition = find_condition(conditions, type)
    return condition if condition is not None and condition.status == "True" else None
