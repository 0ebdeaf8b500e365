"""Tracking: which of a Job's pods are counted now, and may lose their finalizer. Decides only.

Comes in   a `Survey`, the condition under which the Job ends (or None), the status to be changed
Goes out   the pods to release; the status with those listed that are to be counted, and with its interim condition

 1. A pod is released when it has succeeded or failed, or when its Job ends or is deleted.
 2. A failed pod whose replacement is not there yet stays, if the failures are counted for each index.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.views.batch import JobCondition
from mooring.api.views.pod import Pod
from mooring.controllers.job.failures import is_failed, judge_failure
from mooring.controllers.job.indexes import (
    completion_index,
    count_indexes,
    has_index,
    indexes_text,
    with_indexes,
)
from mooring.controllers.job.plan import Survey, has_finalizer, has_valid_index, is_indexed
from mooring.controllers.job.status import UNCOUNTED_MAX, Progress, final_condition, true_condition


@dataclass(slots=True)
class Tracking:
    to_release: list[Pod]
    uids_with_finalizer: set[str]
    is_changed: bool = False
    """Whether the status must be written before any pod is released."""
    is_full: bool = False
    """Whether some pods wait for the next round."""


def track(found: Survey, end: JobCondition | None, progress: Progress) -> Tracking:
    """Lists in `progress` who is to be counted."""
    is_job_indexed = is_indexed(found.job)
    pods = sorted(found.pods, key=completion_index) if is_job_indexed else found.pods
    tracked = [pod for pod in pods if has_finalizer(pod) and pod.metadata.uid not in found.removed]
    tracking = Tracking([], {pod.metadata.uid for pod in tracked})
    tracking.is_changed = progress.count_released(tracking.uids_with_finalizer)
    new_indexes: list[int] = []
    for pod in tracked:
        if not _can_release(found, end, pod):
            continue
        tracking.to_release.append(pod)
        if _list_uncounted(found, end, pod, progress, new_indexes):
            tracking.is_changed = True
        if len(new_indexes) + progress.uncounted >= UNCOUNTED_MAX:
            tracking.is_full = True
            break
    if is_job_indexed:
        tracking.is_changed |= _note_indexes(found, progress, new_indexes)
    tracking.is_changed |= _note_interim(end, progress)
    return tracking


def finish(end: JobCondition | None, progress: Progress, terminating: int, now: str) -> JobCondition | None:
    """The final condition, put into `progress`; None as long as something is still to be counted or to go."""
    if end is None or progress.uncounted or terminating:
        return None
    final = final_condition(end, now)
    progress.set_condition(final.type, "True", final.reason, final.message, now)
    if final.type == "Complete":
        progress.completion_time = final.last_transition_time
    return final


def _can_release(found: Survey, end: JobCondition | None, pod: Pod) -> bool:
    job = found.job
    if job.metadata.deletion_timestamp is not None or end is not None or pod.status.phase == "Succeeded":
        return True
    if not is_failed(pod, job):
        return False
    delayed = found.delayed.get(completion_index(pod))
    return delayed is None or delayed.metadata.uid != pod.metadata.uid


def _list_uncounted(
    found: Survey, end: JobCondition | None, pod: Pod, progress: Progress, new_indexes: list[int]
) -> bool:
    """Whether the pod was put on the list."""
    job, uid = found.job, pod.metadata.uid
    uncounted = job.status.uncounted_terminated_pods
    is_listed_failed = uncounted is not None and uid in uncounted.failed
    if pod.status.phase == "Succeeded" and not is_listed_failed:
        if is_indexed(job):
            index = completion_index(pod)
            if not has_valid_index(job, pod) or has_index(found.previous_indexes, index):
                return False
            new_indexes.append(index)
            return True
        if uncounted is not None and uid in uncounted.succeeded:
            return False
        progress.uncounted_succeeded.append(uid)
        return True
    is_lost = is_failed(pod, job) or (end is not None and end.type != "SuccessCriteriaMet")
    if not is_lost or is_listed_failed or (is_indexed(job) and not has_valid_index(job, pod)):
        return False
    if not judge_failure(job.spec.pod_failure_policy, pod).is_counted:
        return False
    progress.uncounted_failed.append(uid)
    return True


def _note_indexes(found: Survey, progress: Progress, new_indexes: list[int]) -> bool:
    done = with_indexes(found.succeeded_indexes, new_indexes)
    completed = indexes_text(done)
    failed = indexes_text(found.failed_indexes) if found.failed_indexes is not None else None
    is_changed = completed != progress.completed_indexes or failed != progress.failed_indexes
    progress.succeeded = count_indexes(done)
    progress.completed_indexes, progress.failed_indexes = completed, failed
    return is_changed


def _note_interim(end: JobCondition | None, progress: Progress) -> bool:
    if end is None or end.type not in ("FailureTarget", "SuccessCriteriaMet"):
        return False
    if true_condition(progress.conditions, end.type) is not None:
        return False
    progress.conditions.append(end)
    return True
