"""The status of a Job: counting finished pods exactly once.

Inputs: the present status, a `PodSummary`, the condition with which the Job ends. Outputs: `Progress`, the new
status; the pods to release.

    finished, with finalizer ──> listed as uncounted in the status ──> finalizer removed ──> counted, not listed

1. Indexed Jobs do not list successes: the index shows whether it was counted.
2. At most `UNCOUNTED_MAX` pods are listed, to keep the status small. Others wait for the next sync.
3. A pod is released when it has succeeded or failed, or when its Job ends or is deleted. When a Job fails, pods
   that have not finished count as failed; when it succeeds, they do not.
4. With backoffLimitPerIndex a failed pod is kept until its replacement exists.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import msgspec

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import JobCondition, JobStatus
from mooring.controllers.documents import view_document
from mooring.controllers.job.failures import is_failed, match_failure_policy
from mooring.controllers.job.indexes import (
    completion_index,
    count_indexes,
    has_index,
    indexes_text,
    with_indexes,
)
from mooring.controllers.job.plan import (
    PodSummary,
    has_finalizer,
    has_valid_index,
    is_indexed,
    new_condition,
    true_condition,
)

UNCOUNTED_MAX = 500


class UncountedPods(msgspec.Struct, omit_defaults=True):
    """The uids of finished pods that the counts do not include."""

    succeeded: list[str] = []
    failed: list[str] = []


class Progress(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A `JobStatus` that can be changed."""

    conditions: list[JobCondition] = []
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    ready: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted: UncountedPods = msgspec.field(default_factory=UncountedPods, name="uncountedTerminatedPods")

    @property
    def uncounted_count(self) -> int:
        return len(self.uncounted.succeeded) + len(self.uncounted.failed)

    def count_released(self, uids_with_finalizer: Set[str]) -> bool:
        """Count the listed pods that have lost their finalizer. Returns whether there were any."""
        uncounted = self.uncounted
        succeeded = [uid for uid in uncounted.succeeded if uid in uids_with_finalizer]
        failed = [uid for uid in uncounted.failed if uid in uids_with_finalizer]
        counted = self.uncounted_count - len(succeeded) - len(failed)
        self.succeeded += len(uncounted.succeeded) - len(succeeded)
        self.failed += len(uncounted.failed) - len(failed)
        uncounted.succeeded, uncounted.failed = succeeded, failed
        return counted > 0

    def set_condition(self, type: str, status: str, reason: str, message: str, now: str) -> bool:
        """Add or change a condition. Returns whether it changed. A missing condition is not added with status False."""
        condition = new_condition(type, reason, message, now, status)
        for index, known in enumerate(self.conditions):
            if known.type == type:
                if (known.status, known.reason, known.message) == (status, reason, message):
                    return False
                self.conditions[index] = condition
                return True
        if status == "False":
            return False
        self.conditions.append(condition)
        return True


def progress_of(status: JobStatus) -> Progress:
    return msgspec.convert(msgspec.to_builtins(status), Progress)


def progress_document(progress: Progress) -> Document:
    """The status in the form of the API. Zeros are left out, except where they differ from unknown."""
    return view_document(progress)


def final_condition(end: JobCondition, now: str) -> JobCondition:
    """The final condition for an interim one."""
    final = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}.get(end.type, end.type)
    return new_condition(final, end.reason, end.message, now)


@dataclass(slots=True)
class Tracking:
    """The pods to release in one sync."""

    to_release: list[Pod]
    uids_with_finalizer: set[str]
    is_changed: bool = False
    """Whether the status must be written before pods are released."""
    is_full: bool = False
    """Whether some pods wait for the next sync."""


def track(summary: PodSummary, end: JobCondition | None, progress: Progress) -> Tracking:
    """List the pods to be counted in `progress`."""
    is_job_indexed = is_indexed(summary.job)
    pods = sorted(summary.pods, key=completion_index) if is_job_indexed else summary.pods
    tracked = [pod for pod in pods if has_finalizer(pod) and pod.metadata.uid not in summary.removed]
    tracking = Tracking([], {pod.metadata.uid for pod in tracked})
    tracking.is_changed = progress.count_released(tracking.uids_with_finalizer)
    new_indexes: list[int] = []
    for pod in tracked:
        if not _can_release(summary, end, pod):
            continue
        tracking.to_release.append(pod)
        if _list_uncounted(summary, end, pod, progress, new_indexes):
            tracking.is_changed = True
        if len(new_indexes) + progress.uncounted_count >= UNCOUNTED_MAX:
            tracking.is_full = True
            break
    if is_job_indexed:
        tracking.is_changed |= _set_indexes(summary, progress, new_indexes)
    tracking.is_changed |= _set_interim_condition(end, progress)
    return tracking


def finish(end: JobCondition | None, progress: Progress, terminating: int, now: str) -> JobCondition | None:
    """Add the final condition to `progress`. None while pods are uncounted or terminating."""
    if end is None or progress.uncounted_count or terminating:
        return None
    final = final_condition(end, now)
    progress.set_condition(final.type, "True", final.reason, final.message, now)
    if final.type == "Complete":
        progress.completion_time = final.last_transition_time
    return final


def _can_release(summary: PodSummary, end: JobCondition | None, pod: Pod) -> bool:
    job = summary.job
    if job.metadata.deletion_timestamp is not None or end is not None or pod.status.phase == "Succeeded":
        return True
    if not is_failed(pod, job):
        return False
    delayed = summary.delayed.get(completion_index(pod))
    return delayed is None or delayed.metadata.uid != pod.metadata.uid


def _list_uncounted(
    summary: PodSummary, end: JobCondition | None, pod: Pod, progress: Progress, new_indexes: list[int]
) -> bool:
    """List a pod as uncounted. Returns whether it was added."""
    job, uid = summary.job, pod.metadata.uid
    uncounted = job.status.uncounted_terminated_pods
    is_listed_failed = uncounted is not None and uid in uncounted.failed
    if pod.status.phase == "Succeeded" and not is_listed_failed:
        if is_indexed(job):
            index = completion_index(pod)
            if not has_valid_index(job, pod) or has_index(summary.previous_indexes, index):
                return False
            new_indexes.append(index)
            return True
        if uncounted is not None and uid in uncounted.succeeded:
            return False
        progress.uncounted.succeeded.append(uid)
        return True
    is_counted_failed = is_failed(pod, job) or (end is not None and end.type != "SuccessCriteriaMet")
    if not is_counted_failed or is_listed_failed or (is_indexed(job) and not has_valid_index(job, pod)):
        return False
    if not match_failure_policy(job.spec.pod_failure_policy, pod).is_counted:
        return False
    progress.uncounted.failed.append(uid)
    return True


def _set_indexes(summary: PodSummary, progress: Progress, new_indexes: list[int]) -> bool:
    done = with_indexes(summary.succeeded_indexes, new_indexes)
    completed = indexes_text(done)
    failed = indexes_text(summary.failed_indexes) if summary.failed_indexes is not None else None
    is_changed = completed != progress.completed_indexes or failed != progress.failed_indexes
    progress.succeeded = count_indexes(done)
    progress.completed_indexes, progress.failed_indexes = completed, failed
    return is_changed


def _set_interim_condition(end: JobCondition | None, progress: Progress) -> bool:
    if end is None or end.type not in ("FailureTarget", "SuccessCriteriaMet"):
        return False
    if true_condition(progress.conditions, end.type) is not None:
        return False
    progress.conditions.append(end)
    return True
