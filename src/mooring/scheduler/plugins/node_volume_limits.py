"""NodeVolumeLimits: a node can attach a limited number of volumes of each CSI driver.

Input: the volumes behind a pod's claims, the limits of CSINodes, the attached volumes. Output: rejected nodes, where
the pod's new volumes exceed the limit of a driver.

A volume that another pod of the node uses is not counted again. A volume that is attached and that no pod uses counts
as attached and, if the pod uses it, once more as new, as in kube-scheduler v1.36.

1. A missing claim is an error here. Usually another plugin has rejected the pod for it before.
2. If a placed pod's ephemeral claim is owned by another object, the attached volumes of its node are unknown: the node
   ends in an error. Beyond `ERRORS_MAX` different errors, the last text stands for the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from mooring.api.csi_translation import DRIVERS, MIGRATED, TranslationError, plugin_of, translate_inline
from mooring.api.storage import (
    claim_named_by,
    not_found_text,
)
from mooring.api.views.storage import (
    CSINode,
    PersistentVolumeClaim,
    Volume,
    VolumeAttachment,
)
from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, length_of, row_numbers
from mooring.scheduler.cache.attachments import AttachableVolume
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.volumes import (
    volume_error,
    volume_of_claim,
    volume_of_inline,
)
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
)
from mooring.scheduler.framework.obstacle import ObstacleKind
from mooring.scheduler.framework.plugin import SKIP, Filter, PreFilter, Proceed, Skip
from mooring.scheduler.framework.status import Code, Reason
from mooring.scheduler.plugins.volume_binding.plugin import needs_claim

ERRORS_MAX = 32
"""Maximum number of different errors in one result."""

_EXCEEDED = Reason("node(s) exceed max volume count")


@dataclass(slots=True)
class NewVolumes:
    """The volumes that a pod attaches, by driver, or the error that prevents counting them."""

    by_driver: dict[str, dict[AttachableVolume, None]] = field(default_factory=dict)
    error: Reason | None = None
    """The error on nodes with a CSINode."""
    error_without_csi_node: Reason | None = None
    """The error on nodes without a CSINode, where in-tree volumes are not counted."""
    reasons: list[Reason] = field(default_factory=lambda: [_EXCEEDED])

    def bit(self, reason: Reason) -> int:
        if reason not in self.reasons:
            if len(self.reasons) > ERRORS_MAX:
                return 1 << ERRORS_MAX
            self.reasons.append(reason)
        return 1 << self.reasons.index(reason)


class NodeVolumeLimits(PreFilter[NewVolumes], Filter[NewVolumes]):
    name = "NodeVolumeLimits"
    obstacle_kind = ObstacleKind.VOLUME
    only_for_volumes = True

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._claims = columns.objects.of(PersistentVolumeClaim)
        self._attached = columns.volumes.attached()

    def pre_filter(self, pod: PodInfo) -> Proceed[NewVolumes] | Skip:
        volumes = [volume for volume in pod.volumes if may_be_attached(volume)]
        if not volumes:
            return SKIP
        self._attached.sync()
        return Proceed(self._new_volumes(pod, volumes))

    def filter(self, state: NewVolumes, rows: Rows) -> Int64s:
        exceeds = self._exceeds(state, rows) if state.error is None else None
        # The first bit is the exceeded limit.
        bits = np.zeros(length_of(rows), dtype=np.int64) if exceeds is None else exceeds.astype(np.int64)
        if state.by_driver and state.error is None:
            self._add_errors_of_placed_pods(state, rows, bits)
        if state.error is not None or state.error_without_csi_node is not None:
            has_csi_node = self._attached.csi_nodes.present[rows]
            for error, affected in ((state.error, has_csi_node), (state.error_without_csi_node, ~has_csi_node)):
                if error is not None:
                    bits[affected] = state.bit(error)
        return bits

    def reasons(self, state: NewVolumes) -> list[Reason]:
        return state.reasons

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.CSI_NODE, ActionType.ADD),
            ClusterEventWithHint(EventResource.CSI_NODE, ActionType.UPDATE, _raises_a_limit, per_signature=True),
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _may_detach, per_signature=True),
            ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, needs_claim),
            ClusterEventWithHint(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _may_attach_instead),
        )

    def _exceeds(self, state: NewVolumes, rows: Rows) -> Bools | None:
        """Per row: whether the pod's volumes exceed the limit of a driver; None if they exceed it nowhere."""
        exceeds: Bools | None = None
        for driver, volumes in state.by_driver.items():
            limits = self._attached.csi_nodes.limits(driver)
            if limits is None:
                continue
            attached = self._attached.attachments.count(driver)
            free = limits[rows] if attached is None else limits[rows] - attached[rows]
            new_counts = self._new_counts(volumes, rows)
            over: Bools = free < new_counts
            if not isinstance(new_counts, int):
                over &= new_counts > 0
            exceeds = over if exceeds is None else exceeds | over
        return exceeds

    def _new_counts(self, volumes: Collection[AttachableVolume], rows: Rows) -> Int64s | int:
        """Per row: how many of the volumes are new there; one number if all rows have the same."""
        counts: Int64s | None = None
        for volume in volumes:
            users = self._attached.attachments.rows_using(volume)
            if users:
                if counts is None:
                    counts = np.full(self._columns.height, len(volumes), dtype=np.int64)
                counts[list(users)] -= 1
        return len(volumes) if counts is None else counts[rows]

    def _add_errors_of_placed_pods(self, state: NewVolumes, rows: Rows, bits: Int64s) -> None:
        errors = self._attached.claimed.errors
        if not errors:
            return
        numbers = row_numbers(rows)
        for place, row in enumerate(numbers):
            if row in errors and self._attached.csi_nodes.limited[row]:
                first = next(uid for uid in self._columns.pods_on[row] if uid in errors[row])
                bits[place] = state.bit(Reason(errors[row][first], Code.ERROR))

    def _new_volumes(self, pod: PodInfo, volumes: list[Volume]) -> NewVolumes:
        state = NewVolumes()
        for volume in volumes:
            found = self._look_up(pod, volume)
            if isinstance(found, Reason):
                state.error = state.error or found
                if claim_named_by(volume, pod.name) is not None:
                    state.error_without_csi_node = found
                    break
            elif found is not None:
                state.by_driver.setdefault(found.driver, {})[found] = None
        return state

    def _look_up(self, pod: PodInfo, volume: Volume) -> AttachableVolume | Reason | None:
        error = volume_error(self._columns.objects, pod, volume)
        if error is not None:
            return Reason(error, Code.ERROR)
        name = claim_named_by(volume, pod.name)
        if name is None:
            return volume_of_inline(volume)
        claim = self._claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            missing = not_found_text("persistentvolumeclaim", name)
            return Reason(f"looking up PVC {pod.namespace}/{name}: {missing}", Code.UNRESOLVABLE)
        return volume_of_claim(self._columns.objects, claim)


