"""Failures of a Job's pods: failure policy, success policy and backoff. No I/O.

Inputs: a Job, its finished pods, the indexes that succeeded. Outputs: what a failure means; the success rule that
is met; seconds to wait before a replacement.

1. The first rule of podFailurePolicy that matches decides. Without a match a failure counts.
2. With a podFailurePolicy a pod has failed only in phase Failed: a terminating pod has no exit codes yet.
3. The backoff is 10 s after the first failure and doubles with each further one, up to ten minutes. A success
   resets it. It counts from when the pod finished.
4. With backoffLimitPerIndex an annotation carries the count of failures from a pod to its replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.labels import parse_int64
from mooring.api.views.meta import Condition
from mooring.api.views.pod import ContainerStatus, Pod
from mooring.api.views.workloads import Job, OnExitCodes, OnPodCondition, PodFailurePolicy, PodFailurePolicyRule
from mooring.api.well_known import JOB_INDEX_FAILURES, JOB_INDEX_IGNORED_FAILURES
from mooring.controllers.job.indexes import Intervals, count_indexes, overlap, parse_indexes
from mooring.controllers.pods import ready_condition
from mooring.kit.backoff import Backoff
from mooring.kit.clock import parse_rfc3339

IGNORE, FAIL_INDEX, COUNT, FAIL_JOB = "Ignore", "FailIndex", "Count", "FailJob"
POD_FAILURE_BACKOFF = Backoff(initial_s=10.0, max_s=600.0)
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FailurePolicyResult:
    """The meaning of a pod's failure for its Job."""

    is_counted: bool = True
    action: str = ""
    """The action of the matching rule. Empty without a match."""
    failure_message: str | None = None
    """Message of the failure of the whole Job."""


COUNTED = FailurePolicyResult()


def match_failure_policy(policy: PodFailurePolicy | None, pod: Pod) -> FailurePolicyResult:
    if policy is None:
        return COUNTED
    for index, rule in enumerate(policy.rules):
        why = _match_message(rule, pod)
        if not why:
            continue
        match rule.action:
            case "Ignore":
                return FailurePolicyResult(is_counted=False, action=IGNORE)
            case "FailIndex" | "Count":
                return FailurePolicyResult(action=rule.action)
            case "FailJob":
                message = f"{why} matching {rule.action} rule at index {index}"
                return FailurePolicyResult(action=FAIL_JOB, failure_message=message)
    return COUNTED


def is_only_replaced_when_failed(job: Job) -> bool:
    """Whether a terminating pod keeps its place until it has failed."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def is_failed(pod: Pod, job: Job) -> bool:
    """Whether a pod counts as failed. A deleted pod does: if its node is gone, it never reaches the phase."""
    if pod.status.phase == "Failed":
        return True
    if is_only_replaced_when_failed(job):
        return False
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def met_success_rule(job: Job, succeeded: Intervals) -> str | None:
    """The message about the first successPolicy rule that is met."""
    policy, completions = job.spec.success_policy, job.spec.completions
    if policy is None or completions is None or not succeeded:
        return None
    for index, rule in enumerate(policy.rules):
        if rule.succeeded_indexes is not None:
            required = parse_indexes(rule.succeeded_indexes, completions)
            if not required:
                continue
            found = overlap(required, succeeded)
            is_met = found == count_indexes(required) or (
                rule.succeeded_count is not None and found >= rule.succeeded_count
            )
        else:
            is_met = rule.succeeded_count is not None and count_indexes(succeeded) >= rule.succeeded_count
        if is_met:
            return f"Matched rules at index {index}"
    return None


def _match_message(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """What a rule matches in a pod, in the words of the Job's condition. Empty without a match."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
            found = _matching_exit_code(statuses, rule.on_exit_codes)
            if found is not None:
                container, exit_code = found
                return f"Container {container} for pod {name} failed with exit code {exit_code}"
    elif rule.on_pod_conditions is not None:
        condition = _matching_condition(pod.status.conditions, rule.on_pod_conditions)
        if condition is not None:
            return f"Pod {name} has condition {condition.type}"
    return ""


def _matching_exit_code(statuses: Iterable[ContainerStatus], requirement: OnExitCodes) -> tuple[str, int] | None:
    for status in statuses:
        terminated = status.state.terminated if status.state is not None else None
        if terminated is None or terminated.exit_code == 0:
            continue
        if requirement.container_name is not None and requirement.container_name != status.name:
            continue
        is_listed = terminated.exit_code in requirement.values
        if (requirement.operator == "In" and is_listed) or (requirement.operator == "NotIn" and not is_listed):
            return status.name, terminated.exit_code
    return None


