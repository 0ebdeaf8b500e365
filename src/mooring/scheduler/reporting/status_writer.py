"""The status writer: conditions and nominations of pods, told to the API server without keeping anybody waiting.

Comes in   what a pod's status should say
Goes out   patches of `pods/status`, at most one under way for each pod, and a bounded number in all

 1. What is wanted of one pod while its last patch is under way is put together: the last word counts for each
    condition and for the nomination.
 2. What the pod's status says already is not sent.
 3. A patch that finds the server slow or away is tried again; a pod that is gone needs none.
 4. Before a pod is bound its status falls silent: what is not sent yet would contradict the binding if it came later.
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
from mooring.kit.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

TRIES_MAX = 8
RETRY = Backoff(initial_s=0.25, max_s=30.0)


class Wanted:
    """What a pod's status should say, as far as it is not sent yet."""

    __slots__ = ("answered", "conditions", "is_void", "name", "namespace", "nominated_node", "uid")

    def __init__(self, namespace: str, name: str, uid: str) -> None:
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.conditions: dict[str, dict[str, object]] = {}
        self.nominated_node: str | None = None
        self.is_void = False
        """Nobody wants it any more: it is not tried again."""
        self.answered: asyncio.Event | None = None
        """While a request is under way: rung when it is answered."""

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
        self._wanted: dict[str, Wanted] = {}
        self._in_line: set[str] = set()
        self._sending: dict[str, Wanted] = {}
        self.failures = 0

    def __len__(self) -> int:
        """How many pods have something to be written."""
        return len(self._in_line)

    def write(self, pod: Pod, condition: Condition | None = None, nominated_node: str | None = None) -> None:
        """Wants a condition, or another nominated node (empty: none), in the status of a pod. Never waits."""
        uid = pod.metadata.uid
        wanted = self._wanted.get(uid)
        says_condition = condition is None or _says_already(pod, condition)
        says_node = nominated_node is None or pod.status.nominated_node_name == nominated_node
        if wanted is None:
            if (says_condition and says_node) and uid not in self._in_line:
                return
            wanted = self._wanted[uid] = Wanted(pod.metadata.namespace, pod.metadata.name, uid)
        if condition is not None:
            wanted.conditions[condition.type] = self._as_json(pod, condition)
        if nominated_node is not None:
            wanted.nominated_node = nominated_node
        if uid not in self._in_line:
            self._in_line.add(uid)
            self._pool.start(partial(self._send, uid))

    def silence(self, uid: str) -> asyncio.Event | None:
        """Drops what is wanted of a pod. If a request about it is under way: what is set when it is over."""
        self._wanted.pop(uid, None)
        sending = self._sending.get(uid)
        if sending is None:
            return None
        sending.is_void = True
        return sending.answered

    def _as_json(self, pod: Pod, condition: Condition) -> dict[str, object]:
        """The condition as it is sent. The time of transition stays while the status is the same."""
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
            while (wanted := self._wanted.pop(uid, None)) is not None:
                self._sending[uid] = wanted
                await self._send_one(wanted)
        finally:
            self._in_line.discard(uid)
            self._sending.pop(uid, None)

    async def _send_one(self, wanted: Wanted) -> None:
        for attempt in range(1, TRIES_MAX + 1):
            error = await self._try(wanted)
            if error is None:
                return
            if not error.can_help_to_retry or attempt == TRIES_MAX:
                self.failures += 1
                logger.warning("the status of pod %s/%s was not written: %s", wanted.namespace, wanted.name, error)
                return
            await self._clock.wait(RETRY.delay_s(attempt))
            if wanted.is_void:
                return

    async def _try(self, wanted: Wanted) -> ClientError | None:
        """Sends the patch once. None: it was written, or the pod is gone."""
        place = (POD, wanted.namespace, wanted.name)
        wanted.answered = asyncio.Event()
        try:
            await self._client.patch(*place, wanted.patch(), form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            return None
        except ClientError as error:
            return error
        finally:
            wanted.answered.set()
            wanted.answered = None
        return None


def _says_already(pod: Pod, condition: Condition) -> bool:
    for known in pod.status.conditions:
        if known.type == condition.type:
            return (known.status, known.reason, known.message) == (
                condition.status,
                condition.reason,
                condition.message,
            )
    return False
