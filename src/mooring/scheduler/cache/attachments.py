"""Attached volumes and their limits: per driver and row, the number of attached volumes and the CSINode's limit.

Input: volumes that pods use (from `volumes`), VolumeAttachments, CSINodes. Output: per driver a count and a
limit for each row; for a volume, the rows whose pods use it; per in-tree plugin, the rows where it is migrated.

1. A volume counts once on a row, however many pods use it and whether or not it is attached as well.
2. A VolumeAttachment counts on the row of its node, if its PersistentVolume is a CSI volume. `sync` moves attachments
   when nodes are added or removed.
3. `use` with a positive and a negative number are exact inverses, so a transaction can be rolled back.
4. A CSINode belongs to the node of the same name. Either may be created first: a row is read again when its node
   changes (`sync`) and when the CSINode changes (immediately).
5. A driver without a limit on a node is unlimited there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from mooring.api.views.storage import CSINode, PersistentVolume, VolumeAttachment
from mooring.scheduler.cache.arrays import Bools, ChangeLog, Int64s, grown
from mooring.scheduler.cache.objects import ObjectStores
from mooring.scheduler.cache.pods import PodInfo

_RowCounts = dict[int, int]


class NodeRows(Protocol):
    """What the columns of volumes read of the other columns (`cache.columns.Columns`)."""

    @property
    def objects(self) -> ObjectStores: ...
    @property
    def fact_changes(self) -> ChangeLog: ...
    @property
    def row_of(self) -> Mapping[str, int]: ...
    @property
    def node_names(self) -> Sequence[str]: ...
    @property
    def pods_on(self) -> Sequence[Mapping[str, PodInfo]]: ...
    @property
    def height(self) -> int: ...
    @property
    def capacity(self) -> int: ...


class AttachableVolume(NamedTuple):
    """A volume that counts for the limit of its driver."""

    driver: str
    name: str
    """Unique among all volumes of all drivers."""


def attachable(driver: str, handle: str) -> AttachableVolume:
    return AttachableVolume(driver, f"{driver}/{handle}")


class AttachmentColumns:
    """Counts of different volumes, by driver and row."""

    def __init__(self, columns: NodeRows) -> None:
        self._columns = columns
        self._volumes = columns.objects.of(PersistentVolume)
        self._counts: dict[str, Int64s] = {}
        self._used: dict[str, _RowCounts] = {}
        self._attached: dict[str, _RowCounts] = {}
        self._attachments = _AttachmentIndex()
        self._at_row: dict[str, tuple[AttachableVolume, int]] = {}
        """The attachments that are counted, by name, with their rows."""
        self._node_at: dict[int, str] = {}
        self._position = -1
        for attachment in columns.objects.of(VolumeAttachment):
            self._attachments.add(attachment)
        columns.objects.of(VolumeAttachment).listen(self._attachment_changed)
        self._volumes.listen(self._volume_changed)

    def count(self, driver: str) -> Int64s | None:
        """Per row: number of the driver's volumes; None if there were never any."""
        counts = self._counts.get(driver)
        if counts is not None and len(counts) < self._columns.height:
            counts = self._counts[driver] = grown(counts, self._columns.capacity)
        return counts

    def rows_using(self, volume: AttachableVolume) -> Mapping[int, int]:
        """The rows with pods that use the volume."""
        return self._used.get(volume.name, {})

    def use(self, volume: AttachableVolume, row: int, pods: int) -> None:
        """Changes the number of pods on the row that use the volume."""
        self._shift(self._used, self._attached, volume, row, pods)

    def sync(self) -> None:
        """Moves the attachments of nodes that were added or removed since the last call."""
        changes = self._columns.fact_changes
        if changes.position == self._position:
            return
        rows = changes.since(self._position)
        moved: dict[str, None] = {}
        for row in range(self._columns.height) if rows is None else rows.tolist():
            # Also for the same node: an attachment that changed while the node was deleted is not counted.
            now = self._columns.node_names[row]
            moved |= {self._node_at.get(row, now): None, now: None}
            self._node_at[row] = now
        for node_name in moved:
            self._count_again(self._attachments.on_node(node_name))
        self._position = changes.position

    def _attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if old is not None:
            self._attachments.remove(old)
            self._discount(old.metadata.name)
        if new is not None:
            self._attachments.add(new)
            self._count_again((new,))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        self._count_again(self._attachments.of_volume(changed.metadata.name))

    def _count_again(self, attachments: Iterable[VolumeAttachment]) -> None:
        for attachment in attachments:
            self._discount(attachment.metadata.name)
            row = self._columns.row_of.get(attachment.spec.node_name)
            volume = self._volume_attached(attachment)
            if row is not None and volume is not None:
                self._at_row[attachment.metadata.name] = (volume, row)
                self._shift(self._attached, self._used, volume, row, 1)

    def _discount(self, attachment_name: str) -> None:
        counted = self._at_row.pop(attachment_name, None)
        if counted is not None:
            self._shift(self._attached, self._used, *counted, -1)

    def _volume_attached(self, attachment: VolumeAttachment) -> AttachableVolume | None:
        name = attachment.spec.source.persistent_volume_name
        volume = self._volumes.get(name) if name is not None else None
        if volume is None or volume.spec.csi is None or not attachment.spec.attacher:
            return None
        return attachable(attachment.spec.attacher, volume.spec.csi.volume_handle)

    def _shift(
        self,
        holders: dict[str, _RowCounts],
        others: dict[str, _RowCounts],
        volume: AttachableVolume,
        row: int,
        difference: int,
    ) -> None:
        rows = holders.setdefault(volume.name, {})
        before = rows.get(row, 0)
        after = before + difference
        assert after >= 0, f"{volume.name} has a negative number of users on row {row}"
        if after:
            rows[row] = after
        else:
            del rows[row]
            if not rows:
                del holders[volume.name]
        if (before > 0) != (after > 0) and row not in others.get(volume.name, ()):
            self._counts_at(volume.driver, row)[row] += 1 if after else -1

    def _counts_at(self, driver: str, row: int) -> Int64s:
        counts = self._counts.get(driver)
        if counts is None or row >= len(counts):
            counts = np.zeros(0, dtype=np.int64) if counts is None else counts
            counts = self._counts[driver] = grown(counts, max(self._columns.capacity, row + 1))
        return counts


