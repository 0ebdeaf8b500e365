"""Sleeping pods for tests: would this change wake that pod?

wakes(NodePorts, pod(ports=["80"]), gone=pod(ports=["80"], on="n1"))
wakes(NodeAffinity, pod(node_labels={"disk": "ssd"}), before=node(), after=node(labels={"disk": "ssd"}))

What happened is given as views and becomes the events that intake would make of it.
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
from mooring.scheduler.framework.changes import node_events, pod_events
from mooring.scheduler.framework.events import Action, ClusterEvent, Subject, Wake
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.framework.waking import wakes_of_plugin
from tests.scheduler.harness import engine_of, plugin_of

SUBJECTS: Mapping[type[ApiObject], Subject] = {
    Node: Subject.NODE,
    PersistentVolume: Subject.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Subject.PERSISTENT_VOLUME_CLAIM,
    StorageClass: Subject.STORAGE_CLASS,
    CSINode: Subject.CSI_NODE,
    CSIDriver: Subject.CSI_DRIVER,
    CSIStorageCapacity: Subject.CSI_STORAGE_CAPACITY,
    VolumeAttachment: Subject.VOLUME_ATTACHMENT,
    DeviceClass: Subject.DEVICE_CLASS,
    Namespace: Subject.NAMESPACE,
    Service: Subject.SERVICE,
}


class Change(TypedDict, total=False):
    """What happened: something came, is gone, or is not what it was before."""

    came: ApiObject
    gone: ApiObject
    before: ApiObject | None
    after: ApiObject | None


Happening = tuple[ClusterEvent, Any, Any]
"""An event with what was before and what is after."""


def wakes(
    kind: type[Plugin],
    asleep: Pod,
    *known: ApiObject,
    config: Mapping[str, Any] | None = None,
    **change: Unpack[Change],
) -> bool:
    """Whether a pod that only this plugin refused is woken, in a cluster with the `known` objects."""
    engine = engine_of(*known, config=config)
    old, new = change.get("gone") or change.get("before"), change.get("came") or change.get("after")
    pod = engine.record(new if isinstance(new, Pod) and is_same(new, asleep) else asleep)
    return is_woken(wakes_of_plugin(plugin_of(engine, kind)), pod, happenings(engine, old, new))


def is_woken(wakes: Iterable[Wake], pod: PodInfo, happened: Iterable[Happening]) -> bool:
    """Whether one of the wakes hears one of the events and does not say no."""
    wakes = tuple(wakes)
    return any(
        wake.hears(event) and (wake.hint is None or wake.hint(pod, old, new))
        for event, old, new in happened
        for wake in wakes
    )


def happenings(engine: Engine, old: ApiObject | None, new: ApiObject | None) -> list[Happening]:
    """The events that intake makes of a change."""
    some = new if new is not None else old
    assert some is not None, "nothing happened"
    if isinstance(old, Node) and isinstance(new, Node):
        return [(event, old, new) for event in node_events(old, new)]
    if isinstance(some, Pod):
        return _of_pods(engine, old, new)
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    subject = SUBJECTS.get(type(some))
    return [(ClusterEvent(subject, action), old, new)] if subject is not None else []


def _of_pods(engine: Engine, old: ApiObject | None, new: ApiObject | None) -> list[Happening]:
    before = _record(engine, old) if isinstance(old, Pod) else None
    after = _record(engine, new) if isinstance(new, Pod) else None
    if before is not None and after is not None:
        subject = Subject.ASSIGNED_POD if after.node_name else Subject.PENDING_POD
        return [(event, before, after) for event in pod_events(before, after, subject)]
    action = Action.ADD if before is None else Action.DELETE
    return [(ClusterEvent(Subject.ASSIGNED_POD, action), before, after)]


def _record(engine: Engine, view: Pod) -> PodInfo:
    record = engine.record(view)
    if record.node_name:
        record.view = None
    return record


def is_same(one: Pod, other: Pod) -> bool:
    return (one.metadata.uid or one.key) == (other.metadata.uid or other.key)
