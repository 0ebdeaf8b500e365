"""Event handlers of nodes and of the other kinds that plugins read.

A handler is the sink of a reflector. It updates the columns, or their object store, and then passes the cluster events
of the change to the queue.

 1. A node update that changes no field plugins read, such as a heartbeat, has no event.
 2. `WATCHED` lists the kinds that the scheduler watches besides pods and nodes, with their event resource. A kind
    without one is read by built-in plugins, but no change of it alone makes a rejected pod schedulable. A plugin may
    register such a kind, or one that is not listed: then the `Kind` is the event resource.
 3. An object with a quantity or a timestamp that cannot be parsed is logged and skipped. An API server rejects such
    objects, but a store without one may contain them, and they must not stop the scheduler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from mooring.api.errors import ObjectError
from mooring.api.kinds import NODE, Kind, kind_of_view
from mooring.api.resources import node_allocatable
from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
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
from mooring.client.interface import Change
from mooring.client.reflector import Sink
from mooring.kit.clock import TimestampError
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import (
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    AnyEventResource,
    ClusterEvent,
    EventResource,
    node_events,
)
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


def object_handlers(
    engine: Engine, queue: SchedulingQueue, timing: EventTiming | None = None
) -> Iterator[tuple[Kind, type[Any], Sink[Any]]]:
    """The kinds that a scheduler watches, except pods: nodes, `WATCHED`, and what plugins register."""
    yield NODE, Node, NodeEventHandler(engine, queue, timing)
    watched: dict[type[ApiObject], AnyEventResource | None] = dict(WATCHED)
    registered = registered_kinds(cycle.profile for cycle in engine.cycles.values())
    watched.update((kind.view, kind) for kind in registered if kind.view is not None)
    for view, resource in watched.items():
        kind = resource if isinstance(resource, Kind) else kind_of_view(view)
        yield kind, view, ObjectEventHandler(view, resource, engine, queue, timing)


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


class NodeEventHandler:
    """The sink for nodes."""

    def __init__(self, engine: Engine, queue: SchedulingQueue, timing: EventTiming | None = None) -> None:
        self._columns = engine.columns
        self._queue = queue
        self._timing = timing if timing is not None else EventTiming()

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
        timing: EventTiming | None = None,
    ) -> None:
        self._store = engine.columns.objects.of(kind)
        self._queue = queue
        self._timing = timing if timing is not None else EventTiming()
        self._events = (
            {each: ClusterEvent(resource, each) for each in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)}
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
