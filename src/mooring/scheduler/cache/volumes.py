"""Volumes of placed pods: which claims, disks and CSI volumes are in use on which rows.

Input: placed pods; claims, PersistentVolumes and StorageClasses. Output: the users of a claim and of a disk, by row;
the volumes of CSI drivers in use, for `attachments`; rows with a pod whose volumes are unknown (`errors`).

1. Pods without volumes cost nothing. Attached volumes are counted only after the first call of `attached`.
2. Claims of ephemeral volumes are not counted, as in kube-scheduler: only claims that a pod names.
3. `place` and `displace` are exact inverses.

`ClaimedVolumes` resolves a claim to its volume once for all pods that use it, and again when the claim, its volume or
its class changes.

4. A claim without a volume counts as a volume of its class's provisioner, under a name that no real volume has. A claim
   that does not exist counts as nothing.
5. In-tree volumes count for the CSI driver that replaces them. kube-scheduler v1.36 counts them on nodes with a CSINode
   only; nodes without one have no limits, so the result is the same.
6. A pod whose ephemeral claim is owned by another object is an error of its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mooring.api.csi_translation import (
    DRIVERS,
    MIGRATED,
    TranslationError,
    plugin_of,
    translate_inline,
    translate_volume,
)
from mooring.api.storage import (
    claim_named_by,
    class_of_claim,
    is_controlled_by_pod,
    is_ephemeral,
    not_controlled_text,
)
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, Volume
from mooring.scheduler.cache.attachments import (
    AttachableVolume,
    AttachmentColumns,
    CsiNodeColumns,
    NodeRows,
    attachable,
)
from mooring.scheduler.cache.objects import ObjectStores
from mooring.scheduler.cache.pods import PodInfo

NAMELESS_CLAIM = "PersistentVolumeClaim had no name"

_UNBOUND_HANDLE = "\0unbound"
"""Prefix of the names of volumes that do not exist yet. No volume handle contains a zero byte."""


class ClaimedVolumes:
    """The volumes that the pods of each row use."""

    def __init__(self, columns: NodeRows, attachments: AttachmentColumns) -> None:
        self._attachments = attachments
        self._objects = columns.objects
        self._store = columns.objects.of(PersistentVolumeClaim)
        self._claims: dict[str, _ClaimInUse] = {}
        self._by_volume: dict[str, dict[str, None]] = {}
        self._by_class: dict[str, dict[str, None]] = {}
        self.errors: dict[int, dict[str, str]] = {}
        """Why the volumes on a row are unknown, by row and pod."""
        for row, pods in enumerate(columns.pods_on):
            for pod in pods.values():
                if pod.volumes:
                    self.place(pod, row)
        self._store.listen(self._claim_changed)
        columns.objects.of(PersistentVolume).listen(self._volume_changed)
        columns.objects.of(StorageClass).listen(self._class_changed)

    def place(self, pod: PodInfo, row: int) -> None:
        may_have_error = False
        for volume in pod.volumes:
            name = claim_named_by(volume, pod.name)
            if name:
                self._use_claim(f"{pod.namespace}/{name}", row)
                may_have_error = may_have_error or is_ephemeral(volume)
            elif name is not None or plugin_of(volume) is not None:
                self._use_inline(volume, row, 1)
                may_have_error = True
        if may_have_error:
            self._note_owners(pod)
            self._note_error(pod, row)

    def displace(self, pod: PodInfo, row: int) -> None:
        for volume in pod.volumes:
            name = claim_named_by(volume, pod.name)
            if name:
                self._release_claim(f"{pod.namespace}/{name}", pod.uid, row)
            else:
                self._use_inline(volume, row, -1)
        self._forget_error(pod, row)

    def _use_claim(self, key: str, row: int) -> None:
        claim = self._claims.get(key)
        if claim is None:
            claim = self._claims[key] = _ClaimInUse()
            self._look_up(claim, key)
        claim.rows[row] = claim.rows.get(row, 0) + 1
        if claim.volume is not None:
            self._attachments.use(claim.volume, row, 1)

    def _release_claim(self, key: str, pod_uid: str, row: int) -> None:
        claim = self._claims[key]
        claim.owners.pop(pod_uid, None)
        if claim.volume is not None:
            self._attachments.use(claim.volume, row, -1)
        claim.rows[row] -= 1
        if not claim.rows[row]:
            del claim.rows[row]
            if not claim.rows:
                self._unlink(claim, key)
                del self._claims[key]

    def _use_inline(self, volume: Volume, row: int, pods: int) -> None:
        try:
            inline = volume_of_inline(volume)
        except TranslationError:
            return
        if inline is not None:
            self._attachments.use(inline, row, pods)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        claim = self._claims.get(changed.key)
        if claim is None:
            return
        self._look_up(claim, changed.key)
        for pod in claim.owners.values():
            self._forget_error(pod, pod.row)
            self._note_error(pod, pod.row)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        self._look_up_all(self._by_volume.get(changed.metadata.name, {}))

    def _class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        if old is None or new is None or old.provisioner != new.provisioner:
            self._look_up_all(self._by_class.get(changed.metadata.name, {}))

    def _look_up_all(self, keys: Mapping[str, None]) -> None:
        for key in list(keys):
            self._look_up(self._claims[key], key)

    def _look_up(self, claim: _ClaimInUse, key: str) -> None:
        """Resolves a claim again, and moves the uses if its volume changed."""
        self._unlink(claim, key)
        view = self._store.get(key)
        if view is not None:
            claim.volume_name, claim.class_name = view.spec.volume_name, class_of_claim(view)
            self._link(claim, key)
        volume = volume_of_claim(self._objects, view) if view is not None else None
        if volume == claim.volume:
            return
        for row, uses in claim.rows.items():
            if claim.volume is not None:
                self._attachments.use(claim.volume, row, -uses)
            if volume is not None:
                self._attachments.use(volume, row, uses)
        claim.volume = volume

    def _link(self, claim: _ClaimInUse, key: str) -> None:
        for index, name in ((self._by_volume, claim.volume_name), (self._by_class, claim.class_name)):
            if name:
                index.setdefault(name, {})[key] = None

    def _unlink(self, claim: _ClaimInUse, key: str) -> None:
        for index, name in ((self._by_volume, claim.volume_name), (self._by_class, claim.class_name)):
            if name:
                del index[name][key]
                if not index[name]:
                    del index[name]
        claim.volume_name = claim.class_name = ""

    def _note_owners(self, pod: PodInfo) -> None:
        for volume in pod.volumes:
            if is_ephemeral(volume):
                self._claims[f"{pod.namespace}/{claim_named_by(volume, pod.name)}"].owners[pod.uid] = pod

    def _note_error(self, pod: PodInfo, row: int) -> None:
        errors = (volume_error(self._objects, pod, volume) for volume in pod.volumes)
        error = next((error for error in errors if error is not None), None)
        if error is not None:
            self.errors.setdefault(row, {})[pod.uid] = error

    def _forget_error(self, pod: PodInfo, row: int) -> None:
        errors = self.errors.get(row)
        if errors is not None and errors.pop(pod.uid, None) is not None and not errors:
            del self.errors[row]


class _ClaimInUse:
    """One claim that pods use: its volume, and the number of its users by row."""

    __slots__ = ("class_name", "owners", "rows", "volume", "volume_name")

    def __init__(self) -> None:
        self.volume: AttachableVolume | None = None
        self.volume_name = ""
        self.class_name = ""
        self.rows: dict[int, int] = {}
        self.owners: dict[str, PodInfo] = {}
        """Pods that use the claim for an ephemeral volume, and must own it."""


def volume_of_claim(objects: ObjectStores, claim: PersistentVolumeClaim) -> AttachableVolume | None:
    """The volume that counts for a pod with this claim; None if it is not a CSI driver's."""
    name = claim.spec.volume_name
    volume = objects.of(PersistentVolume).get(name) if name else None
    if volume is None:
        return _expected_volume(objects, claim)
    csi = volume.spec.csi
    if csi is not None:
        return attachable(csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
    if plugin_of(volume.spec) not in MIGRATED:
        return None
    try:
        translated = translate_volume(volume)
    except TranslationError:
        return None
    return attachable(translated.driver, translated.handle) if translated.handle else None


def volume_of_inline(volume: Volume) -> AttachableVolume | None:
    """As `volume_of_claim`, for an inline volume. Raises `TranslationError`."""
    if plugin_of(volume) not in MIGRATED:
        return None
    translated = translate_inline(volume)
    return attachable(translated.driver, translated.handle)


def volume_error(objects: ObjectStores, pod: PodInfo, volume: Volume) -> str | None:
    """Why it is unknown which volume a pod uses. A missing claim is not an error here."""
    name = claim_named_by(volume, pod.name)
    if name is None:
        try:
            volume_of_inline(volume)
        except TranslationError as error:
            return f"converting volume({volume.name}) from inline to csi: {error}"
    elif not name:
        return NAMELESS_CLAIM
    elif is_ephemeral(volume):
        claim = objects.of(PersistentVolumeClaim).get(f"{pod.namespace}/{name}")
        if claim is not None and not is_controlled_by_pod(claim, pod.namespace, pod.name, pod.uid):
            return not_controlled_text(claim, pod.namespace, pod.name)
    return None


def _expected_volume(objects: ObjectStores, claim: PersistentVolumeClaim) -> AttachableVolume | None:
    """The volume that the claim's class will provision."""
    class_name = class_of_claim(claim)
    storage_class = objects.of(StorageClass).get(class_name) if class_name else None
    if storage_class is None:
        return None
    driver = storage_class.provisioner
    if driver in DRIVERS:
        if driver not in MIGRATED:
            return None
        driver = DRIVERS[driver]
    return attachable(driver, f"{_UNBOUND_HANDLE}-{claim.key}") if driver else None


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
