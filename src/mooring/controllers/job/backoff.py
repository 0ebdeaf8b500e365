"""Backoff of a Job's pods: how long to wait before a failed pod is replaced.

Comes in   pods that have ended since they were counted last; annotations that count the failures of an index
Goes out   a `FailureRecord` for the Job; seconds to wait, for the Job or for one of its indexes

 1. The first failure costs 10 s, each further one in a row twice that, up to ten minutes. A success begins anew.
 2. Waiting counts from when the pod ended, not from when that was noticed.
 3. When the limit is for each index, the count travels in an annotation from a pod to its replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.labels import parse_int64
from mooring.api.views.batch import Job
from mooring.api.views.pod import ContainerStatus, Pod
from mooring.controllers.job.failures import judge_failure
from mooring.controllers.pods import ready_condition
from mooring.kit.backoff import Backoff
from mooring.kit.clock import parse_rfc3339

POD_FAILURE_BACKOFF = Backoff(initial_s=10.0, max_s=600.0)
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """Failures of a Job since its last success."""

    failures: int = 0
    last_failure_s: float = 0.0

    def remaining_s(self, now_s: float) -> float:
        return remaining_s(self.failures, self.last_failure_s, now_s)


NO_FAILURES = FailureRecord()


def next_record(known: FailureRecord, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> FailureRecord:
    """The record after some more pods have ended."""
    if not failed:
        return NO_FAILURES if succeeded else known
    failed_at_s = sorted(finished_at_s(pod) for pod in failed)
    if not succeeded:
        return FailureRecord(known.failures + len(failed), failed_at_s[-1])
    last_success_s = max(finished_at_s(pod) for pod in succeeded)
    later_s = [at_s for at_s in failed_at_s if at_s > last_success_s]
    return FailureRecord(len(later_s), later_s[-1]) if later_s else NO_FAILURES


def remaining_s(failures: int, last_failure_s: float, now_s: float) -> float:
    """How much longer to wait after that many failures in a row."""
    return max(0.0, POD_FAILURE_BACKOFF.delay_s(failures) - (now_s - last_failure_s)) if failures else 0.0


def remaining_for_index_s(last_failed: Pod | None, now_s: float) -> float:
    """How much longer an index has to wait for its next pod."""
    if last_failed is None:
        return 0.0
    return remaining_s(absolute_failures(last_failed) + 1, finished_at_s(last_failed), now_s)


def index_failures(pod: Pod) -> int:
    """How many pods of its index failed before this one, by its annotation."""
    return _count(pod, INDEX_FAILURES)


def absolute_failures(pod: Pod) -> int:
    """The same, with those that a policy ignored."""
    return _count(pod, INDEX_FAILURES) + _count(pod, INDEX_IGNORED_FAILURES)


def failure_annotations(job: Job, replaced: Pod | None) -> dict[str, str]:
    """What the replacement of a failed pod has to say about the failures of its index."""
    failures = ignored = 0
    if replaced is not None:
        failures, ignored = index_failures(replaced), _count(replaced, INDEX_IGNORED_FAILURES)
        if judge_failure(job.spec.pod_failure_policy, replaced).is_counted:
            failures += 1
        else:
            ignored += 1
    annotations = {INDEX_FAILURES: str(failures)}
    if ignored:
        annotations[INDEX_IGNORED_FAILURES] = str(ignored)
    return annotations


def finished_at_s(pod: Pod) -> float:
    """When a pod ended, by the best witness: its containers, its condition Ready, its deletion, its creation."""
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
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    regular_s = _latest_s(pod.status.container_statuses)
    if not sidecars:
        return regular_s
    # As in Kubernetes: a sidecar that has ended speaks for a pod whose containers have not.
    return _latest_s([each for each in pod.status.init_container_statuses if each.name in sidecars], regular_s)


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
