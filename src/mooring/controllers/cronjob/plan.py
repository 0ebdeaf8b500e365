"""Schedule times of a CronJob, and the Job of a time. No I/O.

Inputs: a CronJob, its schedule, the time. Outputs: the time that is due; when to sync again; the Job; Jobs beyond
the history limits.

1. Of several missed times only the last is made up for, and none before the starting deadline.
2. The name of a Job contains its time in minutes, so that it cannot be created twice.
3. The next sync is delayed by a tenth of a second, for clock skew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from enum import Enum
from zoneinfo import ZoneInfo

from mooring.api.cron_schedule import Schedule, zone_of
from mooring.api.document import Document
from mooring.api.views.workloads import CronJob, Job
from mooring.api.well_known import CRON_JOB_SCHEDULED_AT
from mooring.controllers.documents import document_of, owner_reference
from mooring.kit.clock import parse_rfc3339

RESYNC_MARGIN_S = 0.1
MISSED_MANY = 100

_UTC = ZoneInfo("UTC")


class Missed(Enum):
    """How many schedule times were missed."""

    NONE = 0
    FEW = 1
    MANY = 2


class ImpossibleScheduleError(Exception):
    """The schedule is valid but has no times."""


@dataclass(frozen=True, slots=True)
class Recent:
    """The most recent schedule time."""

    earliest_s: float
    """Earlier times do not count."""
    at_s: float | None
    """The last time that was due."""
    missed: Missed


def most_recent(cron_job: CronJob, schedule: Schedule, now_s: float, *, uses_deadline: bool) -> Recent:
    """The last time that was due since the CronJob was created or ran. Raises `ImpossibleScheduleError`."""
    since = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    earliest_s = parse_rfc3339(since) if since is not None else 0.0
    deadline_s = cron_job.spec.starting_deadline_seconds
    if uses_deadline and deadline_s is not None:
        earliest_s = max(earliest_s, now_s - deadline_s)
    first_s = schedule.next_s(earliest_s)
    second_s = schedule.next_s(first_s) if first_s is not None else None
    if first_s is not None and now_s < first_s:
        return Recent(earliest_s, None, Missed.NONE)
    if first_s is not None and second_s is not None and now_s < second_s:
        return Recent(earliest_s, first_s, Missed.NONE)
    step_s = round(second_s - first_s) if first_s is not None and second_s is not None else 0
    if first_s is None or step_s < 1:
        raise ImpossibleScheduleError("time difference between two schedules is less than 1 second")
    # An estimate of the number of missed times. The last ones are counted singly: steps may differ in length.
    count = int(now_s - first_s) // step_s + 1
    last_s: float | None = None
    next_s = schedule.next_s(first_s + (count - 2) * step_s)
    while next_s is not None and next_s <= now_s:
        last_s = next_s
        next_s = schedule.next_s(next_s)
    return Recent(earliest_s, last_s, Missed.MANY if count > MISSED_MANY else Missed.FEW)


def next_sync_in_s(cron_job: CronJob, schedule: Schedule, now_s: float) -> float:
    """Seconds until the next schedule time."""
    try:
        recent = most_recent(cron_job, schedule, now_s, uses_deadline=False)
    except ImpossibleScheduleError:
        from_s = now_s
    else:
        from_s = recent.at_s if recent.at_s is not None else recent.earliest_s
        if recent.at_s is None and recent.missed is not Missed.NONE:
            from_s = now_s
    next_s = schedule.next_s(from_s)
    # A schedule without another time is synced again when it changes. A year stands for never.
    return (next_s if next_s is not None else now_s + 366 * 86_400) + RESYNC_MARGIN_S - now_s


def is_too_late(cron_job: CronJob, scheduled_s: float, now_s: float) -> bool:
    deadline_s = cron_job.spec.starting_deadline_seconds
    return deadline_s is not None and scheduled_s + deadline_s < now_s


def schedule_text(cron_job: CronJob) -> str:
    """The schedule with its time zone, which is valid."""
    spec = cron_job.spec
    return spec.schedule if spec.time_zone is None or "TZ" in spec.schedule else f"TZ={spec.time_zone} {spec.schedule}"


def job_name(cron_job: CronJob, scheduled_s: float) -> str:
    return f"{cron_job.metadata.name}-{int(scheduled_s) // 60}"


def job_document(cron_job: CronJob, scheduled_s: float) -> Document:
    """The Job of a schedule time."""
    template: Document = document_of(cron_job)["spec"].get("jobTemplate") or {}
    metadata: Document = template.get("metadata") or {}
    return {
        "apiVersion": Job.api_version,
        "kind": Job.kind,
        "metadata": {
            "name": job_name(cron_job, scheduled_s),
            "labels": metadata.get("labels") or {},
            "annotations": {
                **(metadata.get("annotations") or {}),
                CRON_JOB_SCHEDULED_AT: _stamp(scheduled_s, zone_of(cron_job.spec.time_zone or "")),
            },
            "ownerReferences": [owner_reference(cron_job)],
        },
        "spec": template.get("spec") or {},
    }


def missed_text(scheduled_s: float) -> str:
    """A time in the format of the event MissSchedule."""
    return format_datetime(datetime.fromtimestamp(scheduled_s, _UTC))


def excess_jobs(jobs: Sequence[Job], limit: int | None) -> list[Job]:
    """The oldest finished Jobs beyond the limit."""
    if limit is None or len(jobs) <= limit:
        return []
    by_age = sorted(
        jobs, key=lambda job: (job.status.start_time is None, job.status.start_time or "", job.metadata.name)
    )
    return by_age[: len(jobs) - limit]


def _stamp(wall_s: float, zone: ZoneInfo) -> str:
    text = datetime.fromtimestamp(int(wall_s), zone).isoformat()
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text
