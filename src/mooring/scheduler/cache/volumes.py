"""Volumes of placed pods: which claims and which disks are in use where, and what drivers have attached.

Comes in   pods as they come and go
Goes out   users of a claim and holders of a disk, by row; what drivers have attached, and how much they can

 1. Only pods with volumes are looked at, so that a cluster without volumes pays nothing; counts by driver are kept only
    once somebody wants them.
 2. Claims of ephemeral volumes are not counted as used by name: kube-scheduler counts those that a pod names itself.
 3. `place` and `displace` are exact inverses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mooring.api.views.volumes import Volume
from mooring.scheduler.cache.attachments import AttachmentColumns, CsiNodeColumns
from mooring.scheduler.cache.claimed_volumes import ClaimedVolumes
from mooring.scheduler.cache.pods import PodInfo

if TYPE_CHECKING:
    from mooring.scheduler.cache.columns import Columns


class Disk(NamedTuple):
    """A disk that a pod names itself, and that not everybody may use at the same time."""

    identity: tuple[str, ...]
    read_only: bool
    """Disks that all their users only read can be shared, except for Amazon's."""
    monitors: frozenset[str] = frozenset()
    """Of a Ceph image: the same name is the same image only where monitors are shared."""

    def conflicts_with(self, other: Disk) -> bool:
        return (
            self.identity == other.identity
            and not (self.read_only and other.read_only)
            and (not self._is_image or not self.monitors.isdisjoint(other.monitors))
        )

    @property
    def _is_image(self) -> bool:
        return self.identity[0] == "rbd"


class AttachedVolumes(NamedTuple):
    """What is attached where, and how much can be."""

    csi_nodes: CsiNodeColumns
    attachments: AttachmentColumns
    claimed: ClaimedVolumes

    def sync(self) -> None:
        """To be called before anything is read: nodes may have come or gone."""
        self.csi_nodes.sync()
        self.attachments.sync()


class VolumeColumns:
    """Claims and disks in use, by row."""

    __slots__ = ("_attached", "_csi_nodes", "_disks", "_users")

    def __init__(self) -> None:
        self._users: dict[str, dict[int, int]] = {}
        self._disks: dict[tuple[str, ...], dict[str, tuple[int, tuple[Disk, ...]]]] = {}
        self._csi_nodes: CsiNodeColumns | None = None
        self._attached: AttachedVolumes | None = None

    def place(self, pod: PodInfo, row: int) -> None:
        for claim in pod.claims:
            rows = self._users.setdefault(claim, {})
            rows[row] = rows.get(row, 0) + 1
        disks = disks_of(pod.volumes)
        for disk in disks:
            self._disks.setdefault(disk.identity, {})[pod.uid] = (row, disks)
        if self._attached is not None:
            self._attached.claimed.place(pod, row)

    def displace(self, pod: PodInfo, row: int) -> None:
        for claim in pod.claims:
            rows = self._users[claim]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
                if not rows:
                    del self._users[claim]
        for disk in disks_of(pod.volumes):
            users = self._disks.get(disk.identity, {})
            users.pop(pod.uid, None)
            if not users:
                self._disks.pop(disk.identity, None)
        if self._attached is not None:
            self._attached.claimed.displace(pod, row)

    def users_of(self, claim: str) -> Mapping[int, int]:
        """How many pods of each row name this claim."""
        return self._users.get(claim, {})

    def conflicting_pods(self, disks: Iterable[Disk]) -> Mapping[int, int]:
        """How many pods of each row have a disk that conflicts with one of these."""
        rows: dict[str, int] = {}
        for disk in disks:
            for uid, (row, others) in self._disks.get(disk.identity, {}).items():
                if any(disk.conflicts_with(other) for other in others):
                    rows[uid] = row
        counts: dict[int, int] = {}
        for row in rows.values():
            counts[row] = counts.get(row, 0) + 1
        return counts

    def csi_nodes(self, columns: Columns) -> CsiNodeColumns:
        """What drivers say about the nodes. To be synced before it is read."""
        if self._csi_nodes is None:
            self._csi_nodes = CsiNodeColumns(columns)
        return self._csi_nodes

    def attached(self, columns: Columns) -> AttachedVolumes:
        """The counts of attached volumes, from now on kept up to date."""
        if self._attached is None:
            attachments = AttachmentColumns(columns)
            claimed = ClaimedVolumes(columns, attachments)
            self._attached = AttachedVolumes(self.csi_nodes(columns), attachments, claimed)
        return self._attached


def disks_of(volumes: Iterable[Volume]) -> tuple[Disk, ...]:
    """The disks among a pod's volumes that conflict with others of their kind."""
    found: list[Disk] = []
    for volume in volumes:
        gce, ebs, iscsi, rbd = volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd
        if gce is not None:
            found.append(Disk(("gce", gce.pd_name), gce.read_only))
        if ebs is not None:
            found.append(Disk(("ebs", ebs.volume_id), read_only=False))
        if iscsi is not None:
            found.append(Disk(("iscsi", iscsi.iqn), iscsi.read_only))
        if rbd is not None:
            found.append(Disk(("rbd", rbd.pool, rbd.image), rbd.read_only, frozenset(rbd.monitors)))
    return tuple(found)
