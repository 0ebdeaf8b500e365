"""NodeResourcesFit: a node must have free what a pod requests, and is scored by how full it would be.

Comes in   the pod's requests, the columns of what nodes offer and what their pods requested
Goes out   for each node every resource that is short ("Insufficient cpu"), and a score by the profile's strategy

 1. A node that could never hold the pod, even empty, is refused for good: preemption is not tried there.
 2. Filtering counts real requests; scoring counts at least 100m and 200 MiB for each container that says nothing.
 3. A resource that a node does not offer, but a device class stands behind, is left to DynamicResources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.quantity import NANO, NANO_IN_MILLI, Format, Quantity
from mooring.api.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_extended_resource,
    is_huge_page_resource,
    is_scalar_resource,
)
from mooring.api.resources import fit_filter_requests, fit_score_requests
from mooring.scheduler.cache.arrays import Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO, PODS
from mooring.scheduler.config.types import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
)
from mooring.scheduler.framework.events import Wake
from mooring.scheduler.framework.obstacle import (
    HARDNESS,
    NEVER_FITS_SIZE,
    Distances,
    ExplainContext,
    Obstacle,
    ObstacleKind,
)
from mooring.scheduler.framework.plugin import SCORE_MAX, Filter, PreFilter, PreScore, Proceed, Scope, Score
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason, Status
from mooring.scheduler.plugins.allocation import (
    Level,
    average_score,
    free_share_score,
    ratio_score,
    shape_points,
    used_share_score,
)
from mooring.scheduler.plugins.device_levels import DeviceLevels
from mooring.scheduler.plugins.node_resources_fit_hints import FitHints

_CUSTOM_SCORE_MAX = 10
"""Scores of a shape run from 0 to 10; the scheduler's from 0 to 100."""
_TOLD_FIRST = ("cpu", "memory", "ephemeral-storage")
_BINARY_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Wanted(NamedTuple):
    """What a node must have free: slots and amounts, and what to say of each that is short."""

    demands: tuple[tuple[int, int], ...]
    reasons: tuple[Reason, ...]
    of_devices: frozenset[int] = frozenset()
    """Slots that devices stand behind: a node that offers nothing of such a resource itself is not judged here."""


class Added(NamedTuple):
    """What scoring believes that the pod adds: (slot, amount, weight) for each resource that counts."""

    resources: tuple[tuple[int, int, int], ...]
    of_devices: frozenset[int] = frozenset()


