"""Event handlers: apply watch events to the columns, and pass cluster events to the queue.

A handler is the sink of a reflector. It updates the columns, or their object store, and then passes the cluster events
of the change to the queue. There is one handler for nodes, one for each other kind that plugins read, and one for pods.
For the scheduler a pod is one of these:

  pending    its scheduler name is one of our profiles and it has no node: queued, in flight, or assumed
  assigned   it has a node, from any scheduler: counted in the columns
  ignored    it has finished, or is pending for another scheduler

 1. A node update that changes no field plugins read, such as a heartbeat, has no event.
 2. `WATCHED` lists the kinds that the scheduler watches besides pods and nodes, with their event resource. A kind
    without one is read by built-in plugins, but no change of it alone makes a rejected pod schedulable. A plugin may
    register such a kind, or one that is not listed: then the `Kind` is the event resource.
 3. An object with a quantity or a timestamp that cannot be parsed is logged and skipped. An API server rejects such
    objects, but a store without one may contain them, and they must not stop the scheduler.
 4. `PodEventHandler.pending` contains the latest record of every pending pod, assumed ones included.
 5. A pod that gets a node leaves the queue. Its assumption is confirmed, or corrected if another scheduler was faster:
    the API server is right.
 6. A pod that finishes is removed as if it were deleted.
 7. Assigned pods of the first list are placed in batches. Other pods of the list are handled after the batch before
    them, so that their events find the columns as if each pod had been placed alone.
 8. A nomination that exists only in memory remains until the API server has another one, or removes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from mooring.api.errors import ObjectError
from mooring.api.kinds import NODE, Kind, kind_of_view
from mooring.api.resources import node_allocatable
from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.api.views.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from mooring.api.well_known import DEFAULT_SCHEDULER_NAME, TERMINAL_PHASES
from mooring.client.interface import Change
from mooring.client.reflector import Sink
from mooring.kit.clock import TimestampError
from mooring.scheduler.binding.assumed_pods import AssumedPods, AssumedPodState
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULED_POD_ADD,
    ActionType,
    AnyEventResource,
    ClusterEvent,
    EventResource,
    node_events,
    pod_events,
)
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queueing_hints import registered_kinds

logger = logging.getLogger(__name__)

AnyKind = TypeVar("AnyKind", bound=ApiObject)

UNPARSABLE = (ObjectError, TimestampError)
"""Errors of objects that cannot be parsed."""

WATCHED: Mapping[type[ApiObject], EventResource | None] = {
    Namespace: EventResource.NAMESPACE,
    PersistentVolume: EventResource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: EventResource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: EventResource.STORAGE_CLASS,
    CSINode: EventResource.CSI_NODE,
    CSIDriver: EventResource.CSI_DRIVER,
    CSIStorageCapacity: EventResource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: EventResource.VOLUME_ATTACHMENT,
    ResourceClaim: EventResource.RESOURCE_CLAIM,
    ResourceSlice: EventResource.RESOURCE_SLICE,
    DeviceClass: EventResource.DEVICE_CLASS,
    Service: EventResource.SERVICE,
    ReplicationController: None,
    ReplicaSet: None,
    StatefulSet: None,
    PodDisruptionBudget: None,
}
BATCH_MAX = 8_192
"""Limit of assigned pods of the first list that are placed in one batch. Larger batches are not faster."""


def log_skipped(view: ApiObject, error: Exception) -> None:
    logger.error("%s %s is skipped because it cannot be parsed: %s", view.kind, view.key, error)


class EventTiming:
    """Measures how long an event takes, from its arrival until the pods that it may help are moved."""

    def __init__(
        self,
        now_s: Callable[[], float] = lambda: 0.0,
        on_handled: Callable[[ClusterEvent, float], None] = lambda event, duration_s: None,
    ) -> None:
        self._now_s = now_s
        self._on_handled = on_handled
        self._began_s = 0.0

    def begin(self) -> None:
        self._began_s = self._now_s()

    def end(self, event: ClusterEvent) -> None:
        self._on_handled(event, self._now_s() - self._began_s)


NO_TIMING = EventTiming()
"""Measures nothing."""


def object_handlers(
    engine: Engine, queue: SchedulingQueue, timing: EventTiming = NO_TIMING
) -> Iterator[tuple[Kind, type[Any], Sink[Any]]]:
    """The kinds that a scheduler watches, except pods: nodes, `WATCHED`, and what plugins register."""
    yield NODE, Node, NodeEventHandler(engine, queue, timing)
    watched: dict[type[ApiObject], AnyEventResource | None] = dict(WATCHED)
    registered = registered_kinds(cycle.profile for cycle in engine.cycles.values())
    watched.update((kind.view, kind) for kind in registered if kind.view is not None)
    for view, resource in watched.items():
        kind = resource if isinstance(resource, Kind) else kind_of_view(view)
        yield kind, view, ObjectEventHandler(view, resource, engine, queue, timing)


class NodeEventHandler:
    """The sink for nodes."""

    def __init__(self, engine: Engine, queue: SchedulingQueue, timing: EventTiming = NO_TIMING) -> None:
        self._columns = engine.columns
        self._queue = queue
        self._timing = timing

    def replace(self, views: Sequence[Node], revision: str) -> None:
        present = {view.metadata.name for view in views}
        for name in [name for name in self._columns.row_of if name not in present]:
            self._remove(name)
        for view in views:
            self._put(view)

    def apply(self, change: Change, view: Node) -> None:
        if change is Change.DELETED:
            self._remove(view.metadata.name)
        else:
            self._put(view)

    def _put(self, node: Node) -> None:
        self._timing.begin()
        row = self._columns.row_of.get(node.metadata.name)
        old = self._columns.nodes[row] if row is not None else None
        if old is None or old.status.allocatable != node.status.allocatable:
            try:
                node_allocatable(node)  # before the columns change: `put_node` must not fail halfway
            except UNPARSABLE as error:
                log_skipped(node, error)
                return
        self._columns.put_node(node)
        if old is None:
            self._queue.move_all_to_active_or_backoff(NODE_ADD, None, node)
            self._timing.end(NODE_ADD)
            return
        for event in node_events(old, node):
            self._queue.move_all_to_active_or_backoff(event, old, node)
            self._timing.end(event)

    def _remove(self, name: str) -> None:
        row = self._columns.row_of.get(name)
        if row is None:
            return
        self._timing.begin()
        self._queue.move_all_to_active_or_backoff(NODE_DELETE, self._columns.nodes[row], None)
        self._columns.remove_node(name)
        self._timing.end(NODE_DELETE)


class ObjectEventHandler(Generic[AnyKind]):
    """The sink for one kind other than nodes and pods."""

    def __init__(
        self,
        kind: type[AnyKind],
        resource: AnyEventResource | None,
        engine: Engine,
        queue: SchedulingQueue,
        timing: EventTiming = NO_TIMING,
    ) -> None:
        self._store = engine.columns.objects.of(kind)
        self._queue = queue
        self._timing = timing
        self._events = (
            {
                action: ClusterEvent(resource, action)
                for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)
            }
            if resource is not None
            else {}
        )

    def replace(self, views: Sequence[AnyKind], revision: str) -> None:
        present = {view.key for view in views}
        for key in [known.key for known in self._store if known.key not in present]:
            self._remove(key)
        for view in views:
            self._put(view)

    def apply(self, change: Change, view: AnyKind) -> None:
        if change is Change.DELETED:
            self._remove(view.key)
        else:
            self._put(view)

    def _put(self, new: AnyKind) -> None:
        self._timing.begin()
        old = self._store.get(new.key)
        if old is not None and old.metadata.resource_version == new.metadata.resource_version != "":
            return
        try:
            self._store.put(new)
        except UNPARSABLE as error:
            log_skipped(new, error)
            return
        self._move_pods(ActionType.ADD if old is None else ActionType.UPDATE, old, new)

    def _remove(self, key: str) -> None:
        self._timing.begin()
        old = self._store.remove(key)
        if old is not None:
            self._move_pods(ActionType.DELETE, old, None)

    def _move_pods(self, action_type: ActionType, old: AnyKind | None, new: AnyKind | None) -> None:
        event = self._events.get(action_type)
        if event is not None:
            self._queue.move_all_to_active_or_backoff(event, old, new)
            self._timing.end(event)


class PodEventHandler:
    """The sink for pods."""

    def __init__(
        self,
        engine: Engine,
        queue: SchedulingQueue,
        assumptions: AssumedPods,
        waiting: WaitingPods,
        scheduler_names: Collection[str],
        timing: EventTiming = NO_TIMING,
    ) -> None:
        self._timing = timing
        self._engine = engine
        self._columns = engine.columns
        self._queue = queue
        self._assumptions = assumptions
        self._waiting = waiting
        self._names = frozenset(scheduler_names)
        self.pending: dict[str, PodInfo] = {}
        self._listed: set[str] = set()
        self._batch: dict[str, PodInfo] = {}
        self._has_listed = False

    # The sink of the reflector

    def replace(self, views: Sequence[Pod], revision: str) -> None:
        """A list: the first one, or another one after the watch was lost. Pods that are not in it are removed."""
        self._remove_others({view.metadata.uid for view in views})
        for view in views:
            self.put(view)

    def begin_list(self) -> None:
        """Starts a list that comes in pages. The views of 50,000 pods take 300 MB, their records a tenth of that.

        Pods that are not in the list are removed at its end, and keep their resources until then.
        """
        self._place_batch()
        self._listed.clear()

    def take_page(self, views: Sequence[Pod]) -> None:
        for view in views:
            uid = view.metadata.uid
            self._listed.add(uid)
            if self._is_new_and_assigned(view, uid):
                self._add_to_batch(view, uid)
            else:
                self._place_batch()
                self.put(view)
        if self._has_listed or len(self._batch) >= BATCH_MAX:
            self._place_batch()

    def end_list(self, revision: str) -> None:
        self._place_batch()
        self._remove_others(self._listed)
        self._listed = set()
        self._has_listed = True

    def _remove_others(self, present: set[str]) -> None:
        for uid in [uid for uid in self.pending if uid not in present]:
            self.forget(uid)
        for uid in [uid for uid in self._columns.pods if uid not in present and uid not in self._assumptions]:
            self.forget(uid)

    def apply(self, change: Change, view: Pod) -> None:
        if change is Change.DELETED:
            self.forget(view.metadata.uid)
        else:
            self.put(view)

    def put(self, view: Pod) -> None:
        """A pod was added or updated."""
        self._timing.begin()
        uid = view.metadata.uid
        try:
            if view.status.phase in TERMINAL_PHASES:
                self.forget(uid)
            elif view.spec.node_name:
                self._put_assigned(view, uid)
            elif uid in self.pending:
                self._update_pending(view, uid)
            elif (view.spec.scheduler_name or DEFAULT_SCHEDULER_NAME) in self._names:
                self._add_pending(view, uid)
        except UNPARSABLE as error:
            log_skipped(view, error)

    # New assigned pods: nearly all pods of the first list

    def _is_new_and_assigned(self, view: Pod, uid: str) -> bool:
        return (
            bool(uid and view.spec.node_name)
            and view.status.phase not in TERMINAL_PHASES
            and uid not in self.pending
            and uid not in self._columns.pods
            and uid not in self._assumptions
            and uid not in self._batch
        )

    def _add_to_batch(self, view: Pod, uid: str) -> None:
        try:
            pod = self._batch[uid] = self._columns.record(view)
            pod.view = None
        except UNPARSABLE as error:
            log_skipped(view, error)

    def _place_batch(self) -> None:
        if not self._batch:
            return
        batch, self._batch = self._batch, {}
        self._columns.place_all(batch.values())
        for pod in batch.values() if self._queue.has_pods_to_move else ():
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_ADD, None, pod)

    # Assigned pods

    def _put_assigned(self, view: Pod, uid: str) -> None:
        was_pending = self.pending.pop(uid, None)
        known = self._columns.pods.get(uid)
        assumption = self._assumptions.remove(uid) if uid in self._assumptions else None
        if was_pending is not None:
            self._columns.withdraw(was_pending)
            if assumption is None:
                self._queue.delete(uid)
        pod = self._columns.record(view)
        if known is None:
            self._place(pod)
        elif _has_same_signature_and_usage(known, pod):
            known.start_s, known.view, pod = pod.start_s, None, known
        elif _has_same_usage_but_labels(known, pod):
            pod.view = known.view = None
            self._columns.relabel(known, pod)
        else:
            self._columns.displace(known)
            pod.arrival = known.arrival
            self._place(pod)
        if known is None or assumption is not None:
            self._move(ASSIGNED_POD_ADD, None, pod)
            return
        for event in pod_events(known, pod, EventResource.ASSIGNED_POD):
            self._move(event, known, pod)

    def _place(self, pod: PodInfo) -> None:
        pod.view = None  # the columns count an assigned pod, plugins do not read its view
        self._columns.place(pod, pod.node_name)

    def _move(self, event: ClusterEvent, old: PodInfo | None, new: PodInfo | None) -> None:
        self._queue.move_all_to_active_or_backoff(event, old, new)
        self._timing.end(event)

    # Pending pods

    def _add_pending(self, view: Pod, uid: str) -> None:
        pod = self.pending[uid] = self._columns.record(view)
        if pod.nominated_node and not pod.terminating:
            self._columns.nominate(pod, pod.nominated_node)
        self._queue.add(pod)
        self._timing.end(UNSCHEDULED_POD_ADD)

    def _update_pending(self, view: Pod, uid: str) -> None:
        old = self.pending[uid]
        old_view = old.view
        assert old_view is not None, f"{old} is pending and has no view"
        if old_view.metadata.resource_version == view.metadata.resource_version:
            return
        pod = self.pending[uid] = self._columns.record(view)
        if uid in self._assumptions:
            if pod.terminating and not old.terminating:
                self._remove_assumed(uid)
            return
        in_memory = self._columns.nominations.node_of(old)
        before, now = old_view.status.nominated_node_name, view.status.nominated_node_name
        nominated = now or (in_memory if not before else None) or ""
        pod.nominated_node = nominated
        if nominated and not pod.terminating:
            self._columns.nominate(pod, nominated)
        else:
            self._columns.withdraw(old)
        events = pod_events(old, pod, EventResource.UNSCHEDULABLE_POD)
        self._queue.update(old, pod, events)
        for event in events:
            self._timing.end(event)
        if before and before != now:
            # Pods of the same or a lower priority may fit on the node that it was nominated to.
            self._queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, old, None, pre_check=lambda other: other.priority <= old.priority
            )

    # Deleted pods

    def forget(self, uid: str) -> None:
        """A pod was deleted, or has finished."""
        self._timing.begin()
        pending = self.pending.pop(uid, None)
        if pending is not None:
            self._remove_pending(pending)
            return
        known = self._columns.pods.get(uid)
        if known is not None:
            self._assumptions.remove(uid)
            self._columns.displace(known)
            self._move(ASSIGNED_POD_DELETE, known, None)

    def _remove_pending(self, pod: PodInfo) -> None:
        self._queue.delete(pod.uid)
        self._columns.withdraw(pod)
        if pod.uid in self._assumptions:
            self._remove_assumed(pod.uid)
        elif pod.nominated_node:
            self._queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, pod, None, pre_check=lambda other: other.priority <= pod.priority
            )

    def _remove_assumed(self, uid: str) -> None:
        """Frees the resources of an assumed pod immediately. Its binding continues, and will fail."""
        assumption = self._assumptions.get(uid)
        assert assumption is not None
        waiting = self._waiting.get(uid)
        if waiting is not None:
            waiting.reject("", "removed")
        elif assumption.state is not AssumedPodState.RELEASED:
            self._columns.displace(assumption.pod)
            if assumption.state is AssumedPodState.BOUND:
                self._assumptions.remove(uid)
            else:
                self._assumptions.release(uid)
        self._move(ASSIGNED_POD_DELETE, assumption.pod, None)


def _has_same_signature_and_usage(known: PodInfo, pod: PodInfo) -> bool:
    """Whether the columns would count both records alike: then the pod stays placed."""
    return known.signature is pod.signature and _has_same_usage(known, pod)


def _has_same_usage_but_labels(known: PodInfo, pod: PodInfo) -> bool:
    """Whether both use the same of the same node. Usual after a binding, which adds the labels of the zone."""
    return (
        known.row >= 0
        and not known.volumes
        and known.signature.spec_key == pod.signature.spec_key
        and _has_same_usage(known, pod)
    )


def _has_same_usage(known: PodInfo, pod: PodInfo) -> bool:
    return (
        known.node_name == pod.node_name
        and known.terminating == pod.terminating
        and known.disrupted == pod.disrupted
        and known.volumes == pod.volumes
    )
