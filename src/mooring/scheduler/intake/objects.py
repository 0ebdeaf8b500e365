"""Intake of everything else that plugins read: into the columns' store of objects, and to the queue as events.

`WATCHED` is the table: which kinds are watched, and what the queue calls a change of them. A kind without a subject is
read by our plugins but wakes none of their pods: no change of it makes a refused pod schedulable by itself. A user's
plugin may name it all the same, or a kind that is not in the table: then its row is the subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.api.views.meta import ApiObject
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
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import About, Action, ClusterEvent, Subject
from mooring.scheduler.intake.unreadable import UNREADABLE, leave_out
from mooring.scheduler.queue.queue import SchedulingQueue

AnyKind = TypeVar("AnyKind", bound=ApiObject)

WATCHED: Mapping[type[ApiObject], Subject | None] = {
    Namespace: Subject.NAMESPACE,
    PersistentVolume: Subject.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Subject.PERSISTENT_VOLUME_CLAIM,
    StorageClass: Subject.STORAGE_CLASS,
    CSINode: Subject.CSI_NODE,
    CSIDriver: Subject.CSI_DRIVER,
    CSIStorageCapacity: Subject.CSI_STORAGE_CAPACITY,
    VolumeAttachment: Subject.VOLUME_ATTACHMENT,
    ResourceClaim: Subject.RESOURCE_CLAIM,
    ResourceSlice: Subject.RESOURCE_SLICE,
    DeviceClass: Subject.DEVICE_CLASS,
    Service: Subject.SERVICE,
    ReplicationController: None,
    ReplicaSet: None,
    StatefulSet: None,
    PodDisruptionBudget: None,
}


class ObjectIntake(Generic[AnyKind]):
    """The sink for one kind."""

    def __init__(self, kind: type[AnyKind], subject: About | None, engine: Engine, queue: SchedulingQueue) -> None:
        self._store = engine.columns.objects.of(kind)
        self._queue = queue
        self._events = (
            {action: ClusterEvent(subject, action) for action in (Action.ADD, Action.UPDATE, Action.DELETE)}
            if subject is not None
            else {}
        )

    def replace(self, views: Sequence[AnyKind], revision: str) -> None:
        present = {view.key for view in views}
        for gone in [known for known in self._store if known.key not in present]:
            self._remove(gone.key)
        for view in views:
            self._put(view)

    def apply(self, change: Change, view: AnyKind) -> None:
        if change is Change.DELETED:
            self._remove(view.key)
        else:
            self._put(view)

    def _put(self, new: AnyKind) -> None:
        old = self._store.get(new.key)
        if old is not None and old.metadata.resource_version == new.metadata.resource_version != "":
            return
        try:
            self._store.put(new)
        except UNREADABLE as error:
            leave_out(new, error)
            return
        self._tell(Action.ADD if old is None else Action.UPDATE, old, new)

    def _remove(self, key: str) -> None:
        old = self._store.remove(key)
        if old is not None:
            self._tell(Action.DELETE, old, None)

    def _tell(self, action: Action, old: AnyKind | None, new: AnyKind | None) -> None:
        event = self._events.get(action)
        if event is not None:
            self._queue.wake(event, old, new)
