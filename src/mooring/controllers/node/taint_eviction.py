"""The taint eviction controller deletes pods that do not tolerate the NoExecute taints of their node.

Inputs: nodes and pods, from informers. Outputs: pods marked as disrupted and deleted, at once or after
`tolerationSeconds`; events.

1. A taint that is not tolerated means an immediate eviction. Otherwise the shortest `tolerationSeconds` of the used
   tolerations counts; without any, the pod stays.
2. A scheduled eviction keeps its time when taints change.
3. Handlers decide. The queue contains the evictions, each at its time. `_evictions` is authoritative: a key of a
   cancelled or moved eviction has no effect.
4. An eviction that has begun cannot be cancelled.
5. An index finds the pods of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, assert_never

from mooring.api.decode import decode_as
from mooring.api.kinds import POD
from mooring.api.tolerations import NO_EXECUTE, tolerates
from mooring.api.views.meta import ObjectReference
from mooring.api.views.node import Node, Taint
from mooring.api.views.pod import Pod, Toleration
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Deletion, PatchForm
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome, split_key
from mooring.controllers.documents import disruption_condition
from mooring.controllers.pods import BY_NODE, add_node_index
from mooring.kit.clock import format_rfc3339

WORKERS = 8


@dataclass(frozen=True, slots=True)
class KeepSchedule:
    """Keep a scheduled eviction, if there is one."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a scheduled eviction."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Schedule an eviction. Replaces and cancels an earlier one."""

    since_s: float
    due_s: float


Decision: TypeAlias = KeepSchedule | Cancel | Evict


def decide(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], scheduled_since_s: float | None, now_s: float
) -> Decision:
    """The decision for a pod on a node with at least one NoExecute taint."""
    toleration_s = toleration_s_min(taints, tolerations)
    if toleration_s is None:
        return Cancel()
    if toleration_s < 0:
        return Evict(now_s, now_s)
    if scheduled_since_s is None:
        return Evict(now_s, now_s + toleration_s)
    if scheduled_since_s < now_s:
        return KeepSchedule()
    return Evict(scheduled_since_s, now_s + toleration_s)


def toleration_s_min(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """How long a pod may stay. None: forever. Below 0: a taint is not tolerated."""
    shortest_s: float | None = None
    for taint in taints:
        used = next((toleration for toleration in tolerations if tolerates(toleration, taint)), None)
        if used is None:
            return -1.0
        if used.toleration_seconds is not None:
            seconds = max(0.0, float(used.toleration_seconds))
            shortest_s = seconds if shortest_s is None else min(shortest_s, seconds)
    return shortest_s


def no_execute_taints(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


@dataclass(slots=True)
class _PlannedEviction:
    since_s: float
    due_s: float
    has_begun: bool = False


class TaintEvictionController(Controller):
    """Keys are pods with a scheduled eviction."""

    name: ClassVar[str] = "taint-eviction-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = WORKERS
        self._recorder = context.recorder(self.name)
        self._evictions: dict[str, _PlannedEviction] = {}
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._pods = context.informers.informer(Pod)
        add_node_index(self._pods)
        nodes = context.informers.informer(Node)
        nodes.add_handler(
            self.name, on_add=self._on_node_added, on_update=self._on_node_updated, on_delete=self._on_node_deleted
        )
        self._pods.add_handler(
            self.name, on_add=self._on_pod_added, on_update=self._on_pod_updated, on_delete=self._on_pod_deleted
        )

    # ----------------------------------------------------------------------------------------------- events

    def _on_node_added(self, node: Node) -> None:
        if taints := no_execute_taints(node):
            self._on_taints(node.metadata.name, taints)

    def _on_node_updated(self, old: Node, new: Node) -> None:
        if old.spec.taints is not new.spec.taints and old.spec.taints != new.spec.taints:
            taints = no_execute_taints(new)
            if taints != no_execute_taints(old):
                self._on_taints(new.metadata.name, taints)

    def _on_node_deleted(self, node: Node) -> None:
        self._taints.pop(node.metadata.name, None)

    def _on_pod_added(self, pod: Pod) -> None:
        taints = self._taints.get(pod.spec.node_name)
        if taints:
            self._schedule_eviction(pod, taints, self.clock.now_s())

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name != new.spec.node_name or old.spec.tolerations != new.spec.tolerations:
            self._on_pod_added(new)

    def _on_pod_deleted(self, pod: Pod) -> None:
        self._cancel(pod.key)

    def _on_taints(self, node_name: str, taints: tuple[Taint, ...]) -> None:
        if taints:
            self._taints[node_name] = taints
        else:
            self._taints.pop(node_name, None)
        now_s = self.clock.now_s()
        for pod in self._pods.lister.by_index(BY_NODE, node_name):
            if taints:
                self._schedule_eviction(pod, taints, now_s)
            else:
                self._cancel(pod.key)

    # -------------------------------------------------------------------------------------------- decisions

    def _schedule_eviction(self, pod: Pod, taints: tuple[Taint, ...], now_s: float) -> None:
        scheduled = self._evictions.get(pod.key)
        if scheduled is not None and scheduled.has_begun:
            return
        decision = decide(taints, pod.spec.tolerations, scheduled.since_s if scheduled is not None else None, now_s)
        match decision:
            case KeepSchedule():
                pass
            case Cancel():
                self._cancel(pod.key)
            case Evict(since_s, due_s):
                self._cancel(pod.key)
                # An immediate eviction cannot be cancelled.
                self._evictions[pod.key] = _PlannedEviction(since_s, due_s, has_begun=due_s <= now_s)
                self.queue.add_after(pod.key, due_s - now_s)
            case never:
                assert_never(never)

    def _cancel(self, key: str) -> None:
        eviction = self._evictions.pop(key, None)
        if eviction is not None and not eviction.has_begun:
            self._record_event(key, f"Cancelling deletion of Pod {key}")

    # --------------------------------------------------------------------------------------------- evicting

    async def sync(self, key: str) -> Outcome:
        eviction = self._evictions.get(key)
        if eviction is None:
            return DONE
        left_s = eviction.due_s - self.clock.now_s()
        if left_s > 0:
            return Later(left_s)
        eviction.has_begun = True
        if not self.queue.num_requeues(key):
            self._record_event(key, f"Marking for deletion Pod {key}")
        try:
            await self._evict(key)
        except NotFoundError:
            pass
        except ClientError as error:
            return Failed(str(error))
        if self._evictions.get(key) is eviction:
            del self._evictions[key]
        return DONE

    async def _evict(self, key: str) -> None:
        """Raises `ClientError`."""
        namespace, name = split_key(key)
        pod = decode_as(Pod, await self.client.get(POD, namespace, name))
        now = format_rfc3339(self.clock.wall_s())
        message = "Taint manager: deleting due to NoExecute taint"
        condition = disruption_condition(pod, "DeletionByTaintManager", message, now)
        if condition is not None:
            patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
            await self.client.patch(POD, namespace, name, patch, form=PatchForm.STRATEGIC, subresource="status")
        await self.client.delete(POD, namespace, name, Deletion(uid=pod.metadata.uid))

    def _record_event(self, key: str, message: str) -> None:
        namespace, name = split_key(key)
        reference = ObjectReference(api_version="v1", kind="Pod", namespace=namespace, name=name)
        self._recorder.event(reference, "Normal", "TaintManagerEviction", message)
