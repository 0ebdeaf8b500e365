"""Explains why a pending pod has no node: the obstacles of every node, and which nodes are nearest.

A cycle stops at the first filter that rejects a node. Here every filter that applies to the pod runs on every
node, so that all obstacles of a node are listed.

1. Explaining changes nothing. It reads the columns as they are; nominated pods of at least the pod's priority count as
   if they were placed.
2. A node is nearer if it has fewer obstacles, then if they are smaller in sum, then by name (`Filter.distances`).
3. Nodes are ranked with arrays, and only the nearest ones by name. A node is explained (`Filter.explain`) only when
   `Explanation.at` is called.
4. A user's plugin that fails here becomes an obstacle that names the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Float64s, Int64s, ReasonBits
from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import Adjustable, Filter, Plugin, PreFilter, Proceed, Scope
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Status

Nominated = dict[int, tuple[PodInfo, ...]]
"""By row: the nominated pods that count as if they were placed."""


class _Result(NamedTuple):
    """The result of one filter: its state, and its reason bits for each row."""

    plugin: Filter[Any]
    state: Any
    bits: Int64s


@dataclass(frozen=True, slots=True)
class Explanation:
    """The obstacles of a pod, on every node and on each one."""

    everywhere: tuple[Obstacle, ...]
    """Obstacles that no node can change, such as a claim that does not exist."""
    nearest: tuple[str, ...]
    """The nodes with obstacles of their own, nearest first: all, or the first `nearest_max`."""
    free_count: int
    """How many nodes have none."""
    _columns: Columns
    _rows: Int64s
    _results: tuple[_Result, ...]
    """The bits of a result have the order of the rows."""
    _context: ExplainContext

    def at(self, node_name: str) -> tuple[Obstacle, ...]:
        """All obstacles of one node; nothing if the node would take the pod."""
        row = self._columns.row_of[node_name]
        place = int(np.searchsorted(self._rows, row))
        found: list[Obstacle] = []
        for plugin, state, bits in self._results:
            if bits[place]:
                try:
                    found += plugin.explain(state, row, int(bits[place]), self._context)
                except PluginError as error:
                    found.append(_failure(plugin, error))
        return tuple(found)


def explain(profile: Profile, columns: Columns, pod: PodInfo, *, nearest_max: int | None = None) -> Explanation:
    """Runs every filter of the profile that applies to the pod on every node. Ranks at most `nearest_max` nodes."""
    states, everywhere = _prepare(profile, pod)
    rows: Int64s = np.flatnonzero(columns.alive[: columns.height]).astype(np.int64)
    nominated = _nominated_pods(columns, pod)
    # Without the pod's claims, the other volume plugins only repeat that volumes are missing.
    lacks_claims = any(map(_is_about_volumes, everywhere))
    results = []
    for use in profile.filters:
        plugin = use.plugin
        if plugin.name in states and not (lacks_claims and plugin.obstacle_kind is ObstacleKind.VOLUME):
            try:
                bits = _filter(columns, plugin, states[plugin.name], rows, nominated)
            except PluginError as error:
                everywhere.append(_failure(plugin, error))
            else:
                results.append(_Result(plugin, states[plugin.name], bits))
    context = ExplainContext(pod, nominated, frozenset(plugin.obstacle_kind for plugin, _, _ in results))
    counts, sizes = _distances(results, rows, context)
    rejected = np.flatnonzero(counts > 0)
    return Explanation(
        everywhere=tuple(_distinct(everywhere)),
        nearest=tuple(_nearest(columns, rows[rejected], counts[rejected], sizes[rejected], nearest_max)),
        free_count=len(rows) - len(rejected),
        _columns=columns,
        _rows=rows,
        _results=tuple(results),
        _context=context,
    )


def _nearest(columns: Columns, rows: Int64s, counts: Int64s, sizes: Float64s, limit: int | None) -> Iterator[str]:
    """The names of the nearest rows. Rows that are equally near are sorted by name, of the last ones only some."""
    left = len(rows) if limit is None else limit
    order = np.lexsort((sizes, counts))
    counts, sizes = counts[order], sizes[order]
    ends = np.flatnonzero((counts[1:] != counts[:-1]) | (sizes[1:] != sizes[:-1])) + 1
    start = 0
    for end in (*ends[:left].tolist(), len(rows)):
        names = nsmallest(left, [columns.node_names[row] for row in rows[order[start:end]].tolist()])
        yield from names
        left -= len(names)
        start = end
        if left <= 0:
            return


def _prepare(profile: Profile, pod: PodInfo) -> tuple[dict[str, Any], list[Obstacle]]:
    """The state of each filter that applies to the pod, by plugin; and what PreFilter plugins reject everywhere."""
    states: dict[str, Any] = {}
    everywhere: list[Obstacle] = []
    at_pre_filter = {plugin.name for plugin in profile.pre_filters}
    plugins: list[PreFilter[Any] | Filter[Any]] = [*profile.pre_filters]
    plugins += [use.plugin for use in profile.filters if use.plugin.name not in at_pre_filter]
    for plugin in plugins:
        try:
            result = plugin.pre_filter(pod)
        except PluginError as error:
            everywhere.append(_failure(plugin, error))
            continue
        if isinstance(result, Proceed):
            states[plugin.name] = result.state
        elif isinstance(result, Status) and isinstance(plugin, PreFilter) and plugin.name in at_pre_filter:
            if plugin.obstacle_kind is ObstacleKind.VOLUME and any(
                _is_about_volumes(obstacle) for obstacle in everywhere
            ):
                continue  # the volume plugins reject the same claim with different texts
            try:
                everywhere += plugin.explain_rejection(pod, result)
            except PluginError as error:
                everywhere.append(_failure(plugin, error))
    return states, everywhere


def _nominated_pods(columns: Columns, pod: PodInfo) -> Nominated:
    found: Nominated = {}
    for row in columns.rows_named(columns.nominations.nodes()).tolist():
        pods = columns.nominations.that_outrank(pod, columns.node_names[row])
        if pods:
            found[row] = pods
    return found


def _filter(columns: Columns, plugin: Filter[Any], state: Any, rows: Int64s, nominated: Nominated) -> Int64s:
    """Per row: the filter's bits. As in kube-scheduler, the pod must fit with and without the nominated pods."""
    bits = plugin.filter(state, rows).astype(np.int64)
    if not nominated or plugin.filter_scope is Scope.NODE:
        return bits
    nominated_rows = np.array(sorted(nominated), dtype=np.int64)
    if isinstance(plugin, Adjustable):
        difference = np.zeros((plugin.measures(state), len(nominated_rows)), dtype=np.int64)
        for index, row in enumerate(nominated_rows.tolist()):
            for pod in nominated[row]:
                difference[:, index] += plugin.contribution(state, pod, row)
        with_nominated: ReasonBits = plugin.filter_adjusted(state, nominated_rows, difference)
    else:
        with Transaction(columns) as transaction:
            for row, pods in nominated.items():
                for pod in pods:
                    transaction.place(pod, row)
            with_nominated = plugin.filter(state, nominated_rows)
    places = np.searchsorted(rows, nominated_rows)
    bits[places] = np.where(with_nominated != 0, with_nominated, bits[places])
    return bits


def _distances(results: list[_Result], rows: Int64s, context: ExplainContext) -> tuple[Int64s, Float64s]:
    """Per row: the number of obstacles and the sum of their sizes, over all filters."""
    counts: Int64s = np.zeros(len(rows), dtype=np.int64)
    sizes: Float64s = np.zeros(len(rows))
    for plugin, state, bits in results:
        try:
            distances = plugin.distances(state, rows, bits, context)
        except PluginError:
            distances = Filter.distances(plugin, state, rows, bits, context)
        counts += distances.counts
        sizes += distances.sizes
    return counts, sizes


def _is_about_volumes(obstacle: Obstacle) -> bool:
    return obstacle.kind is ObstacleKind.VOLUME


def _distinct(obstacles: list[Obstacle]) -> list[Obstacle]:
    """Several plugins may reject the same claim with the same text: the first one is listed."""
    by_text: dict[str, Obstacle] = {}
    for obstacle in obstacles:
        by_text.setdefault(obstacle.text, obstacle)
    return list(by_text.values())


def _failure(plugin: Plugin, error: PluginError) -> Obstacle:
    return Obstacle(plugin.name, plugin.obstacle_kind, error.status.message)
