"""The status writer: brings what is true of pods to the API, and lets ended ones go.

Comes in   from the outbox: a pod whose status changed
Goes out   one patch with what differs; then, for a pod that has ended and is to go, its deletion

 1. Only this very pod is meant: the patch and the deletion name its uid. Another one of its name is left alone.
 2. What is not known to the API any more needs no status. A status that breaks a rule is logged, not repeated.
 3. Nothing is written for a silent node. What changed meanwhile is written when it is heard again.
"""

import logging
from collections.abc import Mapping

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.views.base import Int64, Timestamp, View
from mooring.client.errors import ClientError, ConflictError, InvalidError, NotFoundError, StatusError
from mooring.client.interface import Client, Deletion, PatchForm
from mooring.kubelet.pod_status import revision_number, status_patch
from mooring.kubelet.pod_worker import PodWorker

RETRY_S = 2.0
REFUSED_S = 30.0
"""How long to wait after a refusal that the same request will hardly change: we may not write, for instance."""

ECHOES_MAX = 10_000
_UNKNOWN = object()

logger = logging.getLogger(__name__)


class _Metadata(View):
    resource_version: str = ""
    generation: Int64 = 0
    deletion_timestamp: Timestamp | None = None


class _Answer(View):
    metadata: _Metadata = _Metadata()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Document).decode
_read_answer = msgspec.json.Decoder(_Answer).decode


class Echoes:
    """The revisions of our own writes, until the watch tells them."""

    def __init__(self) -> None:
        self._revisions: dict[str, None] = {}

    def expect(self, revision: str) -> None:
        if len(self._revisions) >= ECHOES_MAX:
            del self._revisions[next(iter(self._revisions))]
        self._revisions[revision] = None

    def take(self, revision: str) -> bool:
        """Whether that was one of ours."""
        return self._revisions.pop(revision, _UNKNOWN) is None


class StatusWriter:
    """For all pods of a fleet."""

    def __init__(self, client: Client, workers: Mapping[str, PodWorker], echoes: Echoes) -> None:
        self._client = client
        self._workers = workers
        self._echoes = echoes

    async def send(self, uid: str) -> float | None:
        """Write the status of a pod. Returns after how many seconds to try again, if that can help."""
        worker = self._workers.get(uid)
        if worker is None or worker.node.is_silenced:
            return None
        try:
            await self._write(worker)
            if worker.is_to_be_deleted:
                await self._delete(worker)
        except NotFoundError:
            return None
        except InvalidError as error:
            logger.warning("the status of %s is refused: %s", worker.pod.key, error)
            return None
        except ClientError as error:
            # A conflict too: if another pod has its name by now, the watch will say so, and there is nothing to send.
            return _retry_s(error, worker)
        return None

    async def _write(self, worker: PodWorker) -> None:
        status = worker.status()
        patch = status_patch(status, _decode(worker.written) if worker.written else {})
        if not patch:
            return
        metadata = worker.pod.metadata
        body = {"metadata": {"uid": metadata.uid}, "status": patch}
        answer = await self._client.patch(
            POD, metadata.namespace, metadata.name, body, form=PatchForm.STRATEGIC, subresource="status"
        )
        worker.written = _encode(status)
        told = _read_answer(answer).metadata
        worker.written_revision = revision_number(told.resource_version)
        if (told.generation, told.deletion_timestamp) == (metadata.generation, metadata.deletion_timestamp):
            self._echoes.expect(told.resource_version)  # it tells nothing that the worker has not seen

    async def _delete(self, worker: PodWorker) -> None:
        metadata = worker.pod.metadata
        await self._client.delete(POD, metadata.namespace, metadata.name, Deletion(grace_s=0, uid=metadata.uid))
        worker.is_let_go = True


def _retry_s(error: ClientError, worker: PodWorker) -> float:
    if error.can_help_to_retry or isinstance(error, ConflictError):
        return max(RETRY_S, (error.retry_after_s or 0.0) if isinstance(error, StatusError) else 0.0)
    logger.warning("the status of %s is refused: %s", worker.pod.key, error)
    return REFUSED_S
