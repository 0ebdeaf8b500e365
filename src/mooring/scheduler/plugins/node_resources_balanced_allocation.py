"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used evenly.

The score compares the balance with the pod and without it: 75 if the pod does not change it, more if the pod improves
it, less if the pod worsens it. Pods without requests are skipped; otherwise they would all go to one node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mooring.api.resources import balanced_score_requests, is_scalar_resource
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import NodeResourcesBalancedAllocationArgs
from mooring.scheduler.framework.plugin import SKIP, PreScore, Scope, Score, Skip
from mooring.scheduler.plugins.resource_allocation import (
    DeviceBackedResources,
    ResourceAllocation,
    balance_score,
    one_balance_score,
)

_ALWAYS_BALANCED = ("cpu", "memory", "ephemeral-storage")
"""Other resources count only if the pod requests them; `pods` never."""


class BalancedAllocationState(NamedTuple):
    """The resources to balance: (index, amount that the pod adds)."""

    resources: tuple[tuple[int, int], ...]
    device_backed: frozenset[int] = frozenset()
    """Slots of resources with a DeviceClass."""


class NodeResourcesBalancedAllocation(PreScore[BalancedAllocationState], Score[BalancedAllocationState]):
    name = "NodeResourcesBalancedAllocation"
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns, arguments: NodeResourcesBalancedAllocationArgs) -> None:
        self._columns = columns
        self._resources = columns.resources
        self._names = tuple(spec.name for spec in arguments.resources)
        self._devices = DeviceBackedResources(columns, self._names)

    def epoch(self) -> object:
        return self._devices.epoch()

    def pre_score(self, pod: PodInfo, feasible: Rows) -> BalancedAllocationState | Skip:
        requests = balanced_score_requests(pod.signature.view)
        if not any(requests.get(name, 0) for name in self._names):
            return SKIP
        return BalancedAllocationState(
            tuple(
                (self._resources.index_of(name), requests.get(name, 0))
                for name in self._names
                if name in _ALWAYS_BALANCED or (is_scalar_resource(name) and requests.get(name, 0))
            ),
            self._devices.backed_indexes(),
        )

    def score_row(self, state: BalancedAllocationState, row: int) -> int:
        if len(state.resources) > 2 or state.device_backed:
            return super().score_row(state, row)
        allocatable, used = self._resources.at(row)
        offered = [(used[index], added, allocatable[index]) for index, added in state.resources if allocatable[index]]
        return one_balance_score(offered)

    def score(self, state: BalancedAllocationState, rows: Rows) -> Int64s:
        if not state.resources:
            return np.full(length_of(rows), 75, dtype=np.int64)
        return balance_score([self._allocation(state, index, added, rows) for index, added in state.resources])

    def _allocation(self, state: BalancedAllocationState, index: int, added: int, rows: Rows) -> ResourceAllocation:
        if index in state.device_backed:
            return self._devices.resource(index, added, rows, 1)
        resources = self._resources
        return ResourceAllocation(
            resources.used[index][rows],
            added,
            resources.allocatable[index][rows],
            resources.divisors(index)[rows],
            1,
            *resources.bounds(index, self._columns.live_rows),
        )