class NodeResourcesFit(PreFilter[Wanted], Filter[Wanted], PreScore[Added], Score[Added]):
    name = "NodeResourcesFit"
    obstacle_kind = ObstacleKind.RESOURCE
    filter_scope = Scope.NODE_PODS
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns, arguments: NodeResourcesFitArgs) -> None:
        self._columns = columns
        self._resources = columns.resources
        self._hints = FitHints(columns)
        self._ignored = frozenset(arguments.ignored_resources)
        self._ignored_groups = frozenset(arguments.ignored_resource_groups)
        self._strategy = arguments.scoring_strategy
        self._devices = DeviceLevels(columns, [spec.name for spec in self._strategy.resources])
        ratio = self._strategy.requested_to_capacity_ratio
        self._points = (
            shape_points([(p.utilization, p.score * (100 // _CUSTOM_SCORE_MAX)) for p in ratio.shape])
            if self._strategy.type == REQUESTED_TO_CAPACITY_RATIO and ratio is not None
            else None
        )

    def pre_filter(self, pod: PodInfo) -> Proceed[Wanted] | Status:
        requests = {
            name: amount
            for name, amount in fit_filter_requests(pod.signature.view).items()
            if amount > 0 and not self._is_ignored(name)
        }
        if len(requests) > REASONS_MAX - 2:
            return Status.unresolvable(f"pod requests {len(requests)} different resources, more than can be told apart")
        names = sorted(requests, key=lambda name: (_place(name), name))
        return Proceed(
            Wanted(
                demands=tuple((self._resources.slot(name), requests[name]) for name in names),
                reasons=(
                    Reason("Too many pods"),
                    *(Reason(f"Insufficient {name}") for name in names),
                    Reason(None, Code.UNRESOLVABLE),
                ),
                of_devices=frozenset(self._resources.slot(name) for name in names if self._devices.stand_behind(name)),
            )
        )

    def epoch(self) -> object:
        return self._devices.epoch()

    def filter(self, state: Wanted, rows: Rows) -> Int64s:
        allocatable, used = self._resources.allocatable, self._resources.used
        bits: Int64s = (used[PODS][rows] >= allocatable[PODS][rows]).astype(np.int64)
        for place, (slot, amount) in enumerate(state.demands, start=1):
            offered = allocatable[slot][rows]
            is_short = amount > offered - used[slot][rows]
            if slot in state.of_devices:
                is_short &= offered > 0
            if is_short.any():
                bits |= np.where(is_short, 1 << place, 0)
                bits |= np.where(is_short & (amount > offered), 1 << (len(state.reasons) - 1), 0)
        return bits

    def filter_row(self, state: Wanted, row: int) -> int:
        allocatable, used = self._resources.at(row)
        bits = int(used[PODS] >= allocatable[PODS])
        for place, (slot, amount) in enumerate(state.demands, start=1):
            if amount > allocatable[slot] - used[slot] and (allocatable[slot] > 0 or slot not in state.of_devices):
                bits |= 1 << place
                if amount > allocatable[slot]:
                    bits |= 1 << (len(state.reasons) - 1)
        return bits

    def reasons(self, state: Wanted) -> tuple[Reason, ...]:
        return state.reasons

    def explain(self, state: Wanted, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        allocatable, used = self._resources.at(row)
        nominated = context.nominated_to(row)
        found = []
        missing_pods = used[PODS] + len(nominated) + 1 - allocatable[PODS]
        if missing_pods > 0:
            text = f"{missing_pods} more pod slot{'s' if missing_pods > 1 else ''}"
            found.append(Obstacle(self.name, ObstacleKind.POD_SLOT, text, {"missing": missing_pods}))
        for slot, amount in state.demands:
            offered, reserved = allocatable[slot], _requests_of(nominated, slot)
            if not offered and slot in state.of_devices:
                continue
            missing = amount - (offered - used[slot] - sum(reserved.values()))
            if missing > 0:
                found.append(_shortage(self._resources.names[slot], amount, missing, offered, reserved))
        return found or super().explain(state, row, bits, context)

    def distances(self, state: Wanted, rows: Int64s, bits: Int64s, context: ExplainContext) -> Distances:
        """Each short resource is one obstacle of size min(missing / requested, 1), plus 1 if the node never fits."""
        allocatable, used = self._resources.allocatable, self._resources.used
        reserved = np.zeros((len(self._resources.names), len(rows)), dtype=np.int64)
        for row, pods in context.nominated.items():
            place = int(np.searchsorted(rows, row))
            for pod in pods:
                vector = pod.signature.request_vector
                reserved[: len(vector), place] += vector
        has_no_pod_slot = used[PODS, rows] + reserved[PODS] >= allocatable[PODS, rows]
        counts = has_no_pod_slot.astype(np.int64)
        sizes: Float64s = np.where(has_no_pod_slot, HARDNESS[ObstacleKind.POD_SLOT], 0.0)
        for slot, amount in state.demands:
            offered = allocatable[slot, rows]
            missing = np.maximum(amount - (offered - used[slot, rows] - reserved[slot]), 0)
            if slot in state.of_devices:
                missing = np.where(offered == 0, 0, missing)
            never_fits = (missing > 0) & (amount > offered)
            counts += missing > 0
            sizes += np.minimum(missing / amount, 1.0) + np.where(never_fits, NEVER_FITS_SIZE, 0.0)
        return Distances(counts, sizes)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Added:
        requests = fit_score_requests(pod.signature.view)
        return Added(
            tuple(
                (self._score_slot(spec.name), requests.get(spec.name, 0), spec.weight)
                for spec in self._strategy.resources
                if _counts_for_score(spec.name, requests)
            ),
            self._devices.backed_slots(),
        )

    def score(self, state: Added, rows: Rows) -> Int64s:
        if not state.resources:
            return np.zeros(length_of(rows), dtype=np.int64)
        allocatable, used = self._resources.allocatable, self._resources.used
        levels = [
            Level(used[slot][rows], added, allocatable[slot][rows], weight, *self._bounds(slot))
            if slot not in state.of_devices
            else self._devices.level(slot, added, rows, weight)
            for slot, added, weight in state.resources
        ]
        if self._points is not None:
            return ratio_score(levels, self._points)
        assert self._strategy.type in (LEAST_ALLOCATED, MOST_ALLOCATED), f"unknown strategy {self._strategy.type}"
        return average_score(levels, free_share_score if self._strategy.type == LEAST_ALLOCATED else used_share_score)

    def score_row(self, state: Added, row: int) -> int:
        if self._points is not None or not state.resources or state.of_devices:
            return super().score_row(state, row)
        allocatable, used = self._resources.at(row)
        total = weights = 0
        for slot, added, weight in state.resources:
            capacity = allocatable[slot]
            if capacity:
                requested = min(used[slot] + added, capacity)
                counted = capacity - requested if self._strategy.type == LEAST_ALLOCATED else requested
                total += weight * (counted * SCORE_MAX // capacity)
                weights += weight
        return int(total // weights) if weights else 0

    def wakes(self) -> tuple[Wake, ...]:
        return self._hints.wakes()

    def _bounds(self, slot: int) -> tuple[int, int]:
        return self._resources.bounds(slot, self._columns.live_rows)

    def _score_slot(self, name: str) -> int:
        return {"cpu": CPU_NON_ZERO, "memory": MEMORY_NON_ZERO}.get(name) or self._resources.slot(name)

    def _is_ignored(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups


def _counts_for_score(name: str, requests: Mapping[str, int]) -> bool:
    """Resources of no node are left out (`pods` is none), and extended ones that the pod does not request."""
    return name in _TOLD_FIRST or (is_scalar_resource(name) and requests.get(name, 0) != 0)


def _place(name: str) -> int:
    return _TOLD_FIRST.index(name) if name in _TOLD_FIRST else len(_TOLD_FIRST)


def _requests_of(pods: Sequence[PodInfo], slot: int) -> dict[str, int]:
    """What each pod requests of a resource, by the pod's key."""
    vectors = ((pod.key, pod.signature.request_vector) for pod in pods)
    return {key: int(vector[slot]) for key, vector in vectors if slot < len(vector) and vector[slot]}


def _shortage(name: str, amount: int, missing: int, offered: int, reserved: Mapping[str, int]) -> Obstacle:
    text = f"{amount_text(name, missing)} {name} more"
    if not offered:
        text += " (the node has none)"
    elif amount > offered:
        text += f" (the whole node has {amount_text(name, offered)})"
    elif reserved:
        text += f" ({amount_text(name, sum(reserved.values()))} promised to {', '.join(reserved)})"
    details = {
        "resource": name,
        "wanted": quantity_text(name, amount),
        "missing": quantity_text(name, missing),
        "allocatable": quantity_text(name, offered),
    }
    return Obstacle(NodeResourcesFit.name, ObstacleKind.RESOURCE, text, details)


def quantity_text(name: str, amount: int) -> str:
    """The exact amount as Kubernetes writes quantities: 300m, 1536Mi, 2."""
    if name == CPU:
        return str(Quantity(amount * NANO_IN_MILLI))
    return str(Quantity(amount * NANO, Format.BINARY_SI if _is_in_bytes(name) else Format.DECIMAL_SI))


def amount_text(name: str, amount: int) -> str:
    """The amount as people write it: 0.3 (cpu), 1.5Gi (bytes), 2 (anything else). Rounded up."""
    if name == CPU:
        return f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    if not _is_in_bytes(name):
        return str(amount)
    power = min(max(amount.bit_length() - 1, 0) // 10, len(_BINARY_UNITS) - 1)
    hundredths = -(-amount * 100 // (1 << 10 * power))
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + _BINARY_UNITS[power]


def _is_in_bytes(name: str) -> bool:
    return name in (MEMORY, EPHEMERAL_STORAGE) or is_huge_page_resource(name)
