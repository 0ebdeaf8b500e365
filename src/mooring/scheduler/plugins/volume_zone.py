"""VolumeZone: a volume whose labels name a zone or a region is reached only from there.

Comes in   the persistent volumes bound to the claims that a pod names, and their labels
Goes out   refusals of nodes in other zones

Node affinity says the same in newer volumes, and better; this is for those that only carry the labels.

 1. A label may list several zones, separated by `__`. A list with an empty entry is no list: the label is ignored.
 2. Claims that wait for their first consumer have no volume yet, and no zone. Any other claim without a volume keeps
    the pod from being scheduled anywhere.
"""

from __future__ import annotations

import numpy as np

from mooring.api.csi_translation import ZONES_SEPARATOR
from mooring.api.storage import WAIT_FOR_FIRST_CONSUMER, class_of_claim, not_found_text
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.obstacle import ObstacleKind
from mooring.scheduler.framework.plugin import SKIP, Filter, PreFilter, Proceed, Skip
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.scheduler.plugins.volume_hints import names_claim
from mooring.scheduler.plugins.volume_reach import TOPOLOGY_LABELS, LabelledZones, Reach

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
        self._reach = Reach(columns)

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
        return (~self._reach.zoned(state)[rows]).astype(np.int64)

    def wakes(self) -> tuple[Wake, ...]:
        return (
            Wake(Subject.STORAGE_CLASS, Action.ADD, _waits_for_consumer, by_signature=True),
            Wake(Subject.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            Wake(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, names_claim),
            Wake(Subject.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _is_zoned_otherwise, by_signature=True),
        )

    def _volume_of(self, key: str, name: str) -> PersistentVolume | Status | None:
        """The volume bound to a claim; None if there will be one once the pod has a node."""
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
    """The zones and regions that a volume's labels name, in the order in which kube-scheduler looks at them."""
    labels = volume.metadata.labels
    found: list[LabelledZones] = []
    for key in TOPOLOGY_LABELS if labels else ():
        listed = labels.get(key)
        if listed is not None:
            values = tuple(value.strip() for value in listed.split(ZONES_SEPARATOR))
            if all(values):
                found.append(LabelledZones(key, values))
    return found


def _waits_for_consumer(pod: PodInfo, old: None, new: StorageClass) -> bool:
    return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _is_zoned_otherwise(pod: PodInfo, old: PersistentVolume | None, new: PersistentVolume) -> bool:
    return old is None or _zone_sets(old) != _zone_sets(new)


def _zone_sets(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    return [(zones.key, frozenset(zones.values)) for zones in zones_of(volume)]