class _AttachmentIndex:
    """VolumeAttachments by node and by persistent volume."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, VolumeAttachment]] = {}
        self._by_volume: dict[str, dict[str, VolumeAttachment]] = {}

    def add(self, attachment: VolumeAttachment) -> None:
        for index, key in self._places(attachment):
            index.setdefault(key, {})[attachment.metadata.name] = attachment

    def remove(self, attachment: VolumeAttachment) -> None:
        for index, key in self._places(attachment):
            siblings = index[key]
            del siblings[attachment.metadata.name]
            if not siblings:
                del index[key]

    def on_node(self, node_name: str) -> Iterable[VolumeAttachment]:
        return self._by_node.get(node_name, {}).values()

    def of_volume(self, volume_name: str) -> Iterable[VolumeAttachment]:
        return self._by_volume.get(volume_name, {}).values()

    def _places(self, attachment: VolumeAttachment) -> list[tuple[dict[str, dict[str, VolumeAttachment]], str]]:
        name = attachment.spec.source.persistent_volume_name
        by_volume = [(self._by_volume, name)] if name is not None else []
        return [(self._by_node, attachment.spec.node_name), *by_volume]


MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode with the migrated in-tree plugins, separated by commas."""

NO_LIMIT = int(np.iinfo(np.int64).max) // 2
"""Larger than any number of volumes, and small enough not to overflow in sums."""


class CsiNodeColumns:
    """The facts of CSINodes, by row."""

    def __init__(self, columns: NodeRows) -> None:
        self._columns = columns
        self._store = columns.objects.of(CSINode)
        self._position = -1
        self._limits: dict[str, Int64s] = {}
        self._migrated: dict[str, Bools] = {}
        self.present: Bools = np.zeros(0, dtype=np.bool_)
        self.limited: Bools = np.zeros(0, dtype=np.bool_)
        """Whether any driver has a limit."""
        self._store.listen(self._csi_node_changed)

    def sync(self) -> None:
        """Reads the rows whose node changed since the last call."""
        changes = self._columns.fact_changes
        if changes.position == self._position:
            return
        self._grow(self._columns.capacity)
        rows = changes.since(self._position)
        for row in range(self._columns.height) if rows is None else rows.tolist():
            self._read(row)
        self._position = changes.position

    def limits(self, driver: str) -> Int64s | None:
        """Per row: how many volumes of the driver can be attached; None if no node has a limit."""
        return self._limits.get(driver)

    def migrated(self, plugin: str) -> Bools | None:
        """Per row: whether an in-tree plugin is migrated to CSI; None if it is migrated nowhere."""
        return self._migrated.get(plugin)

    def _csi_node_changed(self, old: CSINode | None, new: CSINode | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        row = self._columns.row_of.get(changed.metadata.name)
        if row is not None and row < len(self.present):
            self._read(row)

    def _read(self, row: int) -> None:
        self._clear(row)
        name = self._columns.node_names[row]
        csi_node = self._store.get(name) if name else None
        if csi_node is None:
            return
        self.present[row] = True
        for driver in csi_node.spec.drivers:
            count = driver.allocatable.count if driver.allocatable is not None else None
            if count is not None:
                self._limited(driver.name)[row] = count
                self.limited[row] = True
        for plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(","):
            if plugin:
                self._migrated_rows(plugin)[row] = True

    def _clear(self, row: int) -> None:
        self.present[row] = False
        self.limited[row] = False
        for limits in self._limits.values():
            limits[row] = NO_LIMIT
        for migrated in self._migrated.values():
            migrated[row] = False

    def _limited(self, driver: str) -> Int64s:
        limits = self._limits.get(driver)
        if limits is None:
            limits = self._limits[driver] = np.full(len(self.present), NO_LIMIT, dtype=np.int64)
        return limits

    def _migrated_rows(self, plugin: str) -> Bools:
        migrated = self._migrated.get(plugin)
        if migrated is None:
            migrated = self._migrated[plugin] = np.zeros(len(self.present), dtype=np.bool_)
        return migrated

    def _grow(self, capacity: int) -> None:
        if len(self.present) >= capacity:
            return
        self.present = grown(self.present, capacity)
        self.limited = grown(self.limited, capacity)
        self._limits = {driver: grown(array, capacity, fill=NO_LIMIT) for driver, array in self._limits.items()}
        self._migrated = {plugin: grown(array, capacity) for plugin, array in self._migrated.items()}
