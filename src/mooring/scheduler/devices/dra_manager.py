"""The state of all devices in the cluster, shared by the plugins of all profiles.

Input: ResourceSlices, DeviceClasses and ResourceClaims from the columns' object stores; nodes. Output: the devices that
each row sees, which of them are allocated, and a code that is the same for rows with the same devices and allocations.

    state of a row = the content and allocation of its own pools (`codes`)
                   + the pools that it shares with other rows (`groups`), and their allocation

1. Two rows with the same code and group have the same devices, except for names, and the same devices allocated. The
   allocator has the same outcome on both.
2. `sync` updates the codes of changed rows. One allocation on a node changes one row.
3. There is one manager for a set of columns (`Columns.shared`).
4. `DeviceTotals` counts, as kube-scheduler v1.36 does, the devices of every slice, also of an old generation or an
   incomplete pool; a slice without any node selection counts on all nodes; a shared device counts as one. A selector
   that fails sets both numbers to 0 on the nodes that see the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mooring.api.errors import NodeSelectorError
from mooring.api.views.devices import DeviceClass, ResourceClaim
from mooring.api.views.meta import NodeSelector
from mooring.scheduler.cache.arrays import Bools, ChangeLog, Int64s, grown
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.claims import AllocatedState, ClaimTracker, counters_left
from mooring.scheduler.devices.extended_resources import DeviceClassResolver
from mooring.scheduler.devices.inventory import Inventory, matching_rows
from mooring.scheduler.devices.pools import PooledDevice, PooledSlice, PoolView
from mooring.scheduler.devices.requests import DeviceAllocationError, counts_for


class DeviceTotals(NamedTuple):
    """Per row: number of devices of a class, and how many of them are in use."""

    devices: Int64s
    in_use: Int64s


def totals_of(
    device_class: DeviceClass, columns: Columns, inventory: Inventory, allocated: AllocatedState
) -> DeviceTotals:
    devices = np.zeros(columns.height, dtype=np.int64)
    in_use = np.zeros(columns.height, dtype=np.int64)
    failed = np.zeros(columns.height, dtype=np.bool_)
    for each in inventory.slices():
        for device, rows in _seen(each, columns, failed):
            try:
                is_one = counts_for(device_class, device.kind)
            except DeviceAllocationError:
                failed[rows] = True
                continue
            if is_one:
                devices[rows] += 1
                if allocated.is_in_use(device.id):
                    in_use[rows] += 1
    return DeviceTotals(np.where(failed, 0, devices), np.where(failed, 0, in_use))


def _seen(each: PooledSlice, columns: Columns, failed: Bools) -> Iterator[tuple[PooledDevice, Bools]]:
    """The devices of a slice, each with the rows that see it."""
    spec = each.view.spec
    if not each.selects_per_device:
        everywhere = bool(spec.all_nodes) or not (spec.node_name or spec.node_selector is not None)
        rows = _rows(columns, spec.node_name, everywhere, spec.node_selector, failed)
        yield from ((device, rows) for device in each.devices)
        return
    for device in each.devices:
        view = device.view
        yield device, _rows(columns, view.node_name, bool(view.all_nodes), view.node_selector, failed)


def _rows(
    columns: Columns, node_name: str | None, everywhere: bool, selector: NodeSelector | None, failed: Bools
) -> Bools:
    try:
        return matching_rows(columns, None if everywhere else node_name, everywhere, selector, "counting devices")
    except NodeSelectorError:
        failed[:] = True
        return np.zeros(columns.height, dtype=np.bool_)


CODES_MAX = 1 << 17
"""Maximum number of different codes. Beyond it, all rows are numbered again."""

Use = tuple[object, ...]
"""The allocated devices, shares and counters of a pool, as a comparable value."""


class DRAManager:
    """The pools, claims and allocated devices of the cluster."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.classes = columns.objects.of(DeviceClass)
        self.allocated = AllocatedState()
        self.claims = ClaimTracker(columns.objects.of(ResourceClaim), self.allocated)
        self.inventory = Inventory(columns)
        self.class_resolver = DeviceClassResolver(self.classes)
        self.changes = ChangeLog()
        """Rows whose code or group changed."""
        self.codes: Int64s = np.zeros(0, dtype=np.int64)
        self.groups: Int64s = np.zeros(0, dtype=np.int64)
        self.group_uses: list[int] = []
        """For each group the number of its pools' allocation."""
        self.generation = 0
        """Grows when all rows are numbered again, which invalidates earlier codes and groups."""
        self._code_of: dict[object, int] = {}
        self._group_of: dict[tuple[PoolView, ...], int] = {}
        self._group_pools: list[tuple[PoolView, ...]] = []
        self._groups_with: dict[tuple[str, str], list[int]] = {}
        self._use_of: dict[object, int] = {}
        self._totals: dict[str, tuple[object, DeviceTotals]] = {}

    def sync(self) -> None:
        """Applies the changes of slices, nodes and allocations."""
        rows = self.inventory.sync()
        changed_pools = self.allocated.changed_pools
        if rows is None or len(self._code_of) + len(self._use_of) > CODES_MAX:
            changed_pools.clear()
            self._number_all()
            return
        dirty = set(rows)
        if changed_pools:
            for pool_id in sorted(changed_pools):
                if self.inventory.is_shared(pool_id):
                    for group in self._groups_with.get(pool_id, ()):
                        self.group_uses[group] = self._number_of_use(self._group_pools[group])
                else:
                    named = self.inventory.nodes_of(pool_id)
                    dirty.update(row for name in named if (row := self._columns.row_of.get(name)) is not None)
            changed_pools.clear()
        if dirty:
            self._grow()
            for row in sorted(dirty):
                self._number(row)
                self.changes.append(row)

    def totals(self, device_class: DeviceClass) -> DeviceTotals:
        """Per row: number of devices of a class, and how many of them are in use."""
        self.sync()
        stamp = (device_class, self.allocated.revision, self.changes.position, self.generation)
        known = self._totals.get(device_class.metadata.name)
        if known is None or known[0] != stamp:
            totals = totals_of(device_class, self._columns, self.inventory, self.allocated)
            known = self._totals[device_class.metadata.name] = (stamp, totals)
        return known[1]

    def group_alike(self, rows: Int64s) -> list[Int64s]:
        """The indexes of the rows, grouped by code: rows of one group have the same devices and allocations."""
        if not len(rows):
            return []
        uses = np.array(self.group_uses, dtype=np.int64)[self.groups[rows]]
        keys = self.codes[rows] * (int(uses.max()) + 1) + uses
        distinct, inverse = np.unique(keys, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(distinct)))
        return np.split(order, starts[1:])

    def use_of(self, pool: PoolView) -> Use:
        """The allocation of a pool: equal if the allocator has the same outcome."""
        allocated = self.allocated
        taken = 0
        for place, device in enumerate(pool.devices):
            if allocated.is_allocated(device.id):
                taken |= 1 << place
        if not pool.counter_sets and not allocated.consumed:
            return (taken,)
        consumed = tuple(
            (place, *sorted(allocated.consumed[device.id].items()))
            for place, device in enumerate(pool.devices)
            if device.id in allocated.consumed
        )
        return (taken, consumed, *sorted(counters_left(pool, allocated).items()))

    def _number_all(self) -> None:
        self.generation += 1
        self._code_of.clear()
        self._group_of.clear()
        self._group_pools.clear()
        self._groups_with.clear()
        self._use_of.clear()
        self.group_uses.clear()
        self._grow()
        for row in range(self._columns.height):
            self._number(row)

    def _number(self, row: int) -> None:
        """Sets the code and the group of a row."""
        inventory = self.inventory
        own: list[object] = []
        shared: list[PoolView] = []
        for pool in inventory.pools(row):
            if inventory.is_shared(pool.id):
                own.append(pool)  # its position among the others counts
                shared.append(pool)
            else:
                own.append((pool.content, self.use_of(pool)))
        self.codes[row] = self._code_of.setdefault(tuple(own), len(self._code_of))
        self.groups[row] = self._group(tuple(shared))

    def _group(self, pools: tuple[PoolView, ...]) -> int:
        group = self._group_of.get(pools)
        if group is None:
            group = self._group_of[pools] = len(self._group_of)
            self._group_pools.append(pools)
            for pool in pools:
                self._groups_with.setdefault(pool.id, []).append(group)
            self.group_uses.append(self._number_of_use(pools))
        return group

    def _number_of_use(self, pools: tuple[PoolView, ...]) -> int:
        use = tuple(self.use_of(pool) for pool in pools)
        return self._use_of.setdefault((pools, use), len(self._use_of))

    def _grow(self) -> None:
        self.codes = grown(self.codes, self._columns.capacity)
        self.groups = grown(self.groups, self._columns.capacity)
