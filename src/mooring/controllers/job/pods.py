"""Creates, deletes and releases the pods of Jobs.

Inputs: numbers of pods, pods to delete, pods to release. Outputs: requests and events.

1. Every pod has the tracking finalizer. A pod of an indexed Job has its index as label, annotation, host name and
   environment variable.
2. A pod that is not needed loses its finalizer before it is deleted, so that it is not counted.
3. `OrphanPodReleaser` removes the finalizer of pods whose Job is gone or finished. It never touches a pod of an
   active Job, which counts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.kinds import place_of
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Job
from mooring.api.well_known import JOB_COMPLETION_INDEX, JOB_CONTROLLER_NAME, JOB_TRACKING_FINALIZER
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.informer import Lister
from mooring.client.interface import Client, PatchForm
from mooring.client.workqueue import DONE, Failed, Outcome, WorkQueue, run_workers
from mooring.controllers.documents import document_of, finished_condition
from mooring.controllers.expectations import Expectations
from mooring.controllers.job.failures import failure_annotations
from mooring.controllers.job.plan import CreatePods, has_finalizer
from mooring.controllers.pod_control import PodControl, pod_of_template
from mooring.controllers.pods import BY_CONTROLLER, is_ready, orphan_key
from mooring.kit.entropy import SUFFIX_LENGTH
from mooring.kit.tasks import TaskGroup

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
GENERATED_NAME_LENGTH_MAX = 63 - SUFFIX_LENGTH
_RELEASE = {"metadata": {"$deleteFromPrimitiveList/finalizers": [JOB_TRACKING_FINALIZER]}}
OrphanKey: TypeAlias = tuple[str, str, str]
"""Namespace and name of a pod; or namespace, empty name, and the uid of a Job whose pods are checked."""


class JobPods:
    """Creates, deletes and releases the pods of Jobs."""

    def __init__(self, client: Client, pod_control: PodControl, expectations: Expectations) -> None:
        self._client = client
        self._pod_control = pod_control
        self._expectations = expectations

    async def create(self, job: Job, planned: CreatePods, delayed: Mapping[int, Pod]) -> tuple[int, Exception | None]:
        """Create pods. Returns how many were created, and the first error."""
        self._expectations.expect(job.key, creations=planned.count)
        pod = job_pod(job)

        def make_pod(number: int) -> Document:
            index = planned.indexes[number] if planned.indexes else None
            return pod if index is None else indexed_pod(job, pod, index, delayed.get(index))

        return await self._pod_control.create_pods(job, planned.count, make_pod)

    async def delete_unneeded(self, job: Job, pods: Sequence[Pod]) -> tuple[int, int, Exception | None]:
        """Release and delete pods. Returns how many were deleted, how many of them were ready, and the first error."""
        self._expectations.expect(job.key, deletions=[pod.key for pod in pods])

        async def release_tracked(pod: Pod) -> None:
            if has_finalizer(pod):
                await self.release(pod)

        errors = await self._pod_control.delete_pods(job, pods, release_tracked)
        return len(pods) - len(errors), sum(is_ready(pod) for pod in pods), errors[0] if errors else None

    async def delete_active(self, job: Job, pods: Sequence[Pod]) -> tuple[int, int, Exception | None]:
        """Delete the pods of a Job that ends. They keep their finalizer until they are counted."""

        async def delete_one(pod: Pod) -> None:
            with contextlib.suppress(NotFoundError):
                await self._pod_control.delete(pod, job)

        errors = await self._pod_control.run_all([*pods], delete_one)
        return len(pods) - len(errors), sum(is_ready(pod) for pod in pods), errors[0] if errors else None

    async def release_all(self, pods: Sequence[Pod]) -> tuple[list[Pod], Exception | None]:
        """Remove the finalizers of pods. Returns the released pods, and the first error."""
        released: dict[str, Pod] = {}

        async def release_one(pod: Pod) -> None:
            with contextlib.suppress(NotFoundError):
                await self.release(pod)
            released[pod.metadata.uid] = pod

        errors = await self._pod_control.run_all([*pods], release_one)
        return [*released.values()], errors[0] if errors else None

    async def release(self, pod: Pod) -> None:
        """Remove the finalizer of a pod. Raises `ClientError`."""
        await self._client.patch(*place_of(pod), _RELEASE, form=PatchForm.STRATEGIC)


def job_pod(job: Job) -> Document:
    """A pod of the Job's template, with the tracking finalizer."""
    template: Document = document_of(job)["spec"].get("template") or {}
    pod = pod_of_template(template, job)
    metadata = pod["metadata"]
    finalizers = metadata.get("finalizers") or []
    if JOB_TRACKING_FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, JOB_TRACKING_FINALIZER]
    return pod


def indexed_pod(job: Job, pod: Document, index: int, replaced: Pod | None) -> Document:
    """The pod of one index. It shares common parts with `pod`."""
    metadata, spec, name = pod["metadata"], pod["spec"], job.metadata.name
    annotations = {**(metadata.get("annotations") or {}), JOB_COMPLETION_INDEX: str(index)}
    if job.spec.backoff_limit_per_index is not None:
        annotations |= failure_annotations(job, replaced)
    labels = {**(metadata.get("labels") or {}), JOB_COMPLETION_INDEX: str(index)}
    generate_name = indexed_generate_name(name, index)
    spec = {**spec, "hostname": f"{name}-{index}"}
    for containers in ("initContainers", "containers"):
        if spec.get(containers):
            spec[containers] = [_with_index_variable(container) for container in spec[containers]]
    metadata = {**metadata, "generateName": generate_name, "labels": labels, "annotations": annotations}
    return {**pod, "metadata": metadata, "spec": spec}


def indexed_generate_name(job_name: str, index: int) -> str:
    """The prefix of a generated name, shortened before the index."""
    end = f"-{index}-"
    return f"{job_name[: GENERATED_NAME_LENGTH_MAX - len(end)]}{end}"


def _with_index_variable(container: Document) -> Document:
    variables = container.get("env") or []
    if any(variable.get("name") == INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{JOB_COMPLETION_INDEX}']"}}
    return {**container, "env": [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]}


class OrphanPodReleaser:
    """Removes finalizers in its own workers, so that syncs of Jobs do not wait."""

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
            orphans = self._pods.by_index(BY_CONTROLLER, orphan_key(namespace))
            pods = [*self._pods.by_index(BY_CONTROLLER, job_uid), *orphans]
        for pod in pods:
            if has_finalizer(pod) and self._is_orphan(pod):
                try:
                    await self._job_pods.release(pod)
                except NotFoundError:
                    continue
                except ClientError as error:
                    return Failed(str(error))
        return DONE

    def _is_orphan(self, pod: Pod) -> bool:
        reference = controller_of(pod.metadata)
        if reference is None:
            return True
        if (reference.api_version, reference.kind) != (Job.api_version, Job.kind):
            return False
        job = self._jobs.get(pod.metadata.namespace, reference.name)
        if job is None or job.metadata.uid != reference.uid:
            return True
        return not is_managed_externally(job) and finished_condition(job) is not None


def is_managed_externally(job: Job) -> bool:
    """Whether `managedBy` names another controller."""
    return job.spec.managed_by is not None and job.spec.managed_by != JOB_CONTROLLER_NAME
