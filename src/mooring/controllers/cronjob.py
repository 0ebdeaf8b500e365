"""The CronJob controller creates a Job at each time of a schedule.

Inputs: CronJobs and Jobs, from informers; the time. Outputs: Jobs created and deleted; the status of CronJobs.

1. The status lists the active Jobs and the last schedule time, so that a restart creates no Job twice.
2. A listed Job that the informer does not show is read from the API before it counts as missing.
3. A sync writes at most one status, and only if it changed.
4. Of several missed times only the last is made up for, and none before the starting deadline.
5. The name of a Job contains its time in minutes, so that it cannot be created twice.
6. The next sync is delayed by a tenth of a second, for clock skew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from enum import Enum
from zoneinfo import ZoneInfo

import msgspec

from mooring.api.cron_schedule import Schedule, ScheduleError, parse_schedule, zone_error, zone_of
from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import JOB, place_of
from mooring.api.views.meta import ApiObject, controller_of
from mooring.api.views.workloads import CronJob, Job
from mooring.api.well_known import CRON_JOB_SCHEDULED_AT
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.interface import Deletion, Propagation
from mooring.controllers.context import DONE, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import document_of, finished_condition, is_namespace_terminating, owner_reference
from mooring.controllers.owner_controller import OwnerController
from mooring.kit.clock import format_rfc3339, parse_rfc3339

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
class RecentSchedule:
    """The most recent schedule time."""

    earliest_s: float
    """Earlier times do not count."""
    at_s: float | None
    """The last time that was due."""
    missed: Missed


def most_recent(cron_job: CronJob, schedule: Schedule, now_s: float, *, uses_deadline: bool) -> RecentSchedule:
    """The last time that was due since the CronJob was created or ran. Raises `ImpossibleScheduleError`."""
    since = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    earliest_s = parse_rfc3339(since) if since is not None else 0.0
    deadline_s = cron_job.spec.starting_deadline_seconds
    if uses_deadline and deadline_s is not None:
        earliest_s = max(earliest_s, now_s - deadline_s)
    first_s = schedule.next_s(earliest_s)
    second_s = schedule.next_s(first_s) if first_s is not None else None
    if first_s is not None and now_s < first_s:
        return RecentSchedule(earliest_s, None, Missed.NONE)
    if first_s is not None and second_s is not None and now_s < second_s:
        return RecentSchedule(earliest_s, first_s, Missed.NONE)
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
    return RecentSchedule(earliest_s, last_s, Missed.MANY if count > MISSED_MANY else Missed.FEW)


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


# --- the controller -------------------------------------------------------------------------------------------


BY_CRON_JOB = "cron job"

_DOCS = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"


class _SyncError(Exception):
    """The sync ends early. Changes of the status are written, and the sync is retried."""


@dataclass(slots=True)
class _CronJobSync:
    """One sync of one CronJob."""

    cron_job: CronJob
    now_s: float
    active: list[Document] = field(default_factory=list)
    last_schedule: str | None = None
    last_success: str | None = None
    is_changed: bool = False

    def is_active(self, uid: str) -> bool:
        return any(job.get("uid") == uid for job in self.active)

    def drop(self, uid: str) -> None:
        self.active = [job for job in self.active if job.get("uid") != uid]
        self.is_changed = True


class CronJobController(OwnerController[CronJob]):
    """Keys are CronJobs."""

    name = "cronjob-controller"
    view = CronJob

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_cron_job_syncs
        self._recorder = context.recorder(self.name)
        self._jobs = context.informers.informer(Job)
        self._jobs.add_index(BY_CRON_JOB, _cron_job_of)
        self.handle_dependents(self._jobs)

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        cron_job = self._owners.lister.by_key(key)
        if cron_job is None:
            return DONE
        jobs = self._jobs.lister.by_index(BY_CRON_JOB, key)
        state = _new_sync(cron_job, self.clock.wall_s())
        failure = ""
        later_s: float | None = None
        try:
            await self._clean_up(state, jobs)
            await self._sync_jobs(state, jobs)
            later_s = await self._run(state)
        except (ClientError, _SyncError) as error:
            failure = str(error)
        try:
            await self._write_status(state)
        except ClientError as error:
            return Failed(str(error))
        if failure:
            return Failed(failure)
        return Later(later_s) if later_s is not None else DONE

    async def _clean_up(self, state: _CronJobSync, jobs: Iterable[Job]) -> None:
        """Delete the finished Jobs beyond the history limits."""
        spec = state.cron_job.spec
        ended = [(job, finished_condition(job)) for job in jobs]
        succeeded = [job for job, end in ended if end is not None and end.type == "Complete"]
        failed = [job for job, end in ended if end is not None and end.type == "Failed"]
        for job in excess_jobs(succeeded, spec.successful_jobs_history_limit):
            await self._delete_job(state, job.metadata.name, job.metadata.uid)
        for job in excess_jobs(failed, spec.failed_jobs_history_limit):
            await self._delete_job(state, job.metadata.name, job.metadata.uid)

    async def _sync_jobs(self, state: _CronJobSync, jobs: Iterable[Job]) -> None:
        """Update the status for Jobs that finished, appeared or are gone."""
        seen = set()
        for job in jobs:
            uid, name = job.metadata.uid, job.metadata.name
            seen.add(uid)
            end = finished_condition(job)
            if end is None:
                if not state.is_active(uid) and not await self._is_active_in_newest(state, uid):
                    message = f"Saw a job that the controller did not create or forgot: {name}"
                    self._recorder.event(state.cron_job, "Warning", "UnexpectedJob", message)
                continue
            if state.is_active(uid):
                state.drop(uid)
                message = f"Saw completed job: {name}, condition: {end.type}"
                self._recorder.event(state.cron_job, "Normal", "SawCompletedJob", message)
            if end.type == "Complete":
                _record_success(state, job)
        for job_reference in [*state.active]:
            if job_reference.get("uid") not in seen:
                await self._check_missing_job(state, job_reference)

    async def _is_active_in_newest(self, state: _CronJobSync, uid: str) -> bool:
        """Whether the newest status lists the Job. If so, the sync continues with that status."""
        fresh = decode_as(CronJob, await self.client.get(*place_of(state.cron_job)))
        newest = _new_sync(fresh, state.now_s)
        if not newest.is_active(uid):
            return False
        state.cron_job, state.active = fresh, newest.active
        state.last_schedule, state.last_success = newest.last_schedule, newest.last_success
        return True

    async def _check_missing_job(self, state: _CronJobSync, job: Document) -> None:
        try:
            await self.client.get(JOB, job.get("namespace", ""), job["name"])
        except NotFoundError:
            message = f"Active job went missing: {job['name']}"
            self._recorder.event(state.cron_job, "Normal", "MissingJob", message)
            state.drop(job.get("uid", ""))

    # --------------------------------------------------------------------------------------------- schedule

    async def _run(self, state: _CronJobSync) -> float | None:
        """Create a Job if one is due. Returns when to sync again, or None if only a change of the CronJob helps."""
        cron_job, now_s = state.cron_job, state.now_s
        if cron_job.metadata.deletion_timestamp is not None:
            return None
        schedule = self._schedule(cron_job)
        if schedule is None:
            return None
        try:
            recent = most_recent(cron_job, schedule, now_s, uses_deadline=True)
        except ImpossibleScheduleError as error:
            message = f"invalid schedule: {cron_job.spec.schedule} : {error}"
            self._recorder.event(cron_job, "Warning", "InvalidSchedule", message)
            return None
        if recent.at_s is not None:
            if recent.missed is Missed.MANY:
                message = (
                    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                )
                self._recorder.event(cron_job, "Warning", "TooManyMissedTimes", message)
            if not await self._start(state, recent.at_s):
                return None
        return next_sync_in_s(_with_last_schedule(state), schedule, now_s)

    def _schedule(self, cron_job: CronJob) -> Schedule | None:
        """The schedule. None, after an event, if it is suspended or invalid."""
        spec = cron_job.spec
        if spec.time_zone is not None:
            error = zone_error(spec.time_zone)
            if error:
                message = f'invalid timeZone: "{spec.time_zone}": {error}'
                self._recorder.event(cron_job, "Warning", "UnknownTimeZone", message)
                return None
        if spec.suspend:
            return None
        if "TZ" in spec.schedule:
            detail = f'CRON_TZ or TZ used in schedule "{spec.schedule}" is not officially supported'
            message = f"{detail}, see {_DOCS} for more details"
            self._recorder.event(cron_job, "Warning", "UnsupportedSchedule", message)
        try:
            return parse_schedule(schedule_text(cron_job))
        except ScheduleError as error:
            message = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._recorder.event(cron_job, "Warning", "UnparseableSchedule", message)
            return None

    async def _start(self, state: _CronJobSync, scheduled_s: float) -> bool:
        """Create the Job of a time unless a policy forbids it. Returns whether to sync again at the next time."""
        cron_job = state.cron_job
        if is_too_late(cron_job, scheduled_s, state.now_s):
            message = f"Missed scheduled time to start a job: {missed_text(scheduled_s)}"
            self._recorder.event(cron_job, "Warning", "MissSchedule", message)
            return True
        name = job_name(cron_job, scheduled_s)
        if state.last_schedule == format_rfc3339(scheduled_s) or any(job.get("name") == name for job in state.active):
            return True
        if state.active and cron_job.spec.concurrency_policy == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._recorder.event(cron_job, "Normal", "JobAlreadyActive", message)
            return True
        if cron_job.spec.concurrency_policy == "Replace":
            await self._stop_all(state)
        job = await self._create_job(state, scheduled_s)
        if job is None:
            return False
        state.active.append(_reference_to(job))
        state.last_schedule = format_rfc3339(scheduled_s)
        state.is_changed = True
        return True

    async def _stop_all(self, state: _CronJobSync) -> None:
        for job in [*state.active]:
            namespace, name = job.get("namespace", ""), job["name"]
            try:
                await self.client.get(JOB, namespace, name)
            except ClientError as error:
                self._recorder.event(state.cron_job, "Warning", "FailedGet", f"Get job: {error}")
                raise
            if not await self._delete_job(state, name, job.get("uid", "")):
                raise _SyncError(f"could not replace job {namespace}/{name}")

    async def _create_job(self, state: _CronJobSync, scheduled_s: float) -> Job | None:
        """Create the Job of a time. None if another owner has a Job of that name, or the status lists it."""
        cron_job = state.cron_job
        namespace = cron_job.metadata.namespace
        document = job_document(cron_job, scheduled_s)
        name = document["metadata"]["name"]
        try:
            job = decode_as(Job, await self.client.create(JOB, namespace, document))
        except AlreadyExistsError:
            # Perhaps created in an earlier sync whose status was not written.
            job = decode_as(Job, await self.client.get(JOB, namespace, name))
            owner = controller_of(job.metadata)
            is_own = owner is not None and owner.uid == cron_job.metadata.uid
            return job if is_own and not state.is_active(job.metadata.uid) else None
        except ClientError as error:
            if not is_namespace_terminating(error):
                self._recorder.event(cron_job, "Warning", "FailedCreate", f"Error creating job: {error}")
            raise
        self._recorder.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {name}")
        return job

    # ---------------------------------------------------------------------------------------------- writing

    async def _delete_job(self, state: _CronJobSync, name: str, uid: str) -> bool:
        namespace = state.cron_job.metadata.namespace
        try:
            await self.client.delete(JOB, namespace, name, Deletion(propagation=Propagation.BACKGROUND))
        except ClientError as error:
            self._recorder.event(state.cron_job, "Warning", "FailedDelete", f"Deleted job: {error}")
            return False
        state.drop(uid)
        self._recorder.event(state.cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name}")
        return True

    async def _write_status(self, state: _CronJobSync) -> None:
        if not state.is_changed:
            return
        document = document_of(state.cron_job)
        status: Document = {"active": state.active} if state.active else {}
        times = {"lastScheduleTime": state.last_schedule, "lastSuccessfulTime": state.last_success}
        document["status"] = status | {name: time for name, time in times.items() if time is not None}
        await self.client.update(*place_of(state.cron_job), document, subresource="status")

    # ----------------------------------------------------------------------------------------------- events

    def _on_owner_updated(self, old: CronJob, new: CronJob) -> None:
        if (old.spec.schedule, old.spec.time_zone) == (new.spec.schedule, new.spec.time_zone):
            self.queue.add(new.key)
            return
        try:
            has_zone = new.spec.time_zone is None or not zone_error(new.spec.time_zone)
            schedule = parse_schedule(schedule_text(new) if has_zone else new.spec.schedule)
        except ScheduleError:
            message = f"unparseable schedule for cronjob: {new.spec.schedule}"
            self._recorder.event(new, "Warning", "UnParseableCronJobSchedule", message)
            return
        self.queue.add_after(new.key, next_sync_in_s(new, schedule, self.clock.wall_s()))


def _cron_job_of(view: ApiObject) -> Iterable[str]:
    reference = controller_of(view.metadata)
    is_cron_jobs = reference is not None and reference.kind == CronJob.kind
    return (f"{view.metadata.namespace}/{reference.name}",) if is_cron_jobs and reference is not None else ()


def _new_sync(cron_job: CronJob, now_s: float) -> _CronJobSync:
    status: Document = document_of(cron_job).get("status") or {}
    return _CronJobSync(
        cron_job,
        now_s,
        active=[*(status.get("active") or [])],
        last_schedule=cron_job.status.last_schedule_time,
        last_success=cron_job.status.last_successful_time,
    )


def _with_last_schedule(state: _CronJobSync) -> CronJob:
    """The CronJob with the schedule time of this sync."""
    status = msgspec.structs.replace(state.cron_job.status, last_schedule_time=state.last_schedule)
    return msgspec.structs.replace(state.cron_job, status=status)


def _record_success(state: _CronJobSync, job: Job) -> None:
    ended = job.status.completion_time
    if ended is None:
        return
    if state.last_success is None or parse_rfc3339(ended) > parse_rfc3339(state.last_success):
        state.last_success = ended
        state.is_changed = True


def _reference_to(job: Job) -> Document:
    metadata = job.metadata
    return {
        "kind": job.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "apiVersion": job.api_version,
        "resourceVersion": metadata.resource_version,
    }
