"""What wakes pods that were refused for their volumes: hints of VolumeBinding and NodeVolumeLimits, and shared ones.

Comes in   claims, classes, drivers, capacities, CSINodes and attachments as they change; pods that are gone
Goes out   whether that can help a sleeping pod

Pods of one signature have volumes of their own, so hints that look at the pod's volumes are asked for each pod. Those
that look at the change alone are marked as `by_shape`.
"""

from __future__ import annotations

from mooring.api.csi_translation import DRIVERS, MIGRATED, TranslationError, plugin_of, translate_inline
from mooring.api.quantity import quantity_value
from mooring.api.storage import claim_named_by
from mooring.api.views.base import RawQuantity
from mooring.api.views.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.api.views.volumes import Volume
from mooring.scheduler.cache.csinodes import MIGRATED_PLUGINS
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
)


def volume_binding_events() -> tuple[ClusterEventWithHint, ...]:
    """What can help a pod that VolumeBinding refused."""
    any_change = ActionType.ADD | ActionType.UPDATE
    return (
        ClusterEventWithHint(EventResource.STORAGE_CLASS, any_change, _is_allowed_elsewhere, per_signature=True),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, any_change, needs_claim),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME, any_change),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEventWithHint(EventResource.CSI_NODE, any_change, _migrates_otherwise, per_signature=True),
        ClusterEventWithHint(EventResource.CSI_DRIVER, ActionType.UPDATE, _stops_counting),
        ClusterEventWithHint(EventResource.CSI_STORAGE_CAPACITY, any_change, _has_more_space, per_signature=True),
    )


def node_volume_limits_events() -> tuple[ClusterEventWithHint, ...]:
    """What can help a pod that NodeVolumeLimits refused."""
    return (
        ClusterEventWithHint(EventResource.CSI_NODE, ActionType.ADD),
        ClusterEventWithHint(EventResource.CSI_NODE, ActionType.UPDATE, _raises_a_limit, per_signature=True),
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _may_detach, per_signature=True),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, needs_claim),
        ClusterEventWithHint(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _may_attach_instead),
    )


def names_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    """A claim came, or changed: does the pod name it? (The claims of ephemeral volumes are not named, but implied.)"""
    return queue_if(bool(pod.claims) and new.key in pod.claims)


def needs_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    """A claim came, or changed: does the pod need it, be it for an ephemeral volume?"""
    metadata = new.metadata
    return queue_if(
        metadata.namespace == pod.namespace
        and any(claim_named_by(volume, pod.name) == metadata.name for volume in pod.volumes)
    )


def may_be_attached(volume: Volume) -> bool:
    """Whether a driver may have to attach the volume."""
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or plugin_of(volume) is not None


# --- VolumeBinding ----------------------------------------------------------------------------------------------


def _is_allowed_elsewhere(pod: PodInfo, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    return queue_if(old is None or old.allowed_topologies != new.allowed_topologies)


def _migrates_otherwise(pod: PodInfo, old: CSINode | None, new: CSINode) -> QueueingHint:
    if old is None:
        return QueueingHint.QUEUE
    before, after = old.metadata.annotations, new.metadata.annotations
    return queue_if(before.get(MIGRATED_PLUGINS, "") != after.get(MIGRATED_PLUGINS, ""))


def _stops_counting(pod: PodInfo, old: CSIDriver, new: CSIDriver) -> QueueingHint:
    """A driver no longer tells its capacity. kube-scheduler asks for volumes in the pod itself, not for its claims."""
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return QueueingHint.SKIP
    return queue_if(any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.volumes))


def _has_more_space(pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> QueueingHint:
    if old is None:
        return QueueingHint.QUEUE
    before, after = _largest_volume(old), _largest_volume(new)
    return queue_if(after is not None and (before is None or quantity_value(after) > quantity_value(before)))


def _largest_volume(capacity: CSIStorageCapacity) -> RawQuantity | None:
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity


# --- NodeVolumeLimits -------------------------------------------------------------------------------------------


def _raises_a_limit(pod: PodInfo, old: CSINode, new: CSINode) -> QueueingHint:
    """A driver without a limit counts as one that attaches nothing, as in kube-scheduler."""
    before = _limits(old)
    return queue_if(any(limit > before.get(driver, 0) for driver, limit in _limits(new).items()))


def _limits(node: CSINode) -> dict[str, int]:
    drivers = node.spec.drivers
    return {each.name: (each.allocatable.count or 0) if each.allocatable is not None else 0 for each in drivers}


def _may_detach(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """A pod is gone: does a volume of some driver go with it?"""
    return queue_if(
        bool(old.volumes) and has_node_or_nomination(old) and any(may_be_attached(volume) for volume in old.volumes)
    )


def _may_attach_instead(pod: PodInfo, old: VolumeAttachment, new: None) -> QueueingHint:
    """A volume was detached: does the pod bring one that may take its place?"""
    return queue_if(
        any(
            volume.persistent_volume_claim is not None or _may_be_of(old.spec.attacher, volume)
            for volume in pod.volumes
        )
    )


def _may_be_of(driver: str, volume: Volume) -> bool:
    """Whether a volume written into a pod is of this driver, or cannot be read as any driver's."""
    plugin = plugin_of(volume)
    if plugin is None or DRIVERS[plugin] == driver:
        return plugin is not None
    try:
        if plugin in MIGRATED:
            translate_inline(volume)
    except TranslationError:
        return True
    return False
