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

`Inventory` finds the pools that each node sees, in the order of allocation. Most pools belong to one node. Pools of
several nodes are evaluated once for all nodes that match the same slices.

5. Pools are sorted by driver and name; those with devices that have binding conditions come last.
6. `Inventory.sync` does all work, so that a driver that publishes a hundred slices causes one evaluation.
7. A pool that matches no node is visible on all rows if it is incomplete or invalid, otherwise on none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mooring.api.errors import NodeSelectorError
from mooring.api.nodeselector import compile_strict
from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.scheduler.cache.arrays import Bools, ChangeLog, Int64s, grown
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.claims import AllocatedState, ClaimTracker, DeviceClassResolver, counters_left
from mooring.scheduler.devices.pools import DeviceKinds, PooledDevice, PooledSlice, PoolId, PoolView, view_of
from mooring.scheduler.devices.requests import DeviceAllocationError, counts_for

MatchingSlices = tuple[tuple[str, tuple[bool, ...] | None], ...]
"""The slices of a pool that match a node, by name, and for per-device node selection, which devices match."""


class Inventory:
    """The pools of all rows."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._kinds = DeviceKinds()
        self._slices: dict[PoolId, dict[str, PooledSlice]] = {}
        self._changed_pools: set[PoolId] = set()
        self._seen_by_node: dict[str, dict[PoolId, PoolView]] = {}
        """Pools whose slices all have a node name."""
        self._problems: dict[PoolId, PoolView] = {}
        """Those of them that are visible on all other nodes, because they are incomplete or invalid."""
        self._shared: dict[PoolId, _SharedPool] = {}
        self._fact_position = -1
        self._rows: list[tuple[PoolView, ...] | None] = []
        self._pools_on: dict[PoolId, tuple[str, ...]] = {}
        """The nodes that see a pool whose slices all have a node name."""
        self.error: str | None = None
        """The error of an invalid node selector, which makes all pools unusable."""
        columns.objects.of(ResourceSlice).listen(self._slice_changed)
        for published in columns.objects.of(ResourceSlice):
            self._slice_changed(None, published)

    def sync(self) -> Iterable[int] | None:
        """Applies changes. Returns the rows whose pools may differ; None for all rows."""
        columns = self._columns
        facts = columns.fact_changes
        moved = facts.since(self._fact_position) if self._fact_position >= 0 else None
        had_shared = bool(self._shared)
        changed, everywhere = self._sync_pools()
        self._fact_position = facts.position
        if moved is None or everywhere or ((had_shared or self._shared) and len(moved)):
            self._sync_shared()
            self._rows = [None] * columns.height
            return None
        if len(self._rows) < columns.height:
            self._rows += [None] * (columns.height - len(self._rows))
        rows = {row for name in changed if (row := columns.row_of.get(name)) is not None}
        rows.update(moved.tolist())
        for row in rows:
            self._rows[row] = None
        return sorted(rows)

    def pools(self, row: int) -> tuple[PoolView, ...]:
        """The pools of a row, in order."""
        known = self._rows[row]
        if known is None:
            own = {**self._problems, **self._seen_by_node.get(self._columns.node_names[row], {})}
            for pool_id, shared in self._shared.items():
                view = shared.view_at(row)
                if view is not None and not view.is_irrelevant:
                    own[pool_id] = view
            known = self._rows[row] = tuple(
                sorted(own.values(), key=lambda view: (view.has_binding_conditions, view.id))
            )
        return known

    def is_shared(self, pool_id: PoolId) -> bool:
        """Whether several rows may see the pool."""
        return pool_id in self._shared

    def nodes_of(self, pool_id: PoolId) -> tuple[str, ...]:
        """The nodes that see a pool that is not shared."""
        return self._pools_on.get(pool_id, ())

    def slices(self) -> Iterable[PooledSlice]:
        """All slices, also of old generations."""
        for pool in self._slices.values():
            yield from pool.values()

    # Changes

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None:
            before = (old.spec.driver, old.spec.pool.name)
            known = self._slices.get(before, {})
            known.pop(old.metadata.name, None)  # a slice that could not be decoded is missing
            if not known:
                self._slices.pop(before, None)
            self._changed_pools.add(before)
        if new is not None:
            pooled = PooledSlice(new, self._kinds)
            self._slices.setdefault(pooled.pool_id, {})[pooled.name] = pooled
            self._changed_pools.add(pooled.pool_id)

    def _sync_pools(self) -> tuple[set[str], bool]:
        """Applies changed pools. Returns the nodes that see one of them, and whether all nodes may be affected."""
        names: set[str] = set()
        everywhere = False
        for pool_id in sorted(self._changed_pools):
            slices = self._slices.get(pool_id, {})
            was_on_others = self._shared.pop(pool_id, self._problems.pop(pool_id, None)) is not None
            for name in self._pools_on.pop(pool_id, ()):
                names.add(name)
                del self._seen_by_node[name][pool_id]
            if all(pooled.view.spec.node_name for pooled in slices.values()):
                self._see_on_nodes(pool_id, [slices[name] for name in sorted(slices)])
                names.update(self._pools_on.get(pool_id, ()))
                everywhere |= was_on_others or pool_id in self._problems
            else:
                self._shared[pool_id] = _SharedPool(pool_id, [slices[name] for name in sorted(slices)])
                everywhere = True
        self._changed_pools.clear()
        return names, everywhere

    def _see_on_nodes(self, pool_id: PoolId, slices: list[PooledSlice]) -> None:
        counting: dict[str, tuple[bool, ...] | None] = {pooled.name: None for pooled in slices if pooled.has_counters}
        by_node: dict[str, dict[str, tuple[bool, ...] | None]] = {}
        for pooled in slices:
            by_node.setdefault(pooled.view.spec.node_name or "", dict(counting))[pooled.name] = None
        seen = {name: view_of(pool_id, slices, matching) for name, matching in by_node.items()}
        for name, view in seen.items():
            if view is not None:
                self._seen_by_node.setdefault(name, {})[pool_id] = view
        self._pools_on[pool_id] = tuple(name for name, view in seen.items() if view is not None)
        elsewhere = view_of(pool_id, slices, counting)
        if elsewhere is not None and not elsewhere.is_irrelevant:
            self._problems[pool_id] = elsewhere

    def _sync_shared(self) -> None:
        self.error = None
        for shared in self._shared.values():
            try:
                shared.match(self._columns)
            except NodeSelectorError as error:
                self.error = f"gather pool information: {error}"
                return


class _SharedPool:
    """A pool that several nodes may see."""

    def __init__(self, pool_id: PoolId, slices: list[PooledSlice]) -> None:
        self._id = pool_id
        self._slices = slices
        self._matches: list[tuple[str, Bools]] = []
        self._device_matches: dict[str, list[Bools]] = {}
        self._views: dict[MatchingSlices, PoolView | None] = {}

    def match(self, columns: Columns) -> None:
        """Evaluates which rows each slice matches."""
        self._matches = []
        self._device_matches = {}
        for pooled in self._slices:
            spec = pooled.view.spec
            if pooled.has_counters:
                rows = np.ones(columns.height, dtype=np.bool_)
            elif spec.node_name or spec.all_nodes or spec.node_selector is not None:
                rows = matching_rows(
                    columns, spec.node_name, spec.all_nodes, spec.node_selector,
                    f"failed to perform node selection for slice {pooled.name}",
                )  # fmt: skip
            elif pooled.selects_per_device:
                matches = self._device_matches[pooled.name] = [
                    matching_rows(
                        columns, device.view.node_name, device.view.all_nodes, device.view.node_selector,
                        f"failed to perform node selection for device {device.view.name} in slice {pooled.name}",
                    )
                    for device in pooled.devices
                ]  # fmt: skip
                rows = np.logical_or.reduce(matches) if matches else np.zeros(columns.height, dtype=np.bool_)
            else:
                continue  # an unknown kind of node selection
            self._matches.append((pooled.name, rows))

    def view_at(self, row: int) -> PoolView | None:
        matching: MatchingSlices = tuple(
            (
                name,
                tuple([bool(flags[row]) for flags in self._device_matches[name]])
                if name in self._device_matches
                else None,
            )
            for name, rows in self._matches
            if rows[row]
        )
        if matching not in self._views:
            self._views[matching] = view_of(self._id, self._slices, dict(matching))
        return self._views[matching]


def matching_rows(
    columns: Columns, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None, doing: str
) -> Bools:
    """Per row: whether the node selection of a slice or device matches."""
    rows = np.zeros(columns.height, dtype=np.bool_)
    if node_name:
        row = columns.row_of.get(node_name)
        if row is not None:
            rows[row] = True
    elif all_nodes:
        rows[:] = True
    elif selector is not None:
        try:
            matcher = compile_strict(selector)
        except NodeSelectorError as error:
            raise NodeSelectorError(f"{doing}: failed to parse node selector {_printed(selector)}: {error}") from None
        rows = columns.node_selection.any_term(matcher, slice(0, columns.height))
    return rows


def _printed(selector: NodeSelector) -> str:
    """A selector in Go's format."""
    terms = "".join(f"{_printed_term(term)}," for term in selector.node_selector_terms)
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _printed_term(term: NodeSelectorTerm) -> str:
    expressions, fields = _printed_requirements(term.match_expressions), _printed_requirements(term.match_fields)
    return f"NodeSelectorTerm{{MatchExpressions:{expressions},MatchFields:{fields},}}"


def _printed_requirements(requirements: Iterable[NodeSelectorRequirement]) -> str:
    listed = "".join(map(_printed_requirement, requirements))
    return f"[]NodeSelectorRequirement{{{listed}}}"


def _printed_requirement(requirement: NodeSelectorRequirement) -> str:
    values = " ".join(requirement.values)
    return f"NodeSelectorRequirement{{Key:{requirement.key},Operator:{requirement.operator},Values:[{values}],}},"


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
    for pooled in inventory.slices():
        for device, rows in _devices_with_rows(pooled, columns, failed):
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


def _devices_with_rows(
    pooled_slice: PooledSlice, columns: Columns, failed: Bools
) -> Iterator[tuple[PooledDevice, Bools]]:
    """The devices of a slice, each with the rows that see it."""
    spec = pooled_slice.view.spec
    if not pooled_slice.selects_per_device:
        everywhere = bool(spec.all_nodes) or not (spec.node_name or spec.node_selector is not None)
        rows = _rows(columns, spec.node_name, everywhere, spec.node_selector, failed)
        yield from ((device, rows) for device in pooled_slice.devices)
        return
    for device in pooled_slice.devices:
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
