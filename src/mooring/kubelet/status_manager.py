"""The status manager: writes pod statuses to the API, and deletes terminated pods.

Input: the uid of a pod whose status changed, from the write queue. Output: one patch with the difference; then, for a
terminated pod with a deletion timestamp, its deletion.

 1. Patch and deletion carry the uid of the pod: another pod of the same name is not affected.
 2. A pod that does not exist needs no status. A status that validation rejects is logged, not retried.
 3. Nothing is written for a silent node. The changes are written after it answers again.
"""

import logging
from collections.abc import Mapping

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.views.meta import Int64, Timestamp, View
from mooring.client.errors import ClientError, ConflictError, InvalidError, NotFoundError, StatusError
from mooring.client.interface import Client, Deletion, PatchForm
from mooring.kubelet.pod_status import revision_number, status_patch
from mooring.kubelet.pod_worker import PodWorker

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

    async def send(self, uid: str) -> float | None:
        """Write the status of a pod. Returns the seconds after which to retry, or None."""
        worker = self._workers.get(uid)
        if worker is None or worker.node.is_silent:
            return None
        try:
            await self._write(worker)
            if worker.needs_deletion:
                await self._delete(worker)
        except NotFoundError:
            return None
        except InvalidError as error:
            logger.warning("writing the status of pod %s failed: %s", worker.pod.key, error)
            return None
        except ClientError as error:
            # A conflict as well: if another pod has this name, its watch event removes the worker.
            return _retry_s(error, worker)
        return None

    async def _write(self, worker: PodWorker) -> None:
        status = worker.status()
        patch = status_patch(status, _decode(worker.last_status) if worker.last_status else {})
        if not patch:
            return
        metadata = worker.pod.metadata
        body = {"metadata": {"uid": metadata.uid}, "status": patch}
        answer = await self._client.patch(
            POD, metadata.namespace, metadata.name, body, form=PatchForm.STRATEGIC, subresource="status"
        )
        reported = _read_answer(answer).metadata
        worker.status_written(_encode(status), revision_number(reported.resource_version))
        if (reported.generation, reported.deletion_timestamp) == (metadata.generation, metadata.deletion_timestamp):
            self._own_writes.expect(
                reported.resource_version
            )  # the event contains nothing that the worker does not know

    async def _delete(self, worker: PodWorker) -> None:
        metadata = worker.pod.metadata
        await self._client.delete(POD, metadata.namespace, metadata.name, Deletion(grace_s=0, uid=metadata.uid))
        worker.is_deletion_sent = True


def _retry_s(error: ClientError, worker: PodWorker) -> float:
    if error.can_help_to_retry or isinstance(error, ConflictError):
        return max(RETRY_S, (error.retry_after_s or 0.0) if isinstance(error, StatusError) else 0.0)
    logger.warning("writing the status of pod %s failed: %s", worker.pod.key, error)
    return REFUSED_S
