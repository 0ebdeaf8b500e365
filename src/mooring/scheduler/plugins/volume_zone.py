"""VolumeZone: a volume whose labels name a zone or region is accessible only from there.

Input: the PersistentVolumes bound to a pod's claims, and their labels. Output: rejected nodes in other zones. Newer
volumes have a node affinity instead.

1. A label may list several zones, separated by `__`. A list with an empty entry is ignored.
2. A claim that waits for its first consumer has no volume and no zone. Any other claim without a volume rejects the pod
   on all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.api.csi_translation import ZONES_SEPARATOR
from mooring.api.storage import WAIT_FOR_FIRST_CONSUMER, class_of_claim, not_found_text
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.obstacle import SHORT_NAMES, ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import SKIP, Filter, PreFilter, Proceed, Skip
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.scheduler.plugins.volume_binding.topology import TOPOLOGY_LABELS, LabelledZones, VolumeTopology
from mooring.scheduler.plugins.volume_restrictions import names_claim

Zones = tuple[LabelledZones, ...]


class VolumeZone(PreFilter[Zones], Filter[Zones]):
    name = "VolumeZone"
    obstacle_kind = ObstacleKind.VOLUME
    only_for_volumes = True
    filter_reasons = (Reason("node(s) had no available volume zone", Code.UNRESOLVABLE),)

    def __init__(self, columns: Columns) -> None:
        self._claims = columns.objects.of(PersistentVolumeClaim)
        self._volumes = columns.objects.of(PersistentVolume)
        self._classes = columns.objects.of(StorageClass)
        self._topology = VolumeTopology(columns)

    def pre_filter(self, pod: PodInfo) -> Proceed[Zones] | Skip | Status:
        if not pod.claims:
            return SKIP
        zones: list[LabelledZones] = []
        for key in pod.claims:
            volume = self._volume_of(key, key.removeprefix(f"{pod.namespace}/"))
            if isinstance(volume, Status):
                return volume
            if volume is not None:
                zones += zones_of(volume)
        return Proceed(tuple(zones)) if zones else SKIP

    def filter(self, state: Zones, rows: Rows) -> Int64s:
        return (~self._topology.zoned(state)[rows]).astype(np.int64)

    def explain(self, state: Zones, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        """The volumes whose labels name other zones."""
        found = []
        for key in context.pod.claims:
            volume = self._volume_of(key, key.rpartition("/")[2])
            if not isinstance(volume, PersistentVolume):
                continue
            for zones in zones_of(volume):
                if not self._topology.zoned((zones,))[row]:
                    where = f"{SHORT_NAMES.get(zones.key, zones.key)} is {' or '.join(zones.values)}"
                    text = f"volume {volume.metadata.name} of claim {key} can only be used where {where}"
                    details = {"claim": key, "volume": volume.metadata.name}
                    found.append(Obstacle(self.name, self.obstacle_kind, text, details))
        return found or super().explain(state, row, bits, context)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.STORAGE_CLASS, ActionType.ADD, _waits_for_consumer, per_signature=True),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            ClusterEventWithHint(
                EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE, names_claim
            ),
            ClusterEventWithHint(
                EventResource.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE, _changes_zones, per_signature=True
            ),
        )

    def _volume_of(self, key: str, name: str) -> PersistentVolume | Status | None:
        """The volume of a claim; None if the claim waits for its first consumer."""
        if not name:
            return Status.unresolvable("PersistentVolumeClaim had no name")
        claim = self._claims.get(key)
        if claim is None:
            return Status.unresolvable(not_found_text("persistentvolumeclaim", name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            return self._why_unbound(claim)
        volume = self._volumes.get(volume_name)
        return volume if volume is not None else Status.unresolvable(not_found_text("persistentvolume", volume_name))

    def _why_unbound(self, claim: PersistentVolumeClaim) -> Status | None:
        class_name = class_of_claim(claim)
        if not class_name:
            return Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._classes.get(class_name)
        if storage_class is None:
            return Status.unresolvable(not_found_text("storageclass.storage.k8s.io", class_name))
        if storage_class.volume_binding_mode is None:
            return Status.unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return Status.unresolvable("PersistentVolume had no name")


def zones_of(volume: PersistentVolume) -> list[LabelledZones]:
    """The zones and regions in a volume's labels, in kube-scheduler's order."""
    labels = volume.metadata.labels
    found: list[LabelledZones] = []
    for key in TOPOLOGY_LABELS if labels else ():
        listed = labels.get(key)
        if listed is not None:
            values = tuple(value.strip() for value in listed.split(ZONES_SEPARATOR))
            if all(values):
                found.append(LabelledZones(key, values))
    return found


def _waits_for_consumer(pod: PodInfo, old: None, new: StorageClass) -> QueueingHint:
    return queue_if(new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def _changes_zones(pod: PodInfo, old: PersistentVolume | None, new: PersistentVolume) -> QueueingHint:
    return queue_if(old is None or _zone_sets(old) != _zone_sets(new))


def _zone_sets(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    return [(zones.key, frozenset(zones.values)) for zones in zones_of(volume)]
