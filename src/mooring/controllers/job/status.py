"""The status of a Job while it is being worked on.

Comes in   the status as it is; pods that have ended; the condition under which the Job ends
Goes out   `Progress`, the status as it should be; which pods may lose their finalizer

How a pod gets into the counts, so that none is lost or counted twice, wherever the controller stops:

    ended, with finalizer ──> listed as uncounted in the status ──> finalizer taken away ──> counted, off the list

 1. Indexed Jobs need no list of successes: the index says whether it was counted.
 2. At most `UNCOUNTED_MAX` pods are on the list at once, to keep the status small; the others wait for the next round.
 3. When a Job ends in failure, whoever has not ended by then counts as failed; when it ends in success, he does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from mooring.api.document import Document
from mooring.api.views.batch import Job, JobCondition, JobStatus

UNCOUNTED_MAX = 500


@dataclass(slots=True)
class Progress:
    """A status that can be changed."""

    conditions: list[JobCondition]
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    ready: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_succeeded: list[str] = field(default_factory=list)
    uncounted_failed: list[str] = field(default_factory=list)

    @property
    def uncounted(self) -> int:
        return len(self.uncounted_succeeded) + len(self.uncounted_failed)

    def count_released(self, uids_with_finalizer: Set[str]) -> bool:
        """Count those on the list that have lost their finalizer; whether there were any."""
        succeeded = [uid for uid in self.uncounted_succeeded if uid in uids_with_finalizer]
        failed = [uid for uid in self.uncounted_failed if uid in uids_with_finalizer]
        counted = self.uncounted - len(succeeded) - len(failed)
        self.succeeded += len(self.uncounted_succeeded) - len(succeeded)
        self.failed += len(self.uncounted_failed) - len(failed)
        self.uncounted_succeeded, self.uncounted_failed = succeeded, failed
        return counted > 0

    def set_condition(self, type: str, status: str, reason: str, message: str, now: str) -> bool:
        """Add or change a condition; whether that changed anything. What never was true is not made false."""
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
    uncounted = status.uncounted_terminated_pods
    return Progress(
        conditions=[*status.conditions],
        start_time=status.start_time,
        completion_time=status.completion_time,
        active=status.active,
        succeeded=status.succeeded,
        failed=status.failed,
        terminating=status.terminating,
        ready=status.ready,
        completed_indexes=status.completed_indexes,
        failed_indexes=status.failed_indexes,
        uncounted_succeeded=[*uncounted.succeeded] if uncounted is not None else [],
        uncounted_failed=[*uncounted.failed] if uncounted is not None else [],
    )


def progress_document(progress: Progress) -> Document:
    """As it is sent: zeros are left out, but for those that tell "none" from "not known"."""
    counts = {"active": progress.active, "succeeded": progress.succeeded, "failed": progress.failed}
    document: Document = {name: count for name, count in counts.items() if count}
    texts = {
        "startTime": progress.start_time,
        "completionTime": progress.completion_time,
        "completedIndexes": progress.completed_indexes,
    }
    document |= {name: text for name, text in texts.items() if text}
    pointers = {
        "terminating": progress.terminating,
        "ready": progress.ready,
        "failedIndexes": progress.failed_indexes,
    }
    document |= {name: value for name, value in pointers.items() if value is not None}
    uncounted: Document = {"succeeded": progress.uncounted_succeeded, "failed": progress.uncounted_failed}
    document["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
    if progress.conditions:
        document["conditions"] = [_condition_document(condition) for condition in progress.conditions]
    return document


def new_condition(type: str, reason: str, message: str, now: str, status: str = "True") -> JobCondition:
    return JobCondition(
        type=type, status=status, reason=reason, message=message, last_probe_time=now, last_transition_time=now
    )


def true_condition(conditions: Iterable[JobCondition], type: str) -> JobCondition | None:
    for condition in conditions:
        if condition.type == type:
            return condition if condition.status == "True" else None
    return None


def finished_condition(job: Job) -> JobCondition | None:
    """The condition that says that a Job has ended; None if it has not."""
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return condition
    return None


def final_condition(end: JobCondition, now: str) -> JobCondition:
    """What an interim condition becomes when nothing is left to count."""
    final = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}.get(end.type, end.type)
    return new_condition(final, end.reason, end.message, now)


def _condition_document(condition: JobCondition) -> Document:
    fields = {
        "type": condition.type,
        "status": condition.status,
        "lastProbeTime": condition.last_probe_time,
        "lastTransitionTime": condition.last_transition_time,
        "reason": condition.reason,
        "message": condition.message,
    }
    return {name: value for name, value in fields.items() if value}
