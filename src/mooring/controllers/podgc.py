"""The pod garbage collector deletes pods that no kubelet deletes, and terminated pods above a threshold.

Inputs: pods and nodes, from informers; a pass every `PERIOD_S`. Outputs: pods marked as failed and deleted without
grace.

1. Of terminated pods those above the threshold are deleted: evicted ones first, then the oldest, then by name.
2. A terminating pod on a node that is not ready and has the taint out-of-service is deleted: its kubelet will not
   do it.
3. A missing node is read from the API after `QUARANTINE_S` before its pods are deleted: the informer may be behind.
4. Handlers track terminated and terminating pods and the number of pods per node, so that a pass without garbage
   costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import ClassVar

from mooring.api.document import Document
from mooring.api.kinds import NODE, place_of
from mooring.api.views.meta import find_condition
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.well_known import TAINT_OUT_OF_SERVICE, TERMINAL_PHASES
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Deletion, PatchForm
from mooring.controllers.context import DONE, Controller, ControllerContext, Outcome
from mooring.controllers.documents import disruption_condition
from mooring.controllers.pods import BY_NODE, add_node_index
from mooring.kit.clock import format_rfc3339
from mooring.kit.tasks import TaskGroup, run_bounded

_LIVING_PHASES = ("Pending", "Running", "Unknown")
PERIOD_S = 20.0
QUARANTINE_S = 40.0
DELETIONS_AT_ONCE = 32
logger = logging.getLogger(__name__)


def is_terminated(pod: Pod) -> bool:
    return pod.status.phase not in _LIVING_PHASES


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def surplus(terminated: Iterable[Pod], threshold: int) -> list[Pod]:
    """Terminated pods above the threshold. Empty without a threshold."""
    pods = [*terminated]
    count = len(pods) - threshold
    return sorted(pods, key=_age)[:count] if threshold > 0 and count > 0 else []


def out_of_service(terminating: Iterable[Pod], node_of: Callable[[str], Node | None]) -> list[Pod]:
    """Terminating pods on a node that is out of service."""
    lost = [pod for pod in terminating if (node := node_of(pod.spec.node_name)) is not None and _is_lost(node)]
    return sorted(lost, key=_age)


def unscheduled(terminating: Iterable[Pod]) -> list[Pod]:
    """Terminating pods without a node: no kubelet deletes them."""
    return [pod for pod in terminating if not pod.spec.node_name]


def _is_lost(node: Node) -> bool:
    ready = find_condition(node.status.conditions, "Ready")
    is_ready = ready is not None and ready.status == "True"
    return not is_ready and any(taint.key == TAINT_OUT_OF_SERVICE for taint in node.spec.taints)


def _age(pod: Pod) -> tuple[bool, str, str]:
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not is_evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


class PodGarbageController(Controller):
    """Works in periodic passes, without a queue."""

    name: ClassVar[str] = "pod-garbage-collector-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._terminated: dict[str, None] = {}
        self._terminating: dict[str, None] = {}
        self._pods_on: dict[str, int] = {}
        self._check_at_s: dict[str, float] = {}
        self._nodes = context.informers.informer(Node)
        self._pods = context.informers.informer(Pod)
        add_node_index(self._pods)
        self._pods.add_handler(
            self.name, on_add=self._on_pod_added, on_update=self._on_pod_updated, on_delete=self._on_pod_deleted
        )

    async def sync(self, key: str) -> Outcome:
        return DONE

    def start(self, group: TaskGroup) -> None:
        group.start_background(self._collect_periodically(), name=self.name)

    # ----------------------------------------------------------------------------------------------- events

    def _on_pod_added(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._pods_on[pod.spec.node_name] = self._pods_on.get(pod.spec.node_name, 0) + 1
        self._classify(pod)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name != new.spec.node_name:
            self._leave_node(old.spec.node_name)
            self._on_pod_added(new)
        else:
            self._classify(new)

    def _on_pod_deleted(self, pod: Pod) -> None:
        self._leave_node(pod.spec.node_name)
        self._terminated.pop(pod.key, None)
        self._terminating.pop(pod.key, None)

    def _classify(self, pod: Pod) -> None:
        if not (is_terminated(pod) or is_terminating(pod) or self._terminated or self._terminating):
            return
        for is_one, known in ((is_terminated(pod), self._terminated), (is_terminating(pod), self._terminating)):
            if is_one:
                known[pod.key] = None
            else:
                known.pop(pod.key, None)

    def _leave_node(self, name: str) -> None:
        if not name:
            return
        self._pods_on[name] -= 1
        if not self._pods_on[name]:
            del self._pods_on[name]

    # ----------------------------------------------------------------------------------------------- passes

    async def _collect_periodically(self) -> None:
        while True:
            await self._collect()
            await self.clock.wait(PERIOD_S)

    async def _collect(self) -> None:
        terminated, terminating = self._found(self._terminated), self._found(self._terminating)
        await self._remove_all(surplus(terminated, self.context.settings.terminated_pod_gc_threshold))
        await self._remove_all(out_of_service(terminating, lambda name: self._nodes.lister.get("", name)))
        for node_name in await self._lost_nodes():
            for pod in self._pods.lister.by_index(BY_NODE, node_name):
                message = "PodGC: node no longer exists"
                now = format_rfc3339(self.clock.wall_s())
                await self._try_remove(pod, disruption_condition(pod, "DeletionByPodGC", message, now))
        await self._remove_all(unscheduled(terminating))

    def _found(self, keys: dict[str, None]) -> list[Pod]:
        return [pod for key in keys if (pod := self._pods.lister.by_key(key)) is not None]

    async def _lost_nodes(self) -> list[str]:
        """Names of nodes that pods refer to, that were missing long enough, and that the API does not have."""
        now_s = self.clock.now_s()
        for name in self._pods_on:
            if name not in self._nodes.lister:
                self._check_at_s.setdefault(name, now_s + QUARANTINE_S)
        due = [name for name, check_at_s in self._check_at_s.items() if check_at_s <= now_s]
        for name in due:
            del self._check_at_s[name]
        return [name for name in due if name not in self._nodes.lister and await self._is_gone(name)]

    async def _is_gone(self, name: str) -> bool:
        try:
            await self.client.get(NODE, "", name)
        except NotFoundError:
            return True
        except ClientError as error:
            logger.warning("failed to read node %s: %s", name, error)
        return False

    # --------------------------------------------------------------------------------------------- removing

    async def _remove_all(self, pods: list[Pod]) -> None:
        if pods:
            await run_bounded(self._try_remove, pods, limit=DELETIONS_AT_ONCE, name=self.name)

    async def _try_remove(self, pod: Pod, condition: Document | None = None) -> None:
        try:
            await self._remove(pod, condition)
        except NotFoundError:
            pass
        except ClientError as error:
            logger.warning("failed to delete pod %s: %s", pod.key, error)

    async def _remove(self, pod: Pod, condition: Document | None) -> None:
        """Raises `ClientError`."""
        metadata = pod.metadata
        if pod.status.phase not in TERMINAL_PHASES:
            status: Document = {"phase": "Failed"}
            if metadata.generation:
                status["observedGeneration"] = metadata.generation
            if condition is not None:
                status["conditions"] = [condition]
            patch = {"metadata": {"uid": metadata.uid}, "status": status}
            await self.client.patch(*place_of(pod), patch, form=PatchForm.STRATEGIC, subresource="status")
        await self.client.delete(*place_of(pod), Deletion(grace_s=0, uid=metadata.uid))
