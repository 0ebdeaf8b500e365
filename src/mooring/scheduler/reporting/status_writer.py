"""The status writer: patches conditions and nominated nodes of pods in the background.

1. At most one patch of a pod is running, and a limited number in all. Writes that arrive meanwhile are merged: the
   last one counts for each condition and for the nominated node.
2. A write that changes nothing in the pod's status is not sent.
3. A patch is retried if the server is overloaded or unreachable. A pod that is gone needs no patch.
4. Pending writes of a pod are discarded before it is bound: sent later, they would contradict the binding.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from mooring.api.kinds import POD
from mooring.api.views.meta import Condition
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client, PatchForm
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.logs import fields
from mooring.kit.tasks import WorkerPool

logger = logging.getLogger(__name__)

TRIES_MAX = 8
RETRY = Backoff(initial_s=0.25, max_s=30.0)


class PendingWrite:
    """The fields of a pod's status that are to be written."""

    def __init__(self, namespace: str, name: str, uid: str) -> None:
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.conditions: dict[str, dict[str, object]] = {}
        self.nominated_node: str | None = None
        self.is_discarded = False
        """The write was discarded: it is not retried."""
        self.done: asyncio.Event | None = None
        """While a request is running: set when the response has arrived."""

    def patch(self) -> dict[str, object]:
        status: dict[str, object] = {}
        if self.conditions:
            status["conditions"] = list(self.conditions.values())
        if self.nominated_node is not None:
            status["nominatedNodeName"] = self.nominated_node or None
        # The uid makes sure that a pod of the same name which came later is left alone.
        return {"metadata": {"uid": self.uid}, "status": status}


class StatusWriter:
    """Writes the status of pods in the background."""

    def __init__(self, client: Client, clock: Clock, pool: WorkerPool) -> None:
        self._client = client
        self._clock = clock
        self._pool = pool
        self._pending: dict[str, PendingWrite] = {}
        self._queued: set[str] = set()
        self._sending: dict[str, PendingWrite] = {}
        self.failures = 0

    def __len__(self) -> int:
        """The number of pods with pending writes."""
        return len(self._queued)

    def write(self, pod: Pod, condition: Condition | None = None, nominated_node: str | None = None) -> None:
        """Write a condition, or another nominated node (empty: none), into the status of a pod. Never waits."""
        uid = pod.metadata.uid
        write = self._pending.get(uid)
        has_condition = condition is None or _has_condition(pod, condition)
        has_node = nominated_node is None or pod.status.nominated_node_name == nominated_node
        if write is None:
            if (has_condition and has_node) and uid not in self._queued:
                return
            write = self._pending[uid] = PendingWrite(pod.metadata.namespace, pod.metadata.name, uid)
        if condition is not None:
            write.conditions[condition.type] = self._as_json(pod, condition)
        if nominated_node is not None:
            write.nominated_node = nominated_node
        if uid not in self._queued:
            self._queued.add(uid)
            self._pool.start(partial(self._send, uid))

    def discard_writes(self, uid: str) -> asyncio.Event | None:
        """Discard the pending writes of a pod. Returns the event that is set when its running request has ended."""
        self._pending.pop(uid, None)
        sending = self._sending.get(uid)
        if sending is None:
            return None
        sending.is_discarded = True
        return sending.done

    def _as_json(self, pod: Pod, condition: Condition) -> dict[str, object]:
        """The condition as JSON. The transition time stays while the status is the same."""
        since = format_rfc3339(self._clock.wall_s())
        for known in pod.status.conditions:
            if known.type == condition.type and known.status == condition.status and known.last_transition_time:
                since = known.last_transition_time
        sent: dict[str, object] = {
            "type": condition.type,
            "status": condition.status,
            "lastProbeTime": None,
            "lastTransitionTime": since,
            "reason": condition.reason,
            "message": condition.message,
        }
        if pod.metadata.generation:
            sent["observedGeneration"] = pod.metadata.generation
        return sent

    async def _send(self, uid: str) -> None:
        try:
            while (write := self._pending.pop(uid, None)) is not None:
                self._sending[uid] = write
                await self._send_one(write)
        finally:
            self._queued.discard(uid)
            self._sending.pop(uid, None)

    async def _send_one(self, write: PendingWrite) -> None:
        for attempt in range(1, TRIES_MAX + 1):
            error = await self._try(write)
            if error is None:
                return
            if not error.can_help_to_retry or attempt == TRIES_MAX:
                self.failures += 1
                logger.warning(
                    "the status of pod %s/%s was not written: %s",
                    write.namespace,
                    write.name,
                    error,
                    extra=fields(pod=f"{write.namespace}/{write.name}", reason=error),
                )
                return
            await self._clock.wait(RETRY.delay_s(attempt))
            if write.is_discarded:
                return

    async def _try(self, write: PendingWrite) -> ClientError | None:
        """Send the patch once. None: it was written, or the pod is gone."""
        place = (POD, write.namespace, write.name)
        write.done = asyncio.Event()
        try:
            await self._client.patch(*place, write.patch(), form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            return None
        except ClientError as error:
            return error
        finally:
            write.done.set()
            write.done = None
        return None


def _has_condition(pod: Pod, condition: Condition) -> bool:
    for known in pod.status.conditions:
        if known.type == condition.type:
            return (known.status, known.reason, known.message) == (
                condition.status,
                condition.reason,
                condition.message,
            )
    return False
