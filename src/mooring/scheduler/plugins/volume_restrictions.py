"""VolumeRestrictions: disks that cannot be shared, and claims that only one pod may use.

Input: the pod's inline disks, and its claims with access mode ReadWriteOncePod. Output: rejected nodes: those where a
pod uses the same disk, and all nodes while a pod uses the claim. Preemption can remove either pod.

1. Uses are counted once, in PreFilter. Preemption adds differences to the counts: see `Adjustable`.
2. As in kube-scheduler v1.36, a claim in use counts once, however many pods use it; but for a pod that is added or
   removed each mention counts, even of a claim with the same name in another namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.api.storage import READ_WRITE_ONCE_POD, not_found_text
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.volumes import Disk, disks_of
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import SKIP, Adjustable, PreFilter, Proceed, Skip
from mooring.scheduler.framework.status import Reason, Status

_NO_DISK = 1
_CLAIM_IN_USE = 2

_CLAIM_USES = 0
_DISK_HOLDERS = 1
_MEASURES = 2


@dataclass(frozen=True, slots=True)
class RestrictedVolumes:
    """The pod's disks and exclusive claims, and how often they are in use."""

    disks: tuple[Disk, ...]
    disk_holders: Mapping[int, int]
    """Number of pods with a conflicting disk, by row."""
    exclusive_claims: frozenset[str]
    claims_in_use: int


class VolumeRestrictions(PreFilter[RestrictedVolumes], Adjustable[RestrictedVolumes]):
    name = "VolumeRestrictions"
    obstacle_kind = ObstacleKind.VOLUME
    only_for_volumes = True
    filter_reasons = (
        Reason("node(s) had no available disk"),
        Reason(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod"
        ),
    )

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._claims = columns.objects.of(PersistentVolumeClaim)

    def pre_filter(self, pod: PodInfo) -> Proceed[RestrictedVolumes] | Skip | Status:
        if not pod.volumes:
            return SKIP
        exclusive: list[str] = []
        for key in pod.claims:
            claim = self._claims.get(key)
            if claim is None:
                return Status.unresolvable(
                    not_found_text("persistentvolumeclaim", key.removeprefix(f"{pod.namespace}/"))
                )
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.append(key)
        volumes = self._columns.volumes
        disks = disks_of(pod.volumes)
        in_use = sum(1 for key in dict.fromkeys(exclusive) if volumes.users_of(key))
        if not disks and not in_use:
            return SKIP
        names = frozenset(key.removeprefix(f"{pod.namespace}/") for key in exclusive)
        return Proceed(RestrictedVolumes(disks, volumes.conflicting_pods(disks), names, in_use))

    def filter(self, state: RestrictedVolumes, rows: Rows) -> Int64s:
        return _conflicts(self._holders(state)[rows], state.claims_in_use)

    def measures(self, state: RestrictedVolumes) -> int:
        return _MEASURES

    def contribution(self, state: RestrictedVolumes, pod: PodInfo, row: int) -> tuple[int, int]:
        others = disks_of(pod.volumes)
        return _claims_named(state, pod), int(
            any(mine.conflicts_with(other) for mine in state.disks for other in others)
        )

    def filter_adjusted(self, state: RestrictedVolumes, rows: Int64s, difference: Int64s) -> Int64s:
        holders = self._holders(state)[rows] + difference[_DISK_HOLDERS]
        return _conflicts(holders, state.claims_in_use + difference[_CLAIM_USES])

    def explain(self, state: RestrictedVolumes, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        found = []
        for name in sorted(state.exclusive_claims) if bits == _CLAIM_IN_USE else ():
            key = f"{context.pod.namespace}/{name}"
            user = self._user_of(key)
            if user is not None:
                text = f"claim {key} is for one pod only (ReadWriteOncePod), and {user.key} uses it"
                found.append(Obstacle(self.name, ObstacleKind.VOLUME, text, {"claim": key, "usedBy": user.key}))
        return found or super().explain(state, row, bits, context)

    def _user_of(self, claim: str) -> PodInfo | None:
        rows = self._columns.volumes.users_of(claim)
        return next((pod for row in rows for pod in self._columns.pods_on[row].values() if claim in pod.claims), None)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_a_volume),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
            ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, names_claim),
        )

    def _holders(self, state: RestrictedVolumes) -> Int64s:
        """Per row: number of pods with a conflicting disk."""
        holders = np.zeros(self._columns.height, dtype=np.int64)
        for row, pods in state.disk_holders.items():
            holders[row] = pods
        return holders


def _conflicts(disk_holders: Int64s, claims_in_use: Int64s | int) -> Int64s:
    """Per row: the bit for a disk in use, otherwise the bit for a claim in use."""
    claim_conflict = np.where(np.greater(claims_in_use, 0), _CLAIM_IN_USE, 0)
    return np.where(disk_holders > 0, _NO_DISK, claim_conflict)


def _claims_named(state: RestrictedVolumes, pod: PodInfo) -> int:
    return sum(
        volume.persistent_volume_claim is not None
        and volume.persistent_volume_claim.claim_name in state.exclusive_claims
        for volume in pod.volumes
    )


def names_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    """Whether the pod names the claim that was added or updated; ephemeral volumes name no claim."""
    return queue_if(bool(pod.claims) and new.key in pod.claims)


def _frees_a_volume(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """Whether the deleted pod used a disk or claim of this pod. Other users are not checked."""
    if not pod.volumes or not old.volumes or old.namespace != pod.namespace:
        return QueueingHint.SKIP
    if not set(pod.claims).isdisjoint(old.claims):
        return QueueingHint.QUEUE
    others = disks_of(old.volumes)
    return queue_if(any(mine.conflicts_with(other) for mine in disks_of(pod.volumes) for other in others))
