"""Pods that a Job has left behind, and that still wait to be counted by it.

Comes in   pods with the tracking finalizer whose Job is gone or finished, or that have no owner any more
Goes out   the finalizer taken away, so that they can go

 1. A pod that a Job at work controls is never touched: only that Job counts it.
"""

from __future__ import annotations

from typing import TypeAlias

from mooring.api.ownership import controller_of
from mooring.api.views.batch import Job
from mooring.api.views.pod import Pod
from mooring.client.cache.lister import Lister
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.workers import DONE, Failed, Outcome, run_workers
from mooring.client.workqueue import WorkQueue
from mooring.controllers.job.plan import has_finalizer
from mooring.controllers.job.pods import JobPods
from mooring.controllers.job.status import finished_condition
from mooring.controllers.pods import BY_CONTROLLER, orphans_of
from mooring.kit.tasks import TaskGroup

OrphanKey: TypeAlias = tuple[str, str, str]
"""Namespace and name of a pod; or namespace, nothing, and the uid of a Job whose pods are to be looked at."""

JOB_CONTROLLER = "kubernetes.io/job-controller"


class JobOrphans:
    """Looks after them in tasks of its own: a Job's own round must not wait for them."""

    def __init__(self, queue: WorkQueue[OrphanKey], jobs: Lister[Job], pods: Lister[Pod], job_pods: JobPods) -> None:
        self._queue = queue
        self._jobs = jobs
        self._pods = pods
        self._job_pods = job_pods

    def add_pod(self, pod: Pod) -> None:
        self._queue.add((pod.metadata.namespace, pod.metadata.name, ""))

    def add_pods_of(self, job: Job) -> None:
        self._queue.add((job.metadata.namespace, "", job.metadata.uid))

    def start(self, group: TaskGroup, workers: int) -> None:
        run_workers(self._queue, self._sync, workers=workers, group=group)

    def stop(self) -> None:
        self._queue.shut_down()

    async def _sync(self, key: OrphanKey) -> Outcome:
        namespace, name, job_uid = key
        if name:
            pod = self._pods.get(namespace, name)
            pods = [pod] if pod is not None else []
        else:
            orphans = self._pods.by_index(BY_CONTROLLER, orphans_of(namespace))
            pods = [*self._pods.by_index(BY_CONTROLLER, job_uid), *orphans]
        for pod in pods:
            if has_finalizer(pod) and self._is_left_behind(pod):
                try:
                    await self._job_pods.release(pod)
                except NotFoundError:
                    continue
                except ClientError as error:
                    return Failed(str(error))
        return DONE

    def _is_left_behind(self, pod: Pod) -> bool:
        reference = controller_of(pod.metadata)
        if reference is None:
            return True
        if (reference.api_version, reference.kind) != (Job.api_version, Job.kind):
            return False
        job = self._jobs.get(pod.metadata.namespace, reference.name)
        if job is None or job.metadata.uid != reference.uid:
            return True
        return not is_managed_elsewhere(job) and finished_condition(job) is not None


def is_managed_elsewhere(job: Job) -> bool:
    """Whether the Job says that another controller works on it."""
    return job.spec.managed_by is not None and job.spec.managed_by != JOB_CONTROLLER
