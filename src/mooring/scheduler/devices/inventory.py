"""Which pools of devices each node sees.

Input: ResourceSlices; nodes. Output: for each row its pools, in the order of allocation; and the rows that changed.

Most pools belong to one node. Pools of several nodes are evaluated once for all nodes that match the same slices.

1. Pools are sorted by driver and name; those with devices that have binding conditions come last.
2. `sync` does all work, so that a driver that publishes a hundred slices causes one evaluation.
3. A pool that matches no node is visible on all rows if it is incomplete or invalid, otherwise on none.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mooring.api.errors import NodeSelectorError
from mooring.api.nodeselector import compile_strict
from mooring.api.views.devices import ResourceSlice
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.scheduler.cache.arrays import Bools
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.pools import DeviceKinds, PooledSlice, PoolId, PoolView, view_of

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
            if all(each.view.spec.node_name for each in slices.values()):
                self._see_on_nodes(pool_id, [slices[name] for name in sorted(slices)])
                names.update(self._pools_on.get(pool_id, ()))
                everywhere |= was_on_others or pool_id in self._problems
            else:
                self._shared[pool_id] = _SharedPool(pool_id, [slices[name] for name in sorted(slices)])
                everywhere = True
        self._changed_pools.clear()
        return names, everywhere

    def _see_on_nodes(self, pool_id: PoolId, slices: list[PooledSlice]) -> None:
        counting: dict[str, tuple[bool, ...] | None] = {each.name: None for each in slices if each.has_counters}
        by_node: dict[str, dict[str, tuple[bool, ...] | None]] = {}
        for each in slices:
            by_node.setdefault(each.view.spec.node_name or "", dict(counting))[each.name] = None
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
        for each in self._slices:
            spec = each.view.spec
            if each.has_counters:
                rows = np.ones(columns.height, dtype=np.bool_)
            elif spec.node_name or spec.all_nodes or spec.node_selector is not None:
                rows = matching_rows(
                    columns, spec.node_name, spec.all_nodes, spec.node_selector,
                    f"failed to perform node selection for slice {each.name}",
                )  # fmt: skip
            elif each.selects_per_device:
                matches = self._device_matches[each.name] = [
                    matching_rows(
                        columns, device.view.node_name, device.view.all_nodes, device.view.node_selector,
                        f"failed to perform node selection for device {device.view.name} in slice {each.name}",
                    )
                    for device in each.devices
                ]  # fmt: skip
                rows = np.logical_or.reduce(matches) if matches else np.zeros(columns.height, dtype=np.bool_)
            else:
                continue  # an unknown kind of node selection
            self._matches.append((each.name, rows))

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
    listed = "".join(
        f"NodeSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{' '.join(each.values)}],}},"
        for each in requirements
    )
    return f"[]NodeSelectorRequirement{{{listed}}}"
