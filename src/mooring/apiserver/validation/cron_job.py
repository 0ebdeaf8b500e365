"""What is wrong with a cron job.

Comes in   a cron job's spec, and what it was
Goes out   faults

 1. A time zone in the schedule itself is refused, unless the old schedule had one: they worked by accident for years.
"""

from __future__ import annotations

import re

from mooring.api.cron_schedule import ScheduleError, parse_schedule, zone_fault
from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required
from mooring.apiserver.validation.job import job_spec_faults
from mooring.apiserver.validation.workloads import nonnegative_faults, selector_value

NAME_BYTES_MAX = 52
"""A job's name is at most 63 bytes long, and eleven of them will be the time."""

_POLICIES = ("Allow", "Forbid", "Replace")
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def cron_job_name_faults(name: str) -> list[Fault]:
    if len(name.encode()) <= NAME_BYTES_MAX:
        return []
    return [invalid("metadata.name", name, f"must be no more than {NAME_BYTES_MAX} characters")]


def cron_job_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults = _schedule_faults(spec, old, f"{path}.schedule")
    faults += nonnegative_faults(spec.get("startingDeadlineSeconds"), f"{path}.startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (old is None or old.get("timeZone") != zone):
        faults += _zone_faults(zone, f"{path}.timeZone")
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        faults.append(required(f"{path}.concurrencyPolicy"))
    elif policy not in _POLICIES:
        faults.append(not_supported(f"{path}.concurrencyPolicy", policy, _POLICIES))
    faults += _job_template_faults(spec["jobTemplate"], old, f"{path}.jobTemplate.spec")
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        faults += nonnegative_faults(spec.get(field), f"{path}.{field}")
    return faults


def _schedule_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    schedule = spec.get("schedule", "")
    if not schedule:
        return [required(path)]
    faults = []
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        faults.append(invalid(path, schedule, str(error)))
    if "TZ" not in schedule:
        return faults
    if old is None or "TZ" not in old.get("schedule", ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        faults.append(invalid(path, schedule, detail))
    elif spec.get("timeZone") is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        faults.append(invalid(path, schedule, detail))
    return faults


def _zone_faults(zone: str, path: str) -> list[Fault]:
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            return [invalid(path, zone, f"unknown time zone {zone}")]
    faults = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        faults.append(invalid(path, zone, detail))
    if fault := zone_fault(zone):
        faults.append(invalid(path, zone, fault))
    return faults


def _job_template_faults(template: Document, old: Document | None, path: str) -> list[Fault]:
    spec = template["spec"]
    faults = job_spec_faults(spec, old["jobTemplate"]["spec"] if old is not None else None, path)
    if spec.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        faults.append(invalid(f"{path}.selector", selector_value(spec["selector"]), detail))
    if spec.get("manualSelector"):
        faults.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    return faults
