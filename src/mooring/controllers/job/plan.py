"""What a Job needs next: its end, more pods, fewer pods. Decides only.

Comes in   a Job, its pods, which finalizers are being taken away, the time
Goes out   a `Survey` of how it is; the condition under which it ends; `CreatePods`, `RemovePods`, `WaitForBackoff`

A pod of a Job carries a finalizer until it has been counted, so that no success is lost with a pod that is deleted. So
a pod with the finalizer is new to the counts, one without it is in them already (or on its way: `removed`).

 1. Failures are looked for before successes; a verdict of an earlier round stays.
 2. In one round pods are created or removed, never both; removing goes first.
 3. At most `BURST_MAX` pods are created or removed in one round.
 4. Pods of an index are never doubled on purpose: of those that are, all but one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from mooring.api.views.batch import Job, JobCondition
from mooring.api.views.pod import Pod
from mooring.controllers.job.failures import (
    FAIL_INDEX,
    FailureRecord,
    absolute_failures,
    finished_at_s,
    index_failures,
    is_failed,
    is_only_replaced_when_failed,
    judge_failure,
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
from mooring.controllers.pod_ranking import restarts_of
from mooring.controllers.pods import is_active, is_ready, is_terminating, ready_condition
from mooring.kit.clock import parse_rfc3339

BURST_MAX = 500
TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class CreatePods:
    """As many as that; one for each index, if the Job is indexed."""

    count: int
    indexes: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class RemovePods:
    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class WaitForBackoff:
    after_s: float


@dataclass(slots=True)
class Survey:
    """How a Job is, by its pods. `active`, `ready` and `terminating` are kept up with what is done in this round."""

    job: Job
    pods: list[Pod]
    removed: Set[str]
    """Uids of pods whose finalizer was taken away, which the informer does not show yet."""
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
    """By index: the failed pod that stays until its replacement is there, since it carries the count of failures."""


def survey(job: Job, pods: list[Pod], removed: Set[str]) -> Survey:
    """Count everything."""
    active = [pod for pod in pods if is_active(pod)]
    found = Survey(job, pods, removed, active, active=len(active))
    found.ready = sum(is_ready(pod) for pod in active)
    found.terminating = sum(is_terminating(pod) for pod in pods)
    uncounted = job.status.uncounted_terminated_pods
    succeeded_uids = uncounted.succeeded if uncounted is not None else ()
    failed_uids = uncounted.failed if uncounted is not None else ()
    valid = _valid_pods(found)
    found.new_succeeded = [
        pod for pod in valid if pod.status.phase == "Succeeded" and pod.metadata.uid not in succeeded_uids
    ]
    found.new_failed = [pod for pod in valid if is_failed(pod, job) and pod.metadata.uid not in failed_uids]
    policy = job.spec.pod_failure_policy
    counted = sum(judge_failure(policy, pod).is_counted for pod in found.new_failed)
    found.failed = job.status.failed + counted + len(failed_uids)
    found.succeeded = job.status.succeeded + len(found.new_succeeded) + len(succeeded_uids)
    if is_indexed(job):
        _survey_indexes(found)
    return found


def end_of(found: Survey, start_time: str | None, now: str, now_s: float) -> JobCondition | None:
    """The condition that says why the Job is to end; None if it goes on."""
    job = found.job
    conditions = job.status.conditions
    earlier = true_condition(conditions, "SuccessCriteriaMet")
    if earlier is not None:
        return earlier
    earlier = true_condition(conditions, "FailureTarget")
    if earlier is not None:
        return new_condition("Failed", earlier.reason, earlier.message, now)
    failure = _failure(found, start_time, now_s)
    if failure is not None:
        return new_condition("FailureTarget", *failure, now)
    rule = met_success_rule(job, found.succeeded_indexes) if is_indexed(job) else None
    return new_condition("SuccessCriteriaMet", "SuccessPolicy", rule, now) if rule is not None else None


def completion_of(found: Survey, now: str) -> JobCondition | None:
    """The condition that says that all is done; None if it is not."""
    completions = found.job.spec.completions
    is_enough = found.succeeded > 0 if completions is None else found.succeeded >= completions
    if not is_enough or found.active:
        return None
    message = "Reached expected number of succeeded pods"
    return new_condition("SuccessCriteriaMet", "CompletionsReached", message, now)


def deadline_in_s(job: Job, start_time: str | None, now_s: float) -> float | None:
    """After how long the Job will have been active for too long; None if it has no deadline, or stands still."""
    deadline_s = job.spec.active_deadline_seconds
    if deadline_s is None or start_time is None or job.spec.suspend:
        return None
    return deadline_s - (now_s - parse_rfc3339(start_time))


def plan_pods(found: Survey, record: FailureRecord, now_s: float) -> CreatePods | RemovePods | WaitForBackoff | None:
    """What brings the number of pods closer to what is wanted."""
    job = found.job
    if job.spec.suspend:
        return RemovePods(pods_to_remove(job, found.active_pods, found.active))
    wanted = _wanted_active(found)
    to_remove = pods_to_remove(job, found.active_pods, max(0, found.active - wanted))
    if to_remove:
        return RemovePods(to_remove[:BURST_MAX])
    terminating = found.terminating if is_only_replaced_when_failed(job) else 0
    missing = wanted - terminating - found.active
    if missing <= 0:
        return None
    if job.spec.backoff_limit_per_index is None:
        wait_s = record.remaining_s(now_s)
        if wait_s > 0:
            return WaitForBackoff(wait_s)
    missing = min(missing, BURST_MAX)
    return _plan_indexes(found, missing, now_s) if is_indexed(job) else CreatePods(missing)


def pods_to_remove(job: Job, active: Sequence[Pod], at_least: int) -> list[Pod]:
    """Which of the active pods go: those without a place in the Job, and then those that have come least far."""
    going: list[Pod] = []
    staying = [*active]
    if is_indexed(job):
        going, staying = _doubled(active, job.spec.completions or 0)
    if len(going) < at_least:
        staying.sort(key=_how_far)
        going += staying[: at_least - len(going)]
    return going


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def has_finalizer(pod: Pod) -> bool:
    return TRACKING_FINALIZER in pod.metadata.finalizers


def has_valid_index(job: Job, pod: Pod) -> bool:
    return 0 <= completion_index(pod) < (job.spec.completions or 0)


# --- counting ---------------------------------------------------------------------------------------------------


def _valid_pods(found: Survey) -> list[Pod]:
    """Pods that have not been counted yet and have a place in the Job."""
    valid = [pod for pod in found.pods if has_finalizer(pod) and pod.metadata.uid not in found.removed]
    return [pod for pod in valid if has_valid_index(found.job, pod)] if is_indexed(found.job) else valid


def _survey_indexes(found: Survey) -> None:
    job, completions = found.job, found.job.spec.completions or 0
    tracked = [pod for pod in found.pods if has_finalizer(pod) and has_valid_index(job, pod)]
    found.previous_indexes = parse_indexes(job.status.completed_indexes, completions)
    done = {completion_index(pod) for pod in tracked if pod.status.phase == "Succeeded"}
    found.succeeded_indexes = with_indexes(found.previous_indexes, done)
    found.succeeded = count_indexes(found.succeeded_indexes)
    if job.spec.backoff_limit_per_index is not None:
        lost = {completion_index(pod) for pod in tracked if _is_index_failed(job, pod)}
        found.failed_indexes = with_indexes(parse_indexes(job.status.failed_indexes or "", completions), lost)
        found.delayed = _delayed(found)


def _is_index_failed(job: Job, pod: Pod) -> bool:
    if not is_failed(pod, job):
        return False
    verdict = judge_failure(job.spec.pod_failure_policy, pod)
    if verdict.action == FAIL_INDEX:
        return True
    return verdict.is_counted and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _delayed(found: Survey) -> dict[int, Pod]:
    active = indexes_of(found.active_pods)
    delayed: dict[int, Pod] = {}
    for pod in _valid_pods(found):
        index = completion_index(pod)
        if not is_failed(pod, found.job) or index in active:
            continue
        if has_index(found.succeeded_indexes, index) or has_index(found.failed_indexes or (), index):
            continue
        known = delayed.get(index)
        if known is None or (
            absolute_failures(known) <= absolute_failures(pod) and finished_at_s(pod) >= finished_at_s(known)
        ):
            delayed[index] = pod
    return delayed


# --- the end ----------------------------------------------------------------------------------------------------


def _failure(found: Survey, start_time: str | None, now_s: float) -> tuple[str, str] | None:
    """Reason and message of the failure of the whole Job."""
    job = found.job
    if job.spec.pod_failure_policy is not None:
        for pod in found.pods:
            if is_failed(pod, job):
                message = judge_failure(job.spec.pod_failure_policy, pod).failure_message
                if message is not None:
                    return "PodFailurePolicy", message
    if found.failed > _backoff_limit(job) or _has_restarted_too_often(job, found.pods):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left_s = deadline_in_s(job, start_time, now_s)
    if left_s is not None and left_s <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _failure_of_indexes(found)


def _failure_of_indexes(found: Survey) -> tuple[str, str] | None:
    spec = found.job.spec
    if found.failed_indexes is None:
        return None
    lost = count_indexes(found.failed_indexes)
    if spec.max_failed_indexes is not None and lost > spec.max_failed_indexes:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if lost and lost + count_indexes(found.succeeded_indexes) >= (spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _backoff_limit(job: Job) -> int:
    return job.spec.backoff_limit if job.spec.backoff_limit is not None else 6


def _has_restarted_too_often(job: Job, pods: Sequence[Pod]) -> bool:
    """Pods that restart their containers in place count restarts instead of failing."""
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


# --- pods -------------------------------------------------------------------------------------------------------


def _wanted_active(found: Survey) -> int:
    spec = found.job.spec
    parallelism = spec.parallelism if spec.parallelism is not None else 1
    if spec.completions is None:
        # Its pods decide among themselves when the work is done: after the first success nobody new is started.
        return found.active if found.succeeded > 0 else parallelism
    return max(0, min(spec.completions - found.succeeded, parallelism))


def _plan_indexes(found: Survey, missing: int, now_s: float) -> CreatePods | WaitForBackoff | None:
    job = found.job
    taken = with_indexes(found.succeeded_indexes, indexes_of(found.active_pods))
    if is_only_replaced_when_failed(job):
        taken = with_indexes(taken, indexes_of([pod for pod in found.pods if is_terminating(pod)]))
    if found.failed_indexes is not None:
        taken = merged(taken, found.failed_indexes)
    indexes = first_pending(taken, missing, job.spec.completions or 0)
    if job.spec.backoff_limit_per_index is not None:
        waits_s = [(remaining_for_index_s(found.delayed.get(index), now_s), index) for index in indexes]
        indexes = [index for wait_s, index in waits_s if wait_s <= 0]
        if waits_s and not indexes:
            return WaitForBackoff(min(waits_s)[0])
    return CreatePods(len(indexes), indexes) if indexes else None


def _doubled(active: Sequence[Pod], completions: int) -> tuple[list[Pod], list[Pod]]:
    """Pods that share their index with another or have none that is valid; and all others."""
    by_index: dict[int, list[Pod]] = {}
    for pod in active:
        by_index.setdefault(completion_index(pod), []).append(pod)
    going: list[Pod] = []
    staying: list[Pod] = []
    for index, pods in sorted(by_index.items()):
        if index == UNKNOWN or index >= completions:
            going += pods
        else:
            pods.sort(key=_how_far)
            going += pods[:-1]
            staying.append(pods[-1])
    return going, staying


def _how_far(pod: Pod) -> tuple[float, ...]:
    """Who has come less far goes first: without a node, not running, not ready, ready or created later."""
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
    for condition in conditions:
        if condition.type == type:
            return condition if condition.status == "True" else None
    return None
