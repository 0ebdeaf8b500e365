"""The order in which kube-scheduler evaluates nodes: zones round robin, from where the last search ended.

Input: the nodes of the columns. Output: rows in that order, for sampling, extenders and ServiceAffinity.

A search that stops after enough nodes must not always find the same ones. So the order is round robin over the
zones (one node of each zone, then the second of each, …), and each search starts where the previous one ended.

1. The order is computed on demand.
2. Zones are in the order in which their first node was added, nodes of a zone in the order in which they were added. A
   node that changes its zone is last there. A zone without nodes is removed.
3. `start` is shared by all profiles. It counts evaluated nodes, modulo the number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mooring.api.csi_translation import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from mooring.api.views.node import Node
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns

ZONE_LABELS = (BETA_ZONE_LABEL, ZONE_LABEL)
REGION_LABELS = (BETA_REGION_LABEL, REGION_LABEL)
"""The beta label takes precedence on a node with both."""


class NodeOrder:
    """All nodes in order."""

    def __init__(self, columns: Columns) -> None:
        self.start = 0
        """The index of the node where the next search starts."""
        self._columns = columns
        self._position = -1
        self._name_at: dict[int, str] = {}
        self._zone_of: dict[str, str] = {}
        self._zones: dict[str, dict[str, None]] = {}
        self._rows: Int64s = np.zeros(0, dtype=np.int64)

    def rows_in_order(self, among: Bools | None = None) -> Int64s:
        """All rows (or those `among`) in order, beginning at the start."""
        self._sync()
        rows = self._rows if among is None else self._rows[among[self._rows]]
        start = self.start % len(rows) if len(rows) else 0
        return np.concatenate((rows[start:], rows[:start])) if start else rows

    def advance(self, processed: int) -> None:
        """Moves the start behind the evaluated nodes."""
        self.start = (self.start + processed) % max(1, self._columns.node_count)

    def _sync(self) -> None:
        """Applies the changes of nodes since the last search."""
        columns, changes = self._columns, self._columns.fact_changes
        if self._position == changes.position:
            return
        changed = changes.since(self._position)
        rows: Iterable[int] = range(columns.height) if changed is None else changed.tolist()
        added, has_changed = [], False
        for row in rows:
            before, now = self._name_at.get(row, ""), columns.node_names[row]
            if before != now:
                has_changed = True
                self._name_at[row] = now
                if before and before not in columns.row_of:
                    self._remove(before)
            node = columns.nodes[row]
            if node is not None and self._zone_of.get(now) != zone_of(node):
                added.append(node)
        for node in self._by_arrival(added):
            self._remove(node.metadata.name)
            self._add(node)
        if has_changed or added:
            order = [columns.row_of[name] for name in _round_robin(self._zones.values())]
            self._rows = np.array(order, dtype=np.int64)
        self._position = changes.position

    def _by_arrival(self, nodes: list[Node]) -> list[Node]:
        if len(nodes) < 2:
            return nodes
        place = {name: place for place, name in enumerate(self._columns.row_of)}
        return sorted(nodes, key=lambda node: place[node.metadata.name])

    def _add(self, node: Node) -> None:
        name, zone = node.metadata.name, zone_of(node)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None

    def _remove(self, name: str) -> None:
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return
        nodes = self._zones[zone]
        del nodes[name]
        if not nodes:
            del self._zones[zone]


def zone_of(node: Node) -> str:
    """The identity of a zone: region and zone, because zones of different regions may have the same name."""
    labels = node.metadata.labels
    region, zone = (next((labels[key] for key in keys if key in labels), "") for keys in (REGION_LABELS, ZONE_LABELS))
    return f"{region}\0{zone}" if region or zone else ""


def _round_robin(zones: Iterable[Iterable[str]]) -> list[str]:
    """The first of each, then the second of each, …; exhausted lists are skipped."""
    names: list[str] = []
    waiting = [iter(zone) for zone in zones]
    while waiting:
        still = []
        for zone in waiting:
            name = next(zone, None)
            if name is not None:
                names.append(name)
                still.append(zone)
        waiting = still
    return names
