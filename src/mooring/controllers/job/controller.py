"""The Job controller runs pods until enough of them have succeeded or too many have failed.

Inputs: Jobs and pods, from informers. Outputs: pods created, deleted, adopted and released; the status of Jobs.

1. Pod events are batched for `BATCH_S`. A change of the Job's spec is synced at once.
2. Pods are created and deleted only while the expectations are met. A finalizer that was removed is not removed or
   counted again (`_releasing`).
3. A Job is not synced before the informer shows the last write of its status. A pod that was just counted has lost
   its finalizer and is not in the old counts, so an additional pod would be created.
4. The record of failures is in memory: after a restart the backoff starts again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import JOB, place_of
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Job, JobCondition
from mooring.api.well_known import JOB_TRACKING_FINALIZER
from mooring.client.errors import ClientError
from mooring.client.workqueue import WorkQueue
from mooring.controllers.context import DONE, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import decode_document, document_of, finished_condition
from mooring.controllers.expectations import RESYNC_S, WriteExpectations
from mooring.controllers.job.failures import NO_FAILURES, FailureRecord, next_record
from mooring.controllers.job.plan import (
    CreatePods,
    PodSummary,
    RemovePods,
    WaitForBackoff,
    completion_of,
    deadline_in_s,
    end_of,
    has_finalizer,
    plan_pods,
    summarize_pods,
)
from mooring.controllers.job.pods import JobPods, OrphanPodReleaser, is_managed_externally
from mooring.controllers.job.status import Progress, finish, progress_document, progress_of, track
from mooring.controllers.owner_controller import AdoptionError, PodOwnerController
from mooring.kit.backoff import Backoff
from mooring.kit.clock import format_rfc3339, parse_rfc3339
from mooring.kit.tasks import TaskGroup

BATCH_S = 1.0
API_BACKOFF = Backoff(initial_s=1.0, max_s=60.0)


@dataclass(slots=True)
class _JobSync:
    """One sync of one Job."""

    summary: PodSummary
    progress: Progress
    document: Document
    record: FailureRecord
    now: str
    now_s: float
    is_changed: bool = False


class JobController(PodOwnerController[Job]):
    """Keys are Jobs."""

    name: ClassVar[str] = "job-controller"
    view = Job

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_job_syncs
        self.queue = WorkQueue(self.name, context.clock, context.entropy.fork("queue of jobs"), backoff=API_BACKOFF)
        self._releasing: dict[str, set[str]] = {}
        """Uids of pods whose finalizer was removed and that the informer still shows with it, by key of the Job."""
        self._failure_records: dict[str, FailureRecord] = {}
        self._write_expectations = WriteExpectations(context.client, JOB, Job, self._owners)
        self._job_pods = JobPods(context.client, self._pod_control, self._expectations)
        orphan_entropy = context.entropy.fork("queue of orphaned pods of jobs")
        self._orphans = OrphanPodReleaser(
            WorkQueue("job orphan pods", context.clock, orphan_entropy, backoff=API_BACKOFF),
            self._owners.lister,
            self._pods.lister,
            self._job_pods,
        )

    def selector(self, owner: Job) -> LabelMatcher:
        return compile_selector(owner.spec.selector)

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        self._orphans.start(group, self.workers)

    def stop(self) -> None:
        super().stop()
        self._orphans.stop()

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        job = self._owners.lister.by_key(key)
        if job is None:
            self._forget(key)
            return DONE
        if is_managed_externally(job):
            return DONE
        if finished_condition(job) is not None:
            self._failure_records.pop(key, None)
            return DONE
        if job.spec.completion_mode not in (None, "NonIndexed", "Indexed"):
            message = "Skipped Job sync because completion mode is unknown"
            self._recorder.event(job, "Warning", "UnknownCompletionMode", message)
            return DONE
        try:
            if not await self._write_expectations.are_met(key):
                return Later(BATCH_S)
            failure = await self._sync_job(key, job)
        except (AdoptionError, ClientError, LabelSelectorError) as error:
            return Failed(str(error))
        return Failed(str(failure)) if failure is not None else DONE

    async def _sync_job(self, key: str, job: Job) -> Exception | None:
        """Sync a Job. Raises errors that end the sync. Returns an error of pods, to be retried."""
        are_expectations_met = self._expectations.are_met(key)
        if not are_expectations_met:
            self.queue.add_after(key, RESYNC_S)
        pods = await self._claim_pods(job)
        state = self._new_sync(key, job, pods)
        end = end_of(state.summary, state.progress.start_time, state.now, state.now_s)
        failure: Exception | None = None
        if end is not None:
            deleted, ready, failure = await self._job_pods.delete_active(job, state.summary.active_pods)
            if deleted != state.summary.active or not are_expectations_met:
                end = None  # some pods may not be in the informer yet, so that not all were counted
            _subtract_deleted(state.summary, deleted, ready)
        else:
            self._enqueue_at_deadline(key, job, state)
            is_managed = are_expectations_met and job.metadata.deletion_timestamp is None
            if is_managed:
                failure = await self._manage(key, state)
            end = completion_of(state.summary, state.now)
            if end is None and is_managed:
                self._set_suspended_condition(job, state)
        self._set_counts(state)
        await self._count(key, state, end)
        return failure

    async def _claim_pods(self, job: Job) -> list[Pod]:
        pods = await self.claim_pods(job, self.selector(job), finalizers=(JOB_TRACKING_FINALIZER,))
        return [pod if controller_of(pod.metadata) is not None else _tracked(pod) for pod in pods]

    def _new_sync(self, key: str, job: Job, pods: list[Pod]) -> _JobSync:
        now_s = self.clock.wall_s()
        summary = summarize_pods(job, pods, frozenset(self._releasing.get(key, ())))
        progress = progress_of(job.status)
        now = format_rfc3339(now_s)
        if progress.start_time is None and not job.spec.suspend:
            progress.start_time = now
        record = next_record(self._failure_records.get(key, NO_FAILURES), summary.new_succeeded, summary.new_failed)
        return _JobSync(summary, progress, document_of(job), record, now, now_s)

    def _enqueue_at_deadline(self, key: str, job: Job, state: _JobSync) -> None:
        left_s = deadline_in_s(job, state.progress.start_time, state.now_s)
        if left_s is not None:
            self.queue.add_after(key, left_s)

    async def _manage(self, key: str, state: _JobSync) -> Exception | None:
        """Create or delete pods. Returns the first error."""
        summary = state.summary
        match plan_pods(summary, state.record, state.now_s):
            case RemovePods(pods):
                deleted, ready, error = await self._job_pods.delete_unneeded(summary.job, pods)
                _subtract_deleted(summary, deleted, ready)
                return error
            case CreatePods() as planned:
                created, error = await self._job_pods.create(summary.job, planned, summary.delayed)
                summary.active += created
                return error
            case WaitForBackoff(after_s):
                self.queue.add_after(key, max(after_s, BATCH_S))
        return None

    def _set_suspended_condition(self, job: Job, state: _JobSync) -> None:
        progress = state.progress
        if job.spec.suspend:
            if progress.set_condition("Suspended", "True", "JobSuspended", "Job suspended", state.now):
                state.is_changed = True
                self._recorder.event(job, "Normal", "Suspended", "Job suspended")
                progress.start_time = None
        elif progress.set_condition("Suspended", "False", "JobResumed", "Job resumed", state.now):
            state.is_changed = True
            self._recorder.event(job, "Normal", "Resumed", "Job resumed")
            progress.start_time = state.now  # the deadline excludes the time in which the Job was suspended

    def _set_counts(self, state: _JobSync) -> None:
        summary, progress = state.summary, state.progress
        counts = (summary.active, summary.ready, summary.terminating)
        if counts != (progress.active, progress.ready, progress.terminating):
            state.is_changed = True
        progress.active, progress.ready, progress.terminating = counts

    async def _count(self, key: str, state: _JobSync, end: JobCondition | None) -> None:
        """List the pods to be counted in the status, remove their finalizers, then count them."""
        summary, progress = state.summary, state.progress
        tracking = track(summary, end, progress)
        if state.is_changed or tracking.is_changed:
            await self._write(state)
            self._failure_records[key] = state.record
        is_pending = False
        error: Exception | None = None
        if tracking.to_release:
            self._releasing.setdefault(key, set()).update(pod.metadata.uid for pod in tracking.to_release)
            released, error = await self._job_pods.release_all(tracking.to_release)
            released_uids = {pod.metadata.uid for pod in released}
            self._releasing[key] -= {pod.metadata.uid for pod in tracking.to_release} - released_uids
            tracking.uids_with_finalizer -= released_uids
        if progress.count_released(tracking.uids_with_finalizer):
            is_pending = True
        final = None
        if error is None and not tracking.is_full:
            final = finish(end, progress, summary.terminating, state.now)
        if is_pending or final is not None:
            await self._write(state)
        if error is not None:
            raise error
        if final is not None:
            self._record_end(summary.job, progress, final)

    async def _write(self, state: _JobSync) -> None:
        job = state.summary.job
        state.document["status"] = progress_document(state.progress)
        answer = await self.client.update(*place_of(job), state.document, subresource="status")
        self._write_expectations.answered(job.key, answer)
        state.document = decode_document(answer)

    def _record_end(self, job: Job, progress: Progress, final: JobCondition) -> None:
        if final.type != "Complete":
            self._recorder.event(job, "Warning", final.reason, final.message)
            return
        if job.spec.completions is not None and progress.succeeded > job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._recorder.event(job, "Warning", "TooManySucceededPods", message)
        self._recorder.event(job, "Normal", "Completed", "Job completed")

    def _forget(self, key: str) -> None:
        self._expectations.forget(key)
        self._write_expectations.forget(key)
        self._releasing.pop(key, None)
        self._failure_records.pop(key, None)

    # ----------------------------------------------------------------------------------------------- events

    def enqueue(self, owner: Job) -> None:
        self.queue.add_after(owner.key, BATCH_S)

    def _on_owner_updated(self, old: Job, new: Job) -> None:
        if finished_condition(new) is not None:
            self._orphans.add_pods_of(new)
            self.queue.add_after(new.key, BATCH_S)
            return
        is_spec_changed = new.metadata.generation != old.metadata.generation
        self.queue.add_after(new.key, 0.0 if is_spec_changed else BATCH_S)
        deadline_s = new.spec.active_deadline_seconds
        start = new.status.start_time
        if deadline_s is not None and start is not None and deadline_s != old.spec.active_deadline_seconds:
            self.queue.add_after(new.key, deadline_s - (self.clock.wall_s() - parse_rfc3339(start)))

    def _on_owner_deleted(self, owner: Job) -> None:
        self._forget(owner.key)
        self._orphans.add_pods_of(owner)
        super()._on_owner_deleted(owner)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        super()._on_pod_updated(old, new)
        is_orphan = controller_of(new.metadata) is None and new.metadata.deletion_timestamp is None
        if is_orphan and has_finalizer(new):
            self.on_orphan(new)

    def on_pod_deleted(self, pod: Pod, *, is_gone: bool) -> None:
        job = self.find_owner(pod.metadata.namespace, controller_of(pod.metadata))
        if job is None or finished_condition(job) is not None:
            if has_finalizer(pod) and not is_gone:
                self._orphans.add_pod(pod)
            return
        self._expectations.deletion_seen(job.key, pod.key)
        if is_gone or not has_finalizer(pod):
            self._release_seen(job.key, pod)
        self.enqueue(job)

    def on_owned_pod_updated(self, owner: Job, old: Pod, new: Pod) -> None:
        self.on_pod_released(owner, new)

    def on_pod_released(self, former: Job, pod: Pod) -> None:
        if not has_finalizer(pod):
            self._release_seen(former.key, pod)
        self.enqueue(former)

    def on_orphan(self, pod: Pod) -> None:
        if has_finalizer(pod):
            self._orphans.add_pod(pod)
        self.enqueue_selecting(pod.metadata, BATCH_S)

    def _release_seen(self, key: str, pod: Pod) -> None:
        releasing = self._releasing.get(key)
        if releasing is not None:
            releasing.discard(pod.metadata.uid)


def _subtract_deleted(summary: PodSummary, deleted: int, ready: int) -> None:
    summary.active -= deleted
    summary.terminating += deleted
    summary.ready -= ready


def _tracked(pod: Pod) -> Pod:
    """A pod that was adopted in this sync: the informer does not show its finalizer yet."""
    if has_finalizer(pod):
        return pod
    finalizers = (*pod.metadata.finalizers, JOB_TRACKING_FINALIZER)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, finalizers=finalizers))
