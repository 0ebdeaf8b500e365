"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used evenly.

The score compares the balance with the pod and without it: 75 if the pod does not change it, more if the pod improves
it, less if the pod worsens it. Pods without requests are skipped; otherwise they would all go to one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.resource_names import is_scalar_resource
from mooring.api.resources import balanced_score_requests
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import NodeResourcesBalancedAllocationArgs
from mooring.scheduler.framework.plugin import SKIP, PreScore, Scope, Score, Skip
from mooring.scheduler.plugins.resource_allocation import (
    DeviceBackedResources,
    ResourceAllocation,
    balance_score,
    evenness,
    one_balance_score,
    one_evenness,
)

FEW_ROWS = 16
"""Up to this many rows are computed one by one, where numpy's overhead exceeds its gain."""
_ALWAYS_BALANCED = ("cpu", "memory", "ephemeral-storage")
"""Other resources count only if the pod requests them; `pods` never."""


class BalancedAllocationState(NamedTuple):
    """The resources to balance: (slot, amount that the pod adds)."""

    resources: tuple[tuple[int, int], ...]
    device_backed: frozenset[int] = frozenset()
    """Slots of resources with a DeviceClass."""


class NodeResourcesBalancedAllocation(PreScore[BalancedAllocationState], Score[BalancedAllocationState]):
    name = "NodeResourcesBalancedAllocation"
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns, arguments: NodeResourcesBalancedAllocationArgs) -> None:
        self._columns = columns
        self._resources = columns.resources
        self._balances: dict[tuple[int, ...], _Balance] = {}
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
                (self._resources.slot(name), requests.get(name, 0))
                for name in self._names
                if name in _ALWAYS_BALANCED or (is_scalar_resource(name) and requests.get(name, 0))
            ),
            self._devices.backed_slots(),
        )

    def score_row(self, state: BalancedAllocationState, row: int) -> int:
        if len(state.resources) > 2 or state.device_backed:
            return super().score_row(state, row)
        allocatable, used = self._resources.at(row)
        offered = [(used[slot], added, allocatable[slot]) for slot, added in state.resources if allocatable[slot]]
        return one_balance_score(offered)

    def score(self, state: BalancedAllocationState, rows: Rows) -> Int64s:
        if not state.resources:
            return np.full(length_of(rows), 75, dtype=np.int64)
        slots = tuple(slot for slot, _ in state.resources)
        if state.device_backed:
            before = self._resource_amounts([(slot, 0) for slot in slots], rows, state.device_backed)
            return balance_score(
                self._resource_amounts(state.resources, rows, state.device_backed), evenness(before, with_pod=False)
            )
        are_many = isinstance(rows, slice) or len(rows) > FEW_ROWS
        without_pod = self._without_pod(slots)[rows] if are_many else self._evenness(slots, rows)
        return balance_score(self._resource_amounts(state.resources, rows), without_pod)

    def _without_pod(self, slots: tuple[int, ...]) -> Int64s:
        """The evenness of each row without the pod: the same for all pods, so it is cached and updated."""
        columns = self._columns
        balance = self._balances.setdefault(slots, _Balance(np.zeros(0, dtype=np.int64)))
        positions = (columns.usage_changes.position, columns.fact_changes.position)
        if balance.positions == positions:
            return balance.evenness
        usage = columns.usage_changes.since(balance.positions[0])
        facts = columns.fact_changes.since(balance.positions[1])
        if usage is None or facts is None or len(balance.evenness) < columns.height:
            balance.evenness = np.zeros(columns.capacity, dtype=np.int64)
            everywhere = slice(0, columns.height)
            balance.evenness[everywhere] = self._evenness(slots, everywhere)
        elif not len(facts) and len(usage) <= FEW_ROWS and len(slots) == 2:
            for row in usage.tolist():
                balance.evenness[row] = one_evenness(self._offered(slots, row))
        else:
            changed = np.union1d(usage, facts)
            balance.evenness[changed] = self._evenness(slots, changed)
        balance.positions = positions
        return balance.evenness

    def _offered(self, slots: tuple[int, ...], row: int) -> list[tuple[int, int]]:
        allocatable, used = self._resources.at(row)
        return [(used[slot], allocatable[slot]) for slot in slots if allocatable[slot]]

    def _evenness(self, slots: tuple[int, ...], rows: Rows) -> Int64s:
        return evenness(self._resource_amounts([(slot, 0) for slot in slots], rows), with_pod=False)

    def _resource_amounts(
        self, resources: Sequence[tuple[int, int]], rows: Rows, device_backed: frozenset[int] = frozenset()
    ) -> list[ResourceAllocation]:
        allocatable, used, live_rows = self._resources.allocatable, self._resources.used, self._columns.live_rows
        return [
            ResourceAllocation(
                used[slot][rows],
                added,
                allocatable[slot][rows],
                self._resources.divisors(slot)[rows],
                1,
                *self._resources.bounds(slot, live_rows),
            )
            if slot not in device_backed
            else self._devices.resource(slot, added, rows, 1)
            for slot, added in resources
        ]


class _Balance:
    """The evenness of the rows at these positions of the change logs."""

    def __init__(self, evenness: Int64s) -> None:
        self.evenness = evenness
        self.positions = (-1, -1)
