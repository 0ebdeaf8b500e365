"""Volumes of placed pods: which claims and disks are in use on which rows.

Input: placed pods. Output: the users of a claim and of a disk, by row; the attached volumes of CSI drivers, on demand.

1. Pods without volumes cost nothing. Attached volumes are counted only after the first call of `attached`.
2. Claims of ephemeral volumes are not counted, as in kube-scheduler: only claims that a pod names.
3. `place` and `displace` are exact inverses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mooring.api.views.storage import Volume
from mooring.scheduler.cache.attachments import AttachmentColumns, CsiNodeColumns, NodeRows
from mooring.scheduler.cache.claimed_volumes import ClaimedVolumes
from mooring.scheduler.cache.pods import PodInfo


class Disk(NamedTuple):
    """An inline disk with restrictions on sharing."""

    identity: tuple[str, ...]
    read_only: bool
    """Pods can share a disk that all of them only read, except an AWS EBS volume."""
    monitors: frozenset[str] = frozenset()
    """Of a Ceph image: names denote the same image only if the monitors overlap."""

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
    """The attached volumes, and their limits."""

    csi_nodes: CsiNodeColumns
    attachments: AttachmentColumns
    claimed: ClaimedVolumes

    def sync(self) -> None:
        """Applies changes of nodes. Call it before reading."""
        self.csi_nodes.sync()
        self.attachments.sync()


class VolumeColumns:
    """Claims and disks in use, by row."""

    def __init__(self, columns: NodeRows) -> None:
        self._columns = columns
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
        """Number of pods that use the claim, by row."""
        return self._users.get(claim, {})

    def conflicting_pods(self, disks: Iterable[Disk]) -> Mapping[int, int]:
        """Number of pods with a disk that conflicts with one of these, by row."""
        rows: dict[str, int] = {}
        for disk in disks:
            for uid, (row, others) in self._disks.get(disk.identity, {}).items():
                if any(disk.conflicts_with(other) for other in others):
                    rows[uid] = row
        counts: dict[int, int] = {}
        for row in rows.values():
            counts[row] = counts.get(row, 0) + 1
        return counts

    def csi_nodes(self) -> CsiNodeColumns:
        """The facts of CSINodes. Call `sync` before reading."""
        if self._csi_nodes is None:
            self._csi_nodes = CsiNodeColumns(self._columns)
        return self._csi_nodes

    def attached(self) -> AttachedVolumes:
        """The attached volumes, which are counted from the first call on."""
        if self._attached is None:
            attachments = AttachmentColumns(self._columns)
            claimed = ClaimedVolumes(self._columns, attachments)
            self._attached = AttachedVolumes(self.csi_nodes(), attachments, claimed)
        return self._attached


def disks_of(volumes: Iterable[Volume]) -> tuple[Disk, ...]:
    """The inline disks of a pod with restrictions on sharing."""
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