def _matching_condition(conditions: Iterable[Condition], patterns: tuple[OnPodCondition, ...]) -> Condition | None:
    for condition in conditions:
        for pattern in patterns:
            if condition.type == pattern.type and condition.status == pattern.status:
                return condition
    return None


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """Consecutive failures of a Job."""

    failures: int = 0
    last_failure_s: float = 0.0

    def remaining_s(self, now_s: float) -> float:
        return remaining_s(self.failures, self.last_failure_s, now_s)


NO_FAILURES = FailureRecord()


def next_record(known: FailureRecord, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> FailureRecord:
    """The record after more pods have finished."""
    if not failed:
        return NO_FAILURES if succeeded else known
    failed_at_s = sorted(finished_at_s(pod) for pod in failed)
    if not succeeded:
        return FailureRecord(known.failures + len(failed), failed_at_s[-1])
    last_success_s = max(finished_at_s(pod) for pod in succeeded)
    later_s = [at_s for at_s in failed_at_s if at_s > last_success_s]
    return FailureRecord(len(later_s), later_s[-1]) if later_s else NO_FAILURES


def remaining_s(failures: int, last_failure_s: float, now_s: float) -> float:
    """Remaining backoff after consecutive failures."""
    return max(0.0, POD_FAILURE_BACKOFF.delay_s(failures) - (now_s - last_failure_s)) if failures else 0.0


def remaining_for_index_s(last_failed: Pod | None, now_s: float) -> float:
    """Remaining backoff of an index."""
    if last_failed is None:
        return 0.0
    return remaining_s(absolute_failures(last_failed) + 1, finished_at_s(last_failed), now_s)


def index_failures(pod: Pod) -> int:
    """Number of earlier failures of the pod's index, from its annotation."""
    return _count(pod, JOB_INDEX_FAILURES)


def absolute_failures(pod: Pod) -> int:
    """`index_failures` plus the ignored ones."""
    return _count(pod, JOB_INDEX_FAILURES) + _count(pod, JOB_INDEX_IGNORED_FAILURES)


def failure_annotations(job: Job, replaced: Pod | None) -> dict[str, str]:
    """Annotations of a replacement pod: the failures of its index."""
    failures = ignored = 0
    if replaced is not None:
        failures, ignored = index_failures(replaced), _count(replaced, JOB_INDEX_IGNORED_FAILURES)
        if match_failure_policy(job.spec.pod_failure_policy, replaced).is_counted:
            failures += 1
        else:
            ignored += 1
    annotations = {JOB_INDEX_FAILURES: str(failures)}
    if ignored:
        annotations[JOB_INDEX_IGNORED_FAILURES] = str(ignored)
    return annotations


def finished_at_s(pod: Pod) -> float:
    """When a pod finished, by its containers, its condition Ready, its deletion or its creation."""
    from_containers_s = _containers_finished_at_s(pod)
    if from_containers_s is not None:
        return from_containers_s
    condition = ready_condition(pod)
    if condition is not None and condition.status == "False" and condition.last_transition_time is not None:
        return parse_rfc3339(condition.last_transition_time)
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return parse_rfc3339(metadata.deletion_timestamp) - (metadata.deletion_grace_period_seconds or 0)
    return parse_rfc3339(metadata.creation_timestamp) if metadata.creation_timestamp is not None else 0.0


def _containers_finished_at_s(pod: Pod) -> float | None:
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    regular_s = _latest_s(pod.status.container_statuses)
    if not sidecars:
        return regular_s
    # As in Kubernetes: finished sidecars determine the time of a pod whose containers have not finished.
    return _latest_s([status for status in pod.status.init_container_statuses if status.name in sidecars], regular_s)


def _latest_s(statuses: Iterable[ContainerStatus], known_s: float | None = None) -> float | None:
    latest_s = known_s
    for status in statuses:
        terminated = status.state.terminated if status.state is not None else None
        if terminated is None or terminated.finished_at is None:
            return None
        finished_s = parse_rfc3339(terminated.finished_at)
        latest_s = finished_s if latest_s is None else max(latest_s, finished_s)
    return latest_s


def _count(pod: Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation)
    number = parse_int64(text) if text is not None else None
    return number if number is not None and 0 <= number <= _INT32_MAX else 0
