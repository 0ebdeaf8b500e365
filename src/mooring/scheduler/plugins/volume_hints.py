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
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.hints import takes_up_room


def volume_binding_wakes() -> tuple[Wake, ...]:
    """What can help a pod that VolumeBinding refused."""
    any_change = Action.ADD | Action.UPDATE
    return (
        Wake(Subject.STORAGE_CLASS, any_change, _is_allowed_elsewhere, by_signature=True),
        Wake(Subject.PERSISTENT_VOLUME_CLAIM, any_change, needs_claim),
        Wake(Subject.PERSISTENT_VOLUME, any_change),
        Wake(Subject.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        Wake(Subject.CSI_NODE, any_change, _migrates_otherwise, by_signature=True),
        Wake(Subject.CSI_DRIVER, Action.UPDATE, _stops_counting),
        Wake(Subject.CSI_STORAGE_CAPACITY, any_change, _has_more_space, by_signature=True),
    )


def node_volume_limits_wakes() -> tuple[Wake, ...]:
    """What can help a pod that NodeVolumeLimits refused."""
    return (
        Wake(Subject.CSI_NODE, Action.ADD),
        Wake(Subject.CSI_NODE, Action.UPDATE, _raises_a_limit, by_signature=True),
        Wake(Subject.ASSIGNED_POD, Action.DELETE, _may_detach, by_signature=True),
        Wake(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD, needs_claim),
        Wake(Subject.VOLUME_ATTACHMENT, Action.DELETE, _may_attach_instead),
    )


def names_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """A claim came, or changed: does the pod name it? (The claims of ephemeral volumes are not named, but implied.)"""
    return bool(pod.claims) and new.key in pod.claims


def needs_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """A claim came, or changed: does the pod need it, be it for an ephemeral volume?"""
    metadata = new.metadata
    return metadata.namespace == pod.namespace and any(
        claim_named_by(volume, pod.name) == metadata.name for volume in pod.volumes
    )


def may_be_attached(volume: Volume) -> bool:
    """Whether a driver may have to attach the volume."""
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or plugin_of(volume) is not None


# --- VolumeBinding ----------------------------------------------------------------------------------------------


def _is_allowed_elsewhere(pod: PodInfo, old: StorageClass | None, new: StorageClass) -> bool:
    return old is None or old.allowed_topologies != new.allowed_topologies


def _migrates_otherwise(pod: PodInfo, old: CSINode | None, new: CSINode) -> bool:
    if old is None:
        return True
    before, after = old.metadata.annotations, new.metadata.annotations
    return before.get(MIGRATED_PLUGINS, "") != after.get(MIGRATED_PLUGINS, "")


def _stops_counting(pod: PodInfo, old: CSIDriver, new: CSIDriver) -> bool:
    """A driver no longer tells its capacity. kube-scheduler asks for volumes in the pod itself, not for its claims."""
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return False
    return any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.volumes)


def _has_more_space(pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
    if old is None:
        return True
    before, after = _largest_volume(old), _largest_volume(new)
    return after is not None and (before is None or quantity_value(after) > quantity_value(before))


def _largest_volume(capacity: CSIStorageCapacity) -> RawQuantity | None:
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity


# --- NodeVolumeLimits -------------------------------------------------------------------------------------------


def _raises_a_limit(pod: PodInfo, old: CSINode, new: CSINode) -> bool:
    """A driver without a limit counts as one that attaches nothing, as in kube-scheduler."""
    before = _limits(old)
    return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())


def _limits(node: CSINode) -> dict[str, int]:
    drivers = node.spec.drivers
    return {each.name: (each.allocatable.count or 0) if each.allocatable is not None else 0 for each in drivers}


def _may_detach(pod: PodInfo, old: PodInfo, new: None) -> bool:
    """A pod is gone: does a volume of some driver go with it?"""
    return bool(old.volumes) and takes_up_room(old) and any(may_be_attached(volume) for volume in old.volumes)


def _may_attach_instead(pod: PodInfo, old: VolumeAttachment, new: None) -> bool:
    """A volume was detached: does the pod bring one that may take its place?"""
    return any(
        volume.persistent_volume_claim is not None or _may_be_of(old.spec.attacher, volume) for volume in pod.volumes
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