def may_be_attached(volume: Volume) -> bool:
    """Whether a CSI driver may have to attach the volume."""
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or plugin_of(volume) is not None


# --- queueing hints ---------------------------------------------------------------------------------------------


def _raises_a_limit(pod: PodInfo, old: CSINode, new: CSINode) -> QueueingHint:
    """Whether a driver's limit grows. As in kube-scheduler, a driver without a limit counts as 0."""
    before = _limits(old)
    return queue_if(any(limit > before.get(driver, 0) for driver, limit in _limits(new).items()))


def _limits(node: CSINode) -> dict[str, int]:
    drivers = node.spec.drivers
    return {driver.name: (driver.allocatable.count or 0) if driver.allocatable is not None else 0 for driver in drivers}


def _may_detach(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """Whether the deleted pod used a volume that a driver attached."""
    return queue_if(
        bool(old.volumes) and has_node_or_nomination(old) and any(may_be_attached(volume) for volume in old.volumes)
    )


def _may_attach_instead(pod: PodInfo, old: VolumeAttachment, new: None) -> QueueingHint:
    """Whether the pod has a volume that may use the freed attachment."""
    return queue_if(
        any(
            volume.persistent_volume_claim is not None or _may_be_of(old.spec.attacher, volume)
            for volume in pod.volumes
        )
    )


def _may_be_of(driver: str, volume: Volume) -> bool:
    """Whether an inline volume is of this driver, or cannot be translated to CSI."""
    plugin = plugin_of(volume)
    if plugin is None or DRIVERS[plugin] == driver:
        return plugin is not None
    try:
        if plugin in MIGRATED:
            translate_inline(volume)
    except TranslationError:
        return True
    return False
