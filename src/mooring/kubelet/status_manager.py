"""The status manager: writes pod statuses to the API, and deletes terminated pods.

Input: the uids of pods whose status changed, from the write queue. Output: one patch of each with the difference; then,
for a terminated pod with a deletion timestamp, its deletion.

 1. Patch and deletion carry the uid of the pod: another pod of the same name is not affected.
 2. A pod that does not exist needs no status. A status that validation rejects is logged, not retried.
 3. Nothing is written for a silent node. The changes are written after it answers again.
"""

import logging
from collections.abc import Mapping, Sequence

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD, place_of
from mooring.api.views.meta import Int64, Timestamp, View
from mooring.client.batch_writes import StatusPatch, outcomes_of, patch_status_many
from mooring.client.errors import ClientError, ConflictError, InvalidError, NotFoundError, StatusError
from mooring.client.interface import Client, Deletion
from mooring.kubelet.pod_status import revision_number, status_patch
from mooring.kubelet.pod_worker import PodWorker
from mooring.kubelet.views import KubeletPod

RETRY_S = 2.0
REFUSED_S = 30.0
"""The delay after an error that a retry will hardly change, such as a missing permission."""

OWN_WRITES_MAX = 10_000
_UNKNOWN = object()

logger = logging.getLogger(__name__)


class _PodMetadata(View):
    resource_version: str = ""
    generation: Int64 = 0
    deletion_timestamp: Timestamp | None = None


class _Answer(View):
    metadata: _PodMetadata = _PodMetadata()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Document).decode
_read_answer = msgspec.json.Decoder(_Answer).decode


class OwnWrites:
    """Resource versions of status writes whose watch events are still to come."""

    def __init__(self) -> None:
        self._revisions: dict[str, None] = {}

    def expect(self, revision: str) -> None:
        if len(self._revisions) >= OWN_WRITES_MAX:
            del self._revisions[next(iter(self._revisions))]
        self._revisions[revision] = None

    def take(self, revision: str) -> bool:
        """Whether this event was caused by a write of the kubelets. Forgets it."""
        return self._revisions.pop(revision, _UNKNOWN) is None


class StatusManager:
    """Writes the statuses of all pods of the kubelets."""

    def __init__(self, client: Client, workers: Mapping[str, PodWorker], own_writes: OwnWrites) -> None:
        self._client = client
        self._workers = workers
        self._own_writes = own_writes

    async def send(self, uids: Sequence[str]) -> list[float | None]:
        """Write the statuses of pods. Returns for each the seconds after which to retry, or None."""
        found = (self._workers.get(uid) for uid in uids)
        workers = [worker for worker in found if worker is not None and not worker.node.is_silent]
        errors = await self._write(workers)
        ended = [worker for worker in workers if worker.uid not in errors and worker.needs_deletion]
        errors |= _errors_of(ended, await outcomes_of(self._delete, ended))
        retries_s = {worker.uid: _retry_s(errors.get(worker.uid), worker) for worker in workers}
        return [retries_s.get(uid) for uid in uids]

    async def _write(self, workers: Sequence[PodWorker]) -> dict[str, ClientError]:
        """Write the statuses that changed. Returns the errors by uid."""
        changed: list[tuple[PodWorker, KubeletPod, Document]] = []
        patches: list[StatusPatch] = []
        for worker in workers:
            pod, status = worker.pod, worker.status()
            patch = status_patch(status, _decode(worker.last_status) if worker.last_status else {})
            if patch:
                changed.append((worker, pod, status))
                metadata = pod.metadata
                patches.append(StatusPatch(metadata.namespace, metadata.name, metadata.uid, patch))

        def written(index: int, answer: bytes) -> None:
            self._written(*changed[index], answer)

        outcomes = await patch_status_many(self._client, POD, patches, written)
        return _errors_of([worker for worker, _, _ in changed], outcomes)

    def _written(self, worker: PodWorker, pod: KubeletPod, status: Document, answer: bytes) -> None:
        """`pod`: the object that the worker knew when it sent the status."""
        metadata, reported = pod.metadata, _read_answer(answer).metadata
        worker.status_written(_encode(status), revision_number(reported.resource_version))
        if (reported.generation, reported.deletion_timestamp) == (metadata.generation, metadata.deletion_timestamp):
            # The event of this write contains nothing that the worker does not know.
            self._own_writes.expect(reported.resource_version)

    async def _delete(self, worker: PodWorker) -> None:
        await self._client.delete(*place_of(worker.pod), Deletion(grace_s=0, uid=worker.uid))
        worker.is_deletion_sent = True


def _errors_of(workers: Sequence[PodWorker], outcomes: Sequence[object]) -> dict[str, ClientError]:
    pairs = zip(workers, outcomes, strict=True)
    return {worker.uid: outcome for worker, outcome in pairs if isinstance(outcome, ClientError)}


def _retry_s(error: ClientError | None, worker: PodWorker) -> float | None:
    if error is None or isinstance(error, NotFoundError):
        return None
    # A conflict as well: if another pod has this name, its watch event removes the worker.
    if error.can_help_to_retry or isinstance(error, ConflictError):
        return max(RETRY_S, (error.retry_after_s or 0.0) if isinstance(error, StatusError) else 0.0)
    logger.warning("writing the status of pod %s failed: %s", worker.pod.key, error)
    return None if isinstance(error, InvalidError) else REFUSED_S
