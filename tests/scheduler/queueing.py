"""Queueing hints for tests: does this change queue a pod that the plugin rejected?

queues(NodePorts, pod(ports=["80"]), gone=pod(ports=["80"], on="n1"))
queues(NodeAffinity, pod(node_labels={"disk": "ssd"}), before=node(), after=node(labels={"disk": "ssd"}))

A change is given as views. `change_events` makes the events that the event handlers make of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack

from mooring.api.views.devices import DeviceClass
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
from mooring.api.views.workloads import Namespace, Service
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    node_events,
    pod_events,
)
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.queue.queueing_hints import plugin_events
from tests.scheduler.harness import engine_of, plugin_of

RESOURCES: Mapping[type[ApiObject], EventResource] = {
    Node: EventResource.NODE,
    PersistentVolume: EventResource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: EventResource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: EventResource.STORAGE_CLASS,
    CSINode: EventResource.CSI_NODE,
    CSIDriver: EventResource.CSI_DRIVER,
    CSIStorageCapacity: EventResource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: EventResource.VOLUME_ATTACHMENT,
    DeviceClass: EventResource.DEVICE_CLASS,
    Namespace: EventResource.NAMESPACE,
    Service: EventResource.SERVICE,
}


class Change(TypedDict, total=False):
    """What changes: something came, is gone, or is not what it was before."""

    came: ApiObject
    gone: ApiObject
    before: ApiObject | None
    after: ApiObject | None


ObjectEvent = tuple[ClusterEvent, Any, Any]
"""An event with the object before and after."""


def queues(
    kind: type[Plugin],
    rejected: Pod,
    *known: ApiObject,
    config: Mapping[str, Any] | None = None,
    **change: Unpack[Change],
) -> bool:
    """Whether a change queues a pod that only this plugin rejected, in a cluster with the `known` objects."""
    engine = engine_of(*known, config=config)
    old, new = change.get("gone") or change.get("before"), change.get("came") or change.get("after")
    pod = engine.record(new if isinstance(new, Pod) and is_same(new, rejected) else rejected)
    return any_hint_queues(plugin_events(plugin_of(engine, kind)), pod, change_events(engine, old, new))


def any_hint_queues(events: Iterable[ClusterEventWithHint], pod: PodInfo, changes: Iterable[ObjectEvent]) -> bool:
    """Whether one of the registrations matches one of the events, and its hint does not return SKIP."""
    registrations = tuple(events)
    return any(
        registered.matches(event)
        and (registered.queueing_hint_fn is None or registered.queueing_hint_fn(pod, old, new))
        for event, old, new in changes
        for registered in registrations
    )


def change_events(engine: Engine, old: ApiObject | None, new: ApiObject | None) -> list[ObjectEvent]:
    """The events that the event handlers make of a change."""
    some = new if new is not None else old
    assert some is not None, "nothing changes"
    if isinstance(old, Node) and isinstance(new, Node):
        return [(event, old, new) for event in node_events(old, new)]
    if isinstance(some, Pod):
        return _pod_change_events(engine, old, new)
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    resource = RESOURCES.get(type(some))
    return [(ClusterEvent(resource, action), old, new)] if resource is not None else []


def _pod_change_events(engine: Engine, old: ApiObject | None, new: ApiObject | None) -> list[ObjectEvent]:
    before = _record(engine, old) if isinstance(old, Pod) else None
    after = _record(engine, new) if isinstance(new, Pod) else None
    if before is not None and after is not None:
        resource = EventResource.ASSIGNED_POD if after.node_name else EventResource.UNSCHEDULABLE_POD
        return [(event, before, after) for event in pod_events(before, after, resource)]
    action = ActionType.ADD if before is None else ActionType.DELETE
    return [(ClusterEvent(EventResource.ASSIGNED_POD, action), before, after)]


def _record(engine: Engine, view: Pod) -> PodInfo:
    record = engine.record(view)
    if record.node_name:
        record.view = None
    return record


def is_same(one: Pod, other: Pod) -> bool:
    return (one.metadata.uid or one.key) == (other.metadata.uid or other.key)
