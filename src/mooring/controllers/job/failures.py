"""The policies of a Job: what a failure means, and when enough has succeeded.

Comes in   a Job's podFailurePolicy and a failed pod; its successPolicy and the indexes that succeeded
Goes out   a `FailureVerdict`; the sentence that says which rule of success is met

 1. The first rule that matches decides. Without a match a failure counts, as it does without a policy.
 2. With a podFailurePolicy a pod has failed only when its phase says so: a pod that is going has no exit codes yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.api.views.batch import Job, OnExitCodes, OnPodCondition, PodFailurePolicy, PodFailurePolicyRule
from mooring.api.views.meta import Condition
from mooring.api.views.pod import ContainerStatus, Pod
from mooring.controllers.job.indexes import Intervals, count_indexes, overlap, parse_indexes

IGNORE, FAIL_INDEX, COUNT, FAIL_JOB = "Ignore", "FailIndex", "Count", "FailJob"


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """What a pod's failure means for its Job."""

    is_counted: bool = True
    action: str = ""
    """Of the rule that matched; empty if none did."""
    failure_message: str | None = None
    """Why the whole Job fails, if it does."""


COUNTED = FailureVerdict()


def judge_failure(policy: PodFailurePolicy | None, pod: Pod) -> FailureVerdict:
    if policy is None:
        return COUNTED
    for index, rule in enumerate(policy.rules):
        why = _why_matches(rule, pod)
        if not why:
            continue
        match rule.action:
            case "Ignore":
                return FailureVerdict(is_counted=False, action=IGNORE)
            case "FailIndex" | "Count":
                return FailureVerdict(action=rule.action)
            case "FailJob":
                message = f"{why} matching {rule.action} rule at index {index}"
                return FailureVerdict(action=FAIL_JOB, failure_message=message)
    return COUNTED


def is_only_replaced_when_failed(job: Job) -> bool:
    """Whether a pod that is going still has its place until it has ended."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def is_failed(pod: Pod, job: Job) -> bool:
    """A pod that was deleted counts as failed: it may never get to that phase, its node being gone."""
    if pod.status.phase == "Failed":
        return True
    if is_only_replaced_when_failed(job):
        return False
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def met_success_rule(job: Job, succeeded: Intervals) -> str | None:
    """The message about the first rule of the successPolicy that is met."""
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


def _why_matches(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """What about the pod a rule matches, in the words of the Job's condition; empty if nothing."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
            found = _ended_so(statuses, rule.on_exit_codes)
            if found is not None:
                container, exit_code = found
                return f"Container {container} for pod {name} failed with exit code {exit_code}"
    elif rule.on_pod_conditions is not None:
        condition = _matching_condition(pod.status.conditions, rule.on_pod_conditions)
        if condition is not None:
            return f"Pod {name} has condition {condition.type}"
    return ""


def _ended_so(statuses: Iterable[ContainerStatus], requirement: OnExitCodes) -> tuple[str, int] | None:
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
