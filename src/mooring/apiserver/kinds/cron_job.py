"""CronJob (batch/v1).

1. A time zone inside the schedule is invalid, unless the stored schedule has one.
"""

from __future__ import annotations

import re

from mooring.api.cron_schedule import ScheduleError, parse_schedule, zone_error
from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.job.spec import validate_job_spec
from mooring.apiserver.kinds.job.strategy import default_job_template, job_warnings
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    IMAGES_COLUMN,
    SELECTOR_COLUMN,
    WorkloadStrategy,
    name_spec_status,
    pod_name_warnings,
    selector_value,
)
from mooring.apiserver.strategy import StatusStrategy
from mooring.apiserver.tables import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cell,
    KindTable,
    age,
    boolean,
    column,
    containers_and_images,
    integer,
    selector_text,
    since,
    template_spec,
)
from mooring.apiserver.validation.fields import FieldError, invalid, not_supported, required
from mooring.apiserver.validation.schema_rules import struct_rules

SUCCEEDED_JOBS_KEPT = 3
FAILED_JOBS_KEPT = 1

NAME_BYTES_MAX = 52
"""The name of a Job has at most 63 bytes, and eleven of them are the time."""

_SPEC = struct_rules("batch", "CronJobSpec")
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch

_JOB = "spec.jobTemplate.spec"
_ZONE_IN_SCHEDULE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


# --- validation --------------------------------------------------------------------------------------------------


def validate_cron_job_name(name: str) -> list[FieldError]:
    if len(name.encode()) <= NAME_BYTES_MAX:
        return []
    return [invalid("metadata.name", name, f"must be no more than {NAME_BYTES_MAX} characters")]


def validate_cron_job(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    errors = _validate_schedule(spec, old, f"{path}.schedule")
    errors += _SPEC.validate(spec, path, "startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (old is None or old.get("timeZone") != zone):
        errors += _validate_zone(zone, f"{path}.timeZone")
    errors += _SPEC.validate(spec, path, "concurrencyPolicy")
    errors += _validate_job_template(spec["jobTemplate"], old, f"{path}.jobTemplate.spec")
    return errors + _SPEC.validate(spec, path, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def _validate_schedule(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    schedule = spec.get("schedule", "")
    if not schedule:
        return [required(path)]
    errors = []
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        errors.append(invalid(path, schedule, str(error)))
    if "TZ" not in schedule:
        return errors
    if old is None or "TZ" not in old.get("schedule", ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(path, schedule, detail))
    elif spec.get("timeZone") is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid(path, schedule, detail))
    return errors


def _validate_zone(zone: str, path: str) -> list[FieldError]:
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            return [invalid(path, zone, f"unknown time zone {zone}")]
    errors = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid(path, zone, detail))
    if field_error := zone_error(zone):
        errors.append(invalid(path, zone, field_error))
    return errors


def _validate_job_template(template: Document, old: Document | None, path: str) -> list[FieldError]:
    spec = template["spec"]
    errors = validate_job_spec(spec, old["jobTemplate"]["spec"] if old is not None else None, path)
    if spec.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        errors.append(invalid(f"{path}.selector", selector_value(spec["selector"]), detail))
    if spec.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    return errors


# --- table -------------------------------------------------------------------------------------------------------


def _cron_job_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    suspend, last = spec.get("suspend"), status.get("lastScheduleTime")
    job_spec = template_spec(spec.get("jobTemplate")) or {}
    return [
        name,
        spec.get("schedule", ""),
        spec["timeZone"] if spec.get("timeZone") is not None else NONE,
        str(suspend) if suspend is not None else UNSET,
        len(status.get("active") or ()),
        since(last, now_s) if last else NONE,
        age(obj, now_s),
        *containers_and_images(template_spec(job_spec.get("template"))),
        selector_text(job_spec.get("selector")),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class CronJobStatusStrategy(StatusStrategy):
    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """No rules: only the registry validates the metadata."""
        return []


class CronJobStrategy(WorkloadStrategy):
    counts_changes_of_meaning = True
    table = KindTable(
        (
            NAME,
            column("Schedule", "When its jobs are made."),
            column("Timezone", "In which zone the schedule is read."),
            boolean("Suspend", "Whether it makes none for now."),
            integer("Active", "How many of its jobs run."),
            column("Last Schedule", "How long ago the last job was due."),
            AGE,
            CONTAINERS_COLUMN,
            IMAGES_COLUMN,
            SELECTOR_COLUMN,
        ),
        _cron_job_cells,
    )

    status_strategy = CronJobStatusStrategy

    def template(self, obj: Document) -> Document:
        template: Document = obj["spec"]["jobTemplate"]["spec"]["template"]
        return template

    def default(self, obj: Document) -> None:
        spec = obj["spec"]
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", SUCCEEDED_JOBS_KEPT)
        spec.setdefault("failedJobsHistoryLimit", FAILED_JOBS_KEPT)
        default_job_template(spec["jobTemplate"]["spec"])

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_cron_job(obj["spec"], None, "spec") + validate_cron_job_name(obj["metadata"].get("name", ""))

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_cron_job(obj["spec"], old["spec"], "spec")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        warnings = pod_name_warnings(obj["metadata"]["name"])
        return warnings + job_warnings(obj["spec"]["jobTemplate"]["spec"], _JOB)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        warnings = []
        if obj["metadata"].get("generation") != old["metadata"].get("generation"):
            warnings += job_warnings(obj["spec"]["jobTemplate"]["spec"], _JOB)
        if "TZ" in obj["spec"].get("schedule", ""):
            warnings.append(_ZONE_IN_SCHEDULE)
        return warnings


STRATEGY = CronJobStrategy
