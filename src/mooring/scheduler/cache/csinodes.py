"""What drivers say about nodes, by row: how many volumes they can attach, and whose volumes they took over.

Comes in   CSINode objects, and the rows that changed hands
Goes out   arrays over the rows: is there a CSINode, does it limit anything, how much of each driver, what migrated

 1. A CSINode belongs to the node of the same name. Either may come first, so a row is read again when its node changes
    (`sync`, before anybody reads the arrays) and when the CSINode does (at once).
 2. A driver that states no limit on a node has none there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mooring.api.views.storage import CSINode
from mooring.scheduler.cache.arrays import Bools, Int64s, grown

if TYPE_CHECKING:
    from mooring.scheduler.cache.columns import Columns

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation in which a kubelet lists the in-tree plugins that its drivers took over, separated by commas."""

NO_LIMIT = int(np.iinfo(np.int64).max) // 2
"""More volumes than anybody attaches, and still far from overflowing when some are added."""


class CsiNodeColumns:
    """The CSINodes, one place for each row."""

    __slots__ = ("_columns", "_limits", "_migrated", "_position", "_store", "limited", "present")

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._store = columns.objects.of(CSINode)
        self._position = -1
        self._limits: dict[str, Int64s] = {}
        self._migrated: dict[str, Bools] = {}
        self.present: Bools = np.zeros(0, dtype=np.bool_)
        self.limited: Bools = np.zeros(0, dtype=np.bool_)
        """Whether any driver states a limit."""
        self._store.listen(self._csi_node_changed)

    def sync(self) -> None:
        """Reads the rows again whose node changed since the last time."""
        changes = self._columns.fact_changes
        if changes.position == self._position:
            return
        self._grow(self._columns.capacity)
        rows = changes.since(self._position)
        for row in range(self._columns.height) if rows is None else rows.tolist():
            self._read(row)
        self._position = changes.position

    def limits(self, driver: str) -> Int64s | None:
        """Per row: how many volumes of the driver can be attached; None if no node limits it."""
        return self._limits.get(driver)

    def migrated(self, plugin: str) -> Bools | None:
        """Per row: whether the node's drivers took an in-tree plugin over; None if none did."""
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
                self._taken_over(plugin)[row] = True

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

    def _taken_over(self, plugin: str) -> Bools:
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
