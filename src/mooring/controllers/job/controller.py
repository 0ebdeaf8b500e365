"""The Job controller: pods that run until enough of them have succeeded, or too many have failed.

Comes in   Jobs and pods, from informers
Goes out   pods created, deleted, adopted and released; the status of Jobs

 1. What pods tell is gathered for `GATHER_S`: a Job of a thousand pods is not looked at a thousand times a second. A
    change of the Job itself is looked at, at once.
 2. Pods are created and deleted only when the informer shows what was asked for last (`expectations`), and a finalizer
    that was taken away is not taken away, or counted, again (`_releasing`).
 3. A Job is not looked at before the last write to its status was seen (`own_writes`): who was counted a moment ago has
    lost its finalizer and is not in the old counts either, so that a pod too many would be made in its place.
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
from mooring.controllers.context import DONE, Controller, Failed, Later, Outcome, Workshop
from mooring.controllers.documents import document_of
from mooring.controllers.expectations import LOOK_AGAIN_S, Expectations, OwnWrites
from mooring.controllers.job.failures import NO_FAILURES, FailureRecord, next_record
from mooring.controllers.job.plan import (
    TRACKING_FINALIZER,
    CreatePods,
    RemovePods,
    Survey,
    WaitForBackoff,
    completion_of,
    deadline_in_s,
    end_of,
    has_finalizer,
    plan_pods,
    survey,
)
from mooring.controllers.job.pods import JobOrphans, JobPods, is_managed_elsewhere
from mooring.controllers.job.status import Progress, finish, progress_document, progress_of, track
from mooring.controllers.pod_control import PodControl
from mooring.controllers.pods import BY_CONTROLLER, add_controller_index, orphans_of
from mooring.kit.backoff import Backoff
from mooring.kit.clock import format_rfc3339, parse_rfc3339
from mooring.kit.tasks import TaskGroup

GATHER_S = 1.0
API_BACKOFF = Backoff(initial_s=1.0, max_s=60.0)

_decode = msgspec.json.Decoder(dict[str, object]).decode

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Round:
    """One look at one Job."""

    found: Survey
    progress: Progress
    document: Document
    record: FailureRecord
    now: str
    now_s: float
    is_changed: bool = False


class JobController(Controller):
    name = "job-controller"

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop)
        self.workers = workshop.settings.concurrent_job_syncs
        self.queue = WorkQueue(self.name, workshop.clock, workshop.entropy.fork("queue of jobs"), backoff=API_BACKOFF)
        self._recorder = workshop.recorder(self.name)
        self._releasing: dict[str, set[str]] = {}
        self._records: dict[str, FailureRecord] = {}
        self._jobs = workshop.informers.informer(Job)
        self._written = OwnWrites(workshop.client, JOB, Job, self._jobs)
        self._pods = workshop.informers.informer(Pod)
        self._expectations = Expectations(workshop.clock, self._pods.has_seen)
        pod_control = PodControl(workshop.client, self._recorder, workshop.clock)
        self._job_pods = JobPods(workshop.client, pod_control, self._expectations)
        orphan_entropy = workshop.entropy.fork("queue of orphaned pods of jobs")
        self._orphans = JobOrphans(
            WorkQueue("job orphan pods", workshop.clock, orphan_entropy, backoff=API_BACKOFF),
            self._jobs.lister,
            self._pods.lister,
            self._job_pods,
        )
        self._listen()

    def _listen(self) -> None:
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
        if is_managed_elsewhere(job):
            return DONE
        if finished_condition(job) is not None:
            self._records.pop(key, None)
            return DONE
        if job.spec.completion_mode not in (None, "NonIndexed", "Indexed"):
            message = "Skipped Job sync because completion mode is unknown"
            self._recorder.event(job, "Warning", "UnknownCompletionMode", message)
            return DONE
        try:
            if not await self._written.are_seen(key):
                return Later(GATHER_S)
            failure = await self._work_on(key, job)
        except (AdoptionError, ClientError, LabelSelectorError) as error:
            return Failed(str(error))
        return Failed(str(failure)) if failure is not None else DONE

    async def _work_on(self, key: str, job: Job) -> Exception | None:
        """One round. Raises what stops it; returns what went wrong with pods, to be tried again."""
        are_expectations_met = self._expectations.are_met(key)
        if not are_expectations_met:
            self.queue.add_after(key, LOOK_AGAIN_S)
        pods = await self._claim_pods(job)
        at = self._new_round(key, job, pods)
        end = end_of(at.found, at.progress.start_time, at.now, at.now_s)
        failure: Exception | None = None
        if end is not None:
            deleted, ready, failure = await self._job_pods.delete_active(job, at.found.active_pods)
            if deleted != at.found.active or not are_expectations_met:
                end = None  # some pods may not be known yet, so not all could be counted
            _note_deleted(at.found, deleted, ready)
        else:
            self._look_again_at_deadline(key, job, at)
            is_managed = are_expectations_met and job.metadata.deletion_timestamp is None
            if is_managed:
                failure = await self._manage(key, at)
            end = completion_of(at.found, at.now)
            if end is None and is_managed:
                self._note_suspension(job, at)
        self._note_counts(at)
        await self._count(key, at, end)
        return failure

    async def _claim_pods(self, job: Job) -> list[Pod]:
        selector = compile_selector(job.spec.selector)
        uid = job.metadata.uid
        orphans = self._pods.lister.by_index(BY_CONTROLLER, orphans_of(job.metadata.namespace))
        candidates = [*self._pods.lister.by_index(BY_CONTROLLER, uid), *orphans]
        pods = await claim_objects(
            self.client,
            job,
            candidates,
            lambda pod: selector.matches(pod.metadata.labels),
            finalizers=(TRACKING_FINALIZER,),
        )
        return [pod if controller_of(pod.metadata) is not None else _tracked(pod) for pod in pods]

    def _new_round(self, key: str, job: Job, pods: list[Pod]) -> _Round:
        now_s = self.clock.wall_s()
        found = survey(job, pods, frozenset(self._releasing.get(key, ())))
        progress = progress_of(job.status)
        now = format_rfc3339(now_s)
        if progress.start_time is None and not job.spec.suspend:
            progress.start_time = now
        record = next_record(self._records.get(key, NO_FAILURES), found.new_succeeded, found.new_failed)
        return _Round(found, progress, document_of(job), record, now, now_s)

    def _look_again_at_deadline(self, key: str, job: Job, at: _Round) -> None:
        left_s = deadline_in_s(job, at.progress.start_time, at.now_s)
        if left_s is not None:
            self.queue.add_after(key, left_s)

    async def _manage(self, key: str, at: _Round) -> Exception | None:
        """Creates or deletes pods; the first error."""
        found = at.found
        match plan_pods(found, at.record, at.now_s):
            case RemovePods(pods):
                deleted, ready, error = await self._job_pods.delete_unneeded(found.job, pods)
                _note_deleted(found, deleted, ready)
                return error
            case CreatePods() as wanted:
                created, error = await self._job_pods.create(found.job, wanted, found.delayed)
                found.active += created
                return error
            case WaitForBackoff(after_s):
                self.queue.add_after(key, max(after_s, GATHER_S))
        return None

    def _note_suspension(self, job: Job, at: _Round) -> None:
        progress = at.progress
        if job.spec.suspend:
            if progress.set_condition("Suspended", "True", "JobSuspended", "Job suspended", at.now):
                at.is_changed = True
                self._recorder.event(job, "Normal", "Suspended", "Job suspended")
                progress.start_time = None
        elif progress.set_condition("Suspended", "False", "JobResumed", "Job resumed", at.now):
            at.is_changed = True
            self._recorder.event(job, "Normal", "Resumed", "Job resumed")
            progress.start_time = at.now  # a deadline counts the time in which it was not suspended

    def _note_counts(self, at: _Round) -> None:
        found, progress = at.found, at.progress
        counts = (found.active, found.ready, found.terminating)
        if counts != (progress.active, progress.ready, progress.terminating):
            at.is_changed = True
        progress.active, progress.ready, progress.terminating = counts

    async def _count(self, key: str, at: _Round, end: JobCondition | None) -> None:
        """Write down who is counted, release them, and write down the counts."""
        found, progress = at.found, at.progress
        tracking = track(found, end, progress)
        if at.is_changed or tracking.is_changed:
            await self._write(at)
            self._records[key] = at.record
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
            final = finish(end, progress, found.terminating, at.now)
        if is_pending or final is not None:
            await self._write(at)
        if error is not None:
            raise error
        if final is not None:
            self._tell_end(found.job, progress, final)

    async def _write(self, at: _Round) -> None:
        job, metadata = at.found.job, at.found.job.metadata
        at.document["status"] = progress_document(at.progress)
        answer = await self.client.update(JOB, metadata.namespace, metadata.name, at.document, subresource="status")
        self._written.answered(job.key, answer)
        at.document = _decode(answer)

    def _tell_end(self, job: Job, progress: Progress, final: JobCondition) -> None:
        if final.type != "Complete":
            self._recorder.event(job, "Warning", final.reason, final.message)
            return
        if job.spec.completions is not None and progress.succeeded > job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._recorder.event(job, "Warning", "TooManySucceededPods", message)
        self._recorder.event(job, "Normal", "Completed", "Job completed")

    def _forget(self, key: str) -> None:
        self._expectations.forget(key)
        self._written.forget(key)
        self._releasing.pop(key, None)
        self._records.pop(key, None)

    # ------------------------------------------------------------------------------------------ what is heard

    def _on_job_added(self, job: Job, is_initial: bool) -> None:
        self.queue.add(job.key)

    def _on_job_updated(self, old: Job, new: Job) -> None:
        if finished_condition(new) is not None:
            self._orphans.add_pods_of(new)
            self.queue.add_after(new.key, GATHER_S)
            return
        is_asked_otherwise = new.metadata.generation != old.metadata.generation
        self.queue.add_after(new.key, 0.0 if is_asked_otherwise else GATHER_S)
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
                self.queue.add_after(job.key, GATHER_S)
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
        self.queue.add_after(job.key, GATHER_S)

    def _on_owned_pod_changed(self, pod: Pod, reference: OwnerReference) -> None:
        job = self._job(pod.metadata.namespace, reference)
        if job is None:
            return
        if not has_finalizer(pod):
            self._release_seen(job.key, pod)
        self.queue.add_after(job.key, GATHER_S)

    def _on_orphan(self, pod: Pod) -> None:
        if has_finalizer(pod):
            self._orphans.add_pod(pod)
        for job in self._jobs.lister.list(pod.metadata.namespace):
            try:
                selector = compile_selector(job.spec.selector)
            except LabelSelectorError:
                continue
            if not selector.matches_everything and selector.matches(pod.metadata.labels):
                self.queue.add_after(job.key, GATHER_S)

    def _release_seen(self, key: str, pod: Pod) -> None:
        releasing = self._releasing.get(key)
        if releasing is not None:
            releasing.discard(pod.metadata.uid)

    def _job(self, namespace: str, reference: OwnerReference) -> Job | None:
        if reference.kind != Job.kind:
            return None
        job = self._jobs.lister.get(namespace, reference.name)
        return job if job is not None and job.metadata.uid == reference.uid else None


def _note_deleted(found: Survey, deleted: int, ready: int) -> None:
    found.active -= deleted
    found.terminating += deleted
    found.ready -= ready


def _tracked(pod: Pod) -> Pod:
    """A pod that was adopted just now: the informer does not show its finalizer yet."""
    if has_finalizer(pod):
        return pod
    finalizers = (*pod.metadata.finalizers, TRACKING_FINALIZER)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, finalizers=finalizers))
