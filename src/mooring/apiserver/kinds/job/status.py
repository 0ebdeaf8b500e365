"""Validation of a Job's status.

1. A Job may be managed by an external controller, so status changes are validated: a finished Job stays finished,
   counters never decrease, and a Job finishes only after the condition that announces it.
2. Most rules apply only to fields that changed, so that an invalid stored status can be repaired.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.job.policies import IndexesError, capitalised, count_indexes, first_overlap
from mooring.apiserver.validation.fields import FieldError, FieldErrorType, duplicate, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.schema_rules import struct_rules

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL = ("Failed", "Complete", "FailureTarget")


def is_condition_true(status: Document, kind: str, condition_type: str = "True") -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == condition_type
        for condition in status.get("conditions") or ()
    )


class _Change:
    """The old and the new status of a job."""

    def __init__(self, job: Document, old: Document) -> None:
        self.spec: Document = job["spec"]
        self.new: Document = job.get("status") or {}
        self.old: Document = old.get("status") or {}
        self.is_complete = is_condition_true(self.new, "Complete")
        self.is_failed = is_condition_true(self.new, "Failed")
        self.is_finished = self.is_complete or self.is_failed
        self.is_failing = is_condition_true(self.new, "FailureTarget")
        self.is_succeeding = is_condition_true(self.new, "SuccessCriteriaMet")
        self.completeness_changed = self.condition_changed("Complete")
        self.failure_changed = self.condition_changed("Failed")
        was_finished = is_condition_true(self.old, "Complete") or is_condition_true(self.old, "Failed")
        self.finish_changed = was_finished != self.is_finished
        self.is_indexed = self.spec.get("completionMode") == "Indexed"

    def changed(self, *fields: str) -> bool:
        return any((self.new.get(field) or None) != (self.old.get(field) or None) for field in fields)

    def condition_changed(self, kind: str) -> bool:
        return is_condition_true(self.new, kind) != is_condition_true(self.old, kind)


def validate_job_status(job: Document, old: Document) -> list[FieldError]:
    change = _Change(job, old)
    errors = struct_rules("batch", "JobStatus").validate(change.new, "status", *_COUNTS)
    errors += _validate_uncounted(change.new.get("uncountedTerminatedPods"), "status.uncountedTerminatedPods")
    errors += _validate_ending(change)
    errors += _validate_finished(change)
    errors += _validate_indexes(change)
    errors += _validate_pods(change)
    errors += _validate_success(change)
    errors += _validate_transition(change)
    return errors


def _validate_uncounted(uncounted: Document | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    if uncounted is None:
        return errors
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(field) or ()):
            here = f"{path}.{field}[{index}]"
            if not uid:
                errors.append(invalid(here, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(here, uid))
            seen.add(uid)
    return errors


def _validate_ending(change: _Change) -> list[FieldError]:
    """The conditions that end a job, and when it ended."""
    errors = []
    new = change.new
    started, completed = new.get("startTime"), new.get("completionTime")
    here = "status.completionTime"
    if change.is_complete and change.is_failed and (change.completeness_changed or change.failure_changed):
        errors.append(_conditions_error("cannot set Complete=True and Failed=true conditions"))
    failing_changed = change.completeness_changed or change.condition_changed("FailureTarget")
    if change.is_complete and change.is_failing and failing_changed:
        errors.append(_conditions_error("cannot set Complete=True and FailureTarget=true conditions"))
    completion_changed = change.completeness_changed or change.changed("completionTime")
    if completed is not None and not change.is_complete and completion_changed:
        detail = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid(here, completed, detail))
    if completed is None and change.is_complete and completion_changed:
        errors.append(required(here, "completionTime is required for Complete jobs"))
    is_backwards = started is not None and completed is not None and completed < started
    if is_backwards and change.changed("startTime", "completionTime"):
        errors.append(invalid(here, completed, "must be equal to or after `startTime`"))
    if change.is_failed and not change.is_failing and (change.failure_changed or change.changed("failedIndexes")):
        errors.append(_conditions_error("cannot set Failed=True condition without the FailureTarget=true condition"))
    success_changed = change.completeness_changed or change.condition_changed("SuccessCriteriaMet")
    if change.is_complete and not change.is_succeeding and success_changed:
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(_conditions_error(detail))
    return errors


def _validate_finished(change: _Change) -> list[FieldError]:
    """Field errors of a finished job."""
    if not change.is_finished:
        return []
    errors = []
    new = change.new
    if new.get("active", 0) > 0 and (change.finish_changed or change.changed("active")):
        errors.append(invalid("status.active", new["active"], "active>0 is invalid for finished job"))
    is_empty = change.spec.get("suspend") is True and change.spec.get("completions") == 0
    if new.get("startTime") is None and (change.finish_changed or change.changed("startTime")) and not is_empty:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = new.get("uncountedTerminatedPods") or {}
    if any(uncounted.values()) and (change.finish_changed or change.changed("uncountedTerminatedPods")):
        detail = "must be empty for finished job"
        errors.append(invalid("status.uncountedTerminatedPods", capitalised(uncounted), detail))
    return errors


def _validate_indexes(change: _Change) -> list[FieldError]:
    errors = []
    completions, per_index = change.spec.get("completions"), change.spec.get("backoffLimitPerIndex")
    completed, failed = change.new.get("completedIndexes", ""), change.new.get("failedIndexes")
    completed_changed = change.changed("completedIndexes")
    failed_changed = failed != change.old.get("failedIndexes")
    if completed_changed and completions is not None:
        errors += _validate_unreadable(completed, completions, "completedIndexes")
    if failed_changed and completions is not None and per_index is not None and failed is not None:
        errors += _validate_unreadable(failed, completions, "failedIndexes")
    if completed_changed and completed and not change.is_indexed:
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", completed, detail))
    if failed_changed and per_index is None and failed is not None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, detail))
    if (failed_changed or completed_changed) and completions is not None and failed is not None:
        overlap = first_overlap(completed, failed, completions)
        if overlap is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {overlap}"
            errors.append(invalid("status.failedIndexes", failed, detail))
    return errors


def _validate_unreadable(text: str, completions: int, field: str) -> list[FieldError]:
    try:
        count_indexes(text, completions)
    except IndexesError as error:
        return [invalid(f"status.{field}", text, f"error parsing {field}: {error}")]
    return []


def _validate_pods(change: _Change) -> list[FieldError]:
    errors = []
    terminating, ready = change.new.get("terminating"), change.new.get("ready")
    terminating_changed = change.finish_changed or change.changed("terminating")
    if terminating and terminating > 0 and change.is_finished and terminating_changed:
        errors.append(invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    if ready is not None and ready > change.new.get("active", 0) and change.changed("ready", "active"):
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _validate_success(change: _Change) -> list[FieldError]:
    errors = []
    if change.is_succeeding and change.is_failed:
        errors.append(_conditions_error("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if change.is_succeeding and change.is_failing:
        errors.append(_conditions_error("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if change.spec.get("successPolicy") is not None and not change.is_succeeding and change.is_complete:
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(_conditions_error(detail))
    return errors


def _validate_transition(change: _Change) -> list[FieldError]:
    """Field errors of reverted terminal states."""
    errors = []
    new, old = change.new, change.old
    for kind in _TERMINAL:
        if is_condition_true(old, kind) and not is_condition_true(new, kind):
            errors.append(_conditions_error(f"cannot disable the terminal {kind}=True condition"))
    if new.get("failed", 0) < old.get("failed", 0):
        errors.append(invalid("status.failed", new.get("failed", 0), "cannot decrease the failed counter"))
    # An indexed job that is as parallel as it has completions can be shrunk, and then counts less.
    can_shrink = change.is_indexed and change.spec.get("completions") == change.spec.get("parallelism")
    if not can_shrink and new.get("succeeded", 0) < old.get("succeeded", 0):
        errors.append(invalid("status.succeeded", new.get("succeeded", 0), "cannot decrease the succeeded counter"))
    completed, started = new.get("completionTime"), old.get("startTime")
    if completed is not None and old.get("completionTime") not in (None, completed):
        errors.append(invalid("status.completionTime", completed, IMMUTABLE))
    is_resuming = is_condition_true(old, "Suspended") and is_condition_true(new, "Suspended", "False")
    if started is not None and new.get("startTime") != started and not is_resuming and not change.spec.get("suspend"):
        detail = "field is immutable for unsuspended job once set"
        errors.append(invalid("status.startTime", new.get("startTime"), detail))
    had_succeeded = is_condition_true(old, "SuccessCriteriaMet")
    if had_succeeded and not change.is_succeeding:
        errors.append(_conditions_error("cannot disable the SuccessCriteriaMet=True condition"))
    if is_condition_true(old, "Complete") and not had_succeeded and change.is_succeeding:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(_conditions_error(detail))
    return errors


def _conditions_error(detail: str) -> FieldError:
    return FieldError(FieldErrorType.INVALID, "status.conditions", detail)
