"""The Job controller: pods that run until enough of them have succeeded, or too many have failed.

Comes in   Jobs and pods, from informers
Goes out   pods created, deleted, adopted and released; the status of Jobs

 1. What pods tell is gathered for `BATCH_S`: a Job of a thousand pods is not looked at a thousand times a second. A
    change of the Job itself is looked state, at once.
 2. Pods are created and deleted only when the informer shows what was asked for last (`expectations`), and a finalizer
    that was taken away is not taken away, or counted, again (`_releasing`).
 3. A Job is not looked at before the last write to its status was seen (`own_writes`): who was counted a moment ago has
    failed_indexes its finalizer and is not in the old counts either, so that a pod too many would be made in its place.
 4. The record of failures is kept in memory: after a restart of the controller the waiting begins anew.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import JOB
from mooring.api.labels import compile_selector
from mooring.api.ownership import controller_of
from mooring.api.views.batch import Job, JobCondition
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.client.cache.lister import BY_NAMESPACE, namespace_of
from mooring.client.errors import ClientError
from mooring.client.workqueue import WorkQueue
from mooring.controllers.adoption import AdoptionError, claim_objects
from mooring.controllers.conditions import finished_condition
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import document_of
from mooring.controllers.expectations import RESYNC_S, Expectations, WriteExpectations
from mooring.controllers.job.failures import NO_FAILURES, FailureRecord, next_record
from mooring.controllers.job.plan import (
    TRACKING_FINALIZER,
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
from mooring.controllers.pod_control import PodControl
from mooring.controllers.pods import BY_CONTROLLER, add_controller_index, orphan_key
from mooring.kit.backoff import Backoff
from mooring.kit.clock import format_rfc3339, parse_rfc3339
from mooring.kit.tasks import TaskGroup

BATCH_S = 1.0
API_BACKOFF = Backoff(initial_s=1.0, max_s=60.0)

_decode = msgspec.json.Decoder(dict[str, object]).decode

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _SyncState:
    """One look at one Job."""

    summary: PodSummary
    progress: Progress
    document: Document
    record: FailureRecord
    now: str
    now_s: float
    is_changed: bool = False


class JobController(Controller):
    name = "job-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_job_syncs
        self.queue = WorkQueue(self.name, context.clock, context.entropy.fork("queue of jobs"), backoff=API_BACKOFF)
        self._recorder = context.recorder(self.name)
        self._releasing: dict[str, set[str]] = {}
        self._records: dict[str, FailureRecord] = {}
        self._jobs = context.informers.informer(Job)
        self._write_expectations = WriteExpectations(context.client, JOB, Job, self._jobs)
        self._pods = context.informers.informer(Pod)
        self._expectations = Expectations(context.clock, self._pods.has_seen)
        pod_control = PodControl(context.client, self._recorder, context.clock)
        self._job_pods = JobPods(context.client, pod_control, self._expectations)
        orphan_entropy = context.entropy.fork("queue of orphaned pods of jobs")
        self._orphans = OrphanPodReleaser(
            WorkQueue("job orphan pods", context.clock, orphan_entropy, backoff=API_BACKOFF),
            self._jobs.lister,
            self._pods.lister,
            self._job_pods,
        )
        self._add_handlers()

    def _add_handlers(self) -> None:
        self._jobs.add_index(BY_NAMESPACE, namespace_of)
        add_controller_index(self._pods)
        self._jobs.add_handler(
            self.name, on_add=self._on_job_added, on_update=self._on_job_updated, on_delete=self._on_job_deleted
        )
        self._pods.add_handler(
            self.name, on_add=self._on_pod_added, on_update=self._on_pod_updated, on_delete=self._on_pod_deleted
        )

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        self._orphans.start(group, self.workers)

    def stop(self) -> None:
        super().stop()
        self._orphans.stop()

    # ---------------------------------------------------------------------------------------------- one key

    async def sync(self, key: str) -> Outcome:
        job = self._jobs.lister.by_key(key)
        if job is None:
            self._forget(key)
            return DONE
        if is_managed_externally(job):
            return DONE
        if finished_condition(job) is not None:
            self._records.pop(key, None)
            return DONE
        if job.spec.completion_mode not in (None, "NonIndexed", "Indexed"):
            message = "Skipped Job sync because completion mode is unknown"
            self._recorder.event(job, "Warning", "UnknownCompletionMode", message)
            return DONE
        try:
            if not await self._write_expectations.are_written_seen(key):
                return Later(BATCH_S)
            failure = await self._sync_job(key, job)
        except (AdoptionError, ClientError, LabelSelectorError) as error:
            return Failed(str(error))
        return Failed(str(failure)) if failure is not None else DONE

    async def _sync_job(self, key: str, job: Job) -> Exception | None:
        """One round. Raises what stops it; returns what went wrong with pods, to be tried again."""
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
                end = None  # some pods may not be known yet, so not all could be counted
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
        selector = compile_selector(job.spec.selector)
        uid = job.metadata.uid
        orphans = self._pods.lister.by_index(BY_CONTROLLER, orphan_key(job.metadata.namespace))
        candidates = [*self._pods.lister.by_index(BY_CONTROLLER, uid), *orphans]
        pods = await claim_objects(
            self.client,
            job,
            candidates,
            lambda pod: selector.matches(pod.metadata.labels),
            finalizers=(TRACKING_FINALIZER,),
        )
        return [pod if controller_of(pod.metadata) is not None else _tracked(pod) for pod in pods]

    def _new_sync(self, key: str, job: Job, pods: list[Pod]) -> _SyncState:
        now_s = self.clock.wall_s()
        summary = summarize_pods(job, pods, frozenset(self._releasing.get(key, ())))
        progress = progress_of(job.status)
        now = format_rfc3339(now_s)
        if progress.start_time is None and not job.spec.suspend:
            progress.start_time = now
        record = next_record(self._records.get(key, NO_FAILURES), summary.new_succeeded, summary.new_failed)
        return _SyncState(summary, progress, document_of(job), record, now, now_s)

    def _enqueue_at_deadline(self, key: str, job: Job, state: _SyncState) -> None:
        left_s = deadline_in_s(job, state.progress.start_time, state.now_s)
        if left_s is not None:
            self.queue.add_after(key, left_s)

    async def _manage(self, key: str, state: _SyncState) -> Exception | None:
        """Creates or deletes pods; the first error."""
        summary = state.summary
        match plan_pods(summary, state.record, state.now_s):
            case RemovePods(pods):
                deleted, ready, error = await self._job_pods.delete_unneeded(summary.job, pods)
                _subtract_deleted(summary, deleted, ready)
                return error
            case CreatePods() as wanted:
                created, error = await self._job_pods.create(summary.job, wanted, summary.delayed)
                summary.active += created
                return error
            case WaitForBackoff(after_s):
                self.queue.add_after(key, max(after_s, BATCH_S))
        return None

    def _set_suspended_condition(self, job: Job, state: _SyncState) -> None:
        progress = state.progress
        if job.spec.suspend:
            if progress.set_condition("Suspended", "True", "JobSuspended", "Job suspended", state.now):
                state.is_changed = True
                self._recorder.event(job, "Normal", "Suspended", "Job suspended")
                progress.start_time = None
        elif progress.set_condition("Suspended", "False", "JobResumed", "Job resumed", state.now):
            state.is_changed = True
            self._recorder.event(job, "Normal", "Resumed", "Job resumed")
            progress.start_time = state.now  # a deadline counts the time in which it was not suspended

    def _set_counts(self, state: _SyncState) -> None:
        summary, progress = state.summary, state.progress
        counts = (summary.active, summary.ready, summary.terminating)
        if counts != (progress.active, progress.ready, progress.terminating):
            state.is_changed = True
        progress.active, progress.ready, progress.terminating = counts

    async def _count(self, key: str, state: _SyncState, end: JobCondition | None) -> None:
        """Write down who is counted, release them, and write down the counts."""
        summary, progress = state.summary, state.progress
        tracking = track(summary, end, progress)
        if state.is_changed or tracking.is_changed:
            await self._write(state)
            self._records[key] = state.record
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

    async def _write(self, state: _SyncState) -> None:
        job, metadata = state.summary.job, state.summary.job.metadata
        state.document["status"] = progress_document(state.progress)
        answer = await self.client.update(JOB, metadata.namespace, metadata.name, state.document, subresource="status")
        self._write_expectations.answered(job.key, answer)
        state.document = _decode(answer)

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
        self._records.pop(key, None)

    # ------------------------------------------------------------------------------------------ what is heard

    def _on_job_added(self, job: Job, is_initial: bool) -> None:
        self.queue.add(job.key)

    def _on_job_updated(self, old: Job, new: Job) -> None:
        if finished_condition(new) is not None:
            self._orphans.add_pods_of(new)
            self.queue.add_after(new.key, BATCH_S)
            return
        is_asked_otherwise = new.metadata.generation != old.metadata.generation
        self.queue.add_after(new.key, 0.0 if is_asked_otherwise else BATCH_S)
        deadline_s = new.spec.active_deadline_seconds
        start = new.status.start_time
        if deadline_s is not None and start is not None and deadline_s != old.spec.active_deadline_seconds:
            self.queue.add_after(new.key, deadline_s - (self.clock.wall_s() - parse_rfc3339(start)))

    def _on_job_deleted(self, job: Job) -> None:
        self._forget(job.key)
        self._orphans.add_pods_of(job)
        self.queue.add(job.key)

    def _on_pod_added(self, pod: Pod, is_initial: bool) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._on_pod_going(pod, is_gone=False)
            return
        reference = controller_of(pod.metadata)
        if reference is not None:
            job = self._job(pod.metadata.namespace, reference)
            if job is not None:
                self._expectations.creation_seen(job.key)
                self.queue.add_after(job.key, BATCH_S)
            return
        self._on_orphan(pod)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        if new.metadata.deletion_timestamp is not None:
            self._on_pod_going(new, is_gone=False)
            return
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        is_owner_changed = reference != reference_before
        if is_owner_changed and reference_before is not None:
            self._on_owned_pod_changed(new, reference_before)
        if reference is not None:
            self._on_owned_pod_changed(new, reference)
        elif is_owner_changed or new.metadata.labels != old.metadata.labels or has_finalizer(new):
            self._on_orphan(new)

    def _on_pod_deleted(self, pod: Pod) -> None:
        self._on_pod_going(pod, is_gone=True)

    def _on_pod_going(self, pod: Pod, is_gone: bool) -> None:
        reference = controller_of(pod.metadata)
        job = self._job(pod.metadata.namespace, reference) if reference is not None else None
        if job is None or finished_condition(job) is not None:
            if has_finalizer(pod) and not is_gone:
                self._orphans.add_pod(pod)
            return
        self._expectations.deletion_seen(job.key, pod.key)
        if is_gone or not has_finalizer(pod):
            self._release_seen(job.key, pod)
        self.queue.add_after(job.key, BATCH_S)

    def _on_owned_pod_changed(self, pod: Pod, reference: OwnerReference) -> None:
        job = self._job(pod.metadata.namespace, reference)
        if job is None:
            return
        if not has_finalizer(pod):
            self._release_seen(job.key, pod)
        self.queue.add_after(job.key, BATCH_S)

    def _on_orphan(self, pod: Pod) -> None:
        if has_finalizer(pod):
            self._orphans.add_pod(pod)
        for job in self._jobs.lister.list(pod.metadata.namespace):
            try:
                selector = compile_selector(job.spec.selector)
            except LabelSelectorError:
                continue
            if not selector.matches_everything and selector.matches(pod.metadata.labels):
                self.queue.add_after(job.key, BATCH_S)

    def _release_seen(self, key: str, pod: Pod) -> None:
        releasing = self._releasing.get(key)
        if releasing is not None:
            releasing.discard(pod.metadata.uid)

    def _job(self, namespace: str, reference: OwnerReference) -> Job | None:
        if reference.kind != Job.kind:
            return None
        job = self._jobs.lister.get(namespace, reference.name)
        return job if job is not None and job.metadata.uid == reference.uid else None


def _subtract_deleted(summary: PodSummary, deleted: int, ready: int) -> None:
    summary.active -= deleted
    summary.terminating += deleted
    summary.ready -= ready


def _tracked(pod: Pod) -> Pod:
    """A pod that was adopted just now: the informer does not show its finalizer yet."""
    if has_finalizer(pod):
        return pod
    finalizers = (*pod.metadata.finalizers, TRACKING_FINALIZER)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, finalizers=finalizers))
