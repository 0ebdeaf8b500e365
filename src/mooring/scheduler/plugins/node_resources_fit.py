"""NodeResourcesFit: a node must have the requested resources free; the score depends on how full it would be.

Input: the pod's requests, the allocatable and used amounts of nodes. Output: for each node every resource that is short
("Insufficient cpu"), and a score by the profile's strategy.

1. A node that is too small even when empty is rejected as unresolvable: preemption does not help there.
2. Filtering counts real requests. Scoring counts 100m cpu and 200 MiB memory for a container without requests.
3. A resource that a node does not report as allocatable, but a DeviceClass provides, is left to DynamicResources.
4. A queueing hint assumes that the node is empty; the next attempt counts its pods. As in kube-scheduler, hints do not
   ignore the resources that the plugin is configured to ignore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.quantity import NANO, NANO_IN_MILLI, Format, Quantity
from mooring.api.resources import (
    CPU,
    DEVICE_CLASS_PREFIX,
    EPHEMERAL_STORAGE,
    MEMORY,
    RequestRules,
    fit_filter_requests,
    fit_score_requests,
    is_extended_resource,
    is_huge_page_resource,
    is_scalar_resource,
    node_allocatable,
    pod_requests_nano,
)
from mooring.api.resources import (
    PODS as PODS_NAME,
)
from mooring.api.views.devices import DeviceClass
from mooring.api.views.node import Node
from mooring.scheduler.cache.arrays import Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO, PODS
from mooring.scheduler.config.types import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
)
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
    queue_on_own_update,
)
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
from mooring.scheduler.plugins.resource_allocation import (
    DeviceBackedResources,
    ResourceAllocation,
    average_score,
    free_share_score,
    ratio_score,
    shape_points,
    used_share_score,
)

Amounts = Mapping[str, int]

_BY_SPEC = RequestRules()
_CUSTOM_SCORE_MAX = 10
"""Scores of a shape are from 0 to 10, node scores from 0 to 100."""
_REPORTED_FIRST = ("cpu", "memory", "ephemeral-storage")
_BINARY_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class FitFilterState(NamedTuple):
    """The requested indexes and amounts, and the reason for each that is short."""

    requests: tuple[tuple[int, int], ...]
    reasons: tuple[Reason, ...]
    device_backed: frozenset[int] = frozenset()
    """Slots of resources with a DeviceClass. A node without the resource is left to DynamicResources."""


class FitScoreState(NamedTuple):
    """What the pod adds for scoring: (index, amount, weight) for each scored resource."""

    resources: tuple[tuple[int, int, int], ...]
    device_backed: frozenset[int] = frozenset()


class NodeResourcesFit(
    PreFilter[FitFilterState], Filter[FitFilterState], PreScore[FitScoreState], Score[FitScoreState]
):
    name = "NodeResourcesFit"
    obstacle_kind = ObstacleKind.RESOURCE
    filter_scope = Scope.NODE_PODS
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns, arguments: NodeResourcesFitArgs) -> None:
        self._columns = columns
        self._resources = columns.resources
        self._ignored = frozenset(arguments.ignored_resources)
        self._ignored_groups = frozenset(arguments.ignored_resource_groups)
        self._strategy = arguments.scoring_strategy
        self._devices = DeviceBackedResources(columns, [spec.name for spec in self._strategy.resources])
        ratio = self._strategy.requested_to_capacity_ratio
        self._points = (
            shape_points([(p.utilization, p.score * (100 // _CUSTOM_SCORE_MAX)) for p in ratio.shape])
            if self._strategy.type == REQUESTED_TO_CAPACITY_RATIO and ratio is not None
            else None
        )
        self._offers: list[tuple[Node, Amounts]] = []
        """Allocatable amounts of the last two nodes: hints of many pods read the same event."""

    def pre_filter(self, pod: PodInfo) -> Proceed[FitFilterState] | Status:
        requests = {
            name: amount
            for name, amount in fit_filter_requests(pod.signature.view).items()
            if amount > 0 and not self._is_ignored(name)
        }
        if len(requests) > REASONS_MAX - 2:
            return Status.unresolvable(
                f"pod requests {len(requests)} different resources, more than the filter can distinguish"
            )
        names = sorted(requests, key=lambda name: (_place(name), name))
        return Proceed(
            FitFilterState(
                requests=tuple((self._resources.index_of(name), requests[name]) for name in names),
                reasons=(
                    Reason("Too many pods"),
                    *(Reason(f"Insufficient {name}") for name in names),
                    Reason(None, Code.UNRESOLVABLE),
                ),
                device_backed=frozenset(
                    self._resources.index_of(name) for name in names if self._devices.has_device_class(name)
                ),
            )
        )

    def epoch(self) -> object:
        return self._devices.epoch()

    def filter(self, state: FitFilterState, rows: Rows) -> Int64s:
        allocatable, used = self._resources.allocatable, self._resources.used
        bits: Int64s = (used[PODS][rows] >= allocatable[PODS][rows]).astype(np.int64)
        for place, (index, amount) in enumerate(state.requests, start=1):
            offered = allocatable[index][rows]
            is_short = amount > offered - used[index][rows]
            if index in state.device_backed:
                is_short &= offered > 0
            if is_short.any():
                bits |= np.where(is_short, 1 << place, 0)
                bits |= np.where(is_short & (amount > offered), 1 << (len(state.reasons) - 1), 0)
        return bits

    def filter_row(self, state: FitFilterState, row: int) -> int:
        allocatable, used = self._resources.at(row)
        bits = int(used[PODS] >= allocatable[PODS])
        for place, (index, amount) in enumerate(state.requests, start=1):
            if amount > allocatable[index] - used[index] and (
                allocatable[index] > 0 or index not in state.device_backed
            ):
                bits |= 1 << place
                if amount > allocatable[index]:
                    bits |= 1 << (len(state.reasons) - 1)
        return bits

    def reasons(self, state: FitFilterState) -> tuple[Reason, ...]:
        return state.reasons

    def explain(self, state: FitFilterState, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        allocatable, used = self._resources.at(row)
        nominated = context.nominated_to(row)
        found = []
        missing_pods = used[PODS] + len(nominated) + 1 - allocatable[PODS]
        if missing_pods > 0:
            text = f"{missing_pods} more pod slot{'s' if missing_pods > 1 else ''}"
            found.append(Obstacle(self.name, ObstacleKind.POD_SLOT, text, {"missing": missing_pods}))
        for index, amount in state.requests:
            offered, reserved = allocatable[index], _requests_of(nominated, index)
            if not offered and index in state.device_backed:
                continue
            missing = amount - (offered - used[index] - sum(reserved.values()))
            if missing > 0:
                found.append(_shortage(self._resources.names[index], amount, missing, offered, reserved))
        return found or super().explain(state, row, bits, context)

    def distances(self, state: FitFilterState, rows: Int64s, bits: Int64s, context: ExplainContext) -> Distances:
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
        for index, amount in state.requests:
            offered = allocatable[index, rows]
            missing = np.maximum(amount - (offered - used[index, rows] - reserved[index]), 0)
            if index in state.device_backed:
                missing = np.where(offered == 0, 0, missing)
            never_fits = (missing > 0) & (amount > offered)
            counts += missing > 0
            sizes += np.minimum(missing / amount, 1.0) + np.where(never_fits, NEVER_FITS_SIZE, 0.0)
        return Distances(counts, sizes)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> FitScoreState:
        requests = fit_score_requests(pod.signature.view)
        return FitScoreState(
            tuple(
                (self._score_index(spec.name), requests.get(spec.name, 0), spec.weight)
                for spec in self._strategy.resources
                if _counts_for_score(spec.name, requests)
            ),
            self._devices.backed_indexes(),
        )

    def score(self, state: FitScoreState, rows: Rows) -> Int64s:
        if not state.resources:
            return np.zeros(length_of(rows), dtype=np.int64)
        allocatable, used = self._resources.allocatable, self._resources.used
        resources = [
            ResourceAllocation(
                used[index][rows],
                added,
                allocatable[index][rows],
                self._resources.divisors(index)[rows],
                weight,
                *self._bounds(index),
            )
            if index not in state.device_backed
            else self._devices.resource(index, added, rows, weight)
            for index, added, weight in state.resources
        ]
        if self._points is not None:
            return ratio_score(resources, self._points)
        assert self._strategy.type in (LEAST_ALLOCATED, MOST_ALLOCATED), f"unknown strategy {self._strategy.type}"
        return average_score(
            resources, free_share_score if self._strategy.type == LEAST_ALLOCATED else used_share_score
        )

    def score_row(self, state: FitScoreState, row: int) -> int:
        if self._points is not None or not state.resources or state.device_backed:
            return super().score_row(state, row)
        allocatable, used = self._resources.at(row)
        total = weights = 0
        for index, added, weight in state.resources:
            capacity = allocatable[index]
            if capacity:
                requested = min(used[index] + added, capacity)
                counted = capacity - requested if self._strategy.type == LEAST_ALLOCATED else requested
                total += weight * (counted * SCORE_MAX // capacity)
                weights += weight
        return int(total // weights) if weights else 0

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_resources, per_signature=True),
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN, _frees_request, per_signature=True
            ),
            ClusterEventWithHint(
                EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCALE_DOWN, queue_on_own_update
            ),
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE,
                self._may_fit_now,
                per_signature=True,
            ),
            ClusterEventWithHint(
                EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE, _provides_request, per_signature=True
            ),
        )

    def _may_fit_now(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        """Whether an added or changed node is large enough, and a requested resource has grown."""
        requests, offered = _requests(pod.signature), self._allocatable_of(new)
        if offered.get(PODS_NAME, 0) < 1:
            return QueueingHint.SKIP
        for name, amount in requests.items():
            if amount > offered.get(name, 0) and not self._is_left_to_devices(name, offered):
                return QueueingHint.SKIP
        return queue_if(old is None or self._has_grown(requests, self._allocatable_of(old), offered))

    def _has_grown(self, requests: Amounts, before: Amounts, after: Amounts) -> bool:
        return after.get(PODS_NAME, 0) > before.get(PODS_NAME, 0) or any(
            after.get(name, 0) > before.get(name, 0) or self._is_left_to_devices(name, after) for name in requests
        )

    def _is_left_to_devices(self, name: str, offered: Amounts) -> bool:
        return offered.get(name, 0) <= 0 and self._devices.has_device_class(name)

    def _allocatable_of(self, node: Node) -> Amounts:
        for known, amounts in self._offers:
            if known is node:
                return amounts
        offered = node_allocatable(node)
        self._offers = [*self._offers[-1:], (node, offered)]
        return offered

    def _bounds(self, index: int) -> tuple[int, int]:
        return self._resources.bounds(index, self._columns.live_rows)

    def _score_index(self, name: str) -> int:
        return {"cpu": CPU_NON_ZERO, "memory": MEMORY_NON_ZERO}.get(name) or self._resources.index_of(name)

    def _is_ignored(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups


def _counts_for_score(name: str, requests: Mapping[str, int]) -> bool:
    """Whether a resource is scored: not `pods`, and not extended resources that the pod does not request."""
    return name in _REPORTED_FIRST or (is_scalar_resource(name) and requests.get(name, 0) != 0)


def _place(name: str) -> int:
    return _REPORTED_FIRST.index(name) if name in _REPORTED_FIRST else len(_REPORTED_FIRST)


def _requests_of(pods: Sequence[PodInfo], index: int) -> dict[str, int]:
    """What each pod requests of a resource, by the pod's key."""
    vectors = ((pod.key, pod.signature.request_vector) for pod in pods)
    return {key: int(vector[index]) for key, vector in vectors if index < len(vector) and vector[index]}


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
    """The amount for messages: 0.3 (cpu), 1.5Gi (bytes), 2 (others). Rounded up."""
    if name == CPU:
        return f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    if not _is_in_bytes(name):
        return str(amount)
    power = min(max(amount.bit_length() - 1, 0) // 10, len(_BINARY_UNITS) - 1)
    hundredths = -(-amount * 100 // (1 << 10 * power))
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + _BINARY_UNITS[power]


def _is_in_bytes(name: str) -> bool:
    return name in (MEMORY, EPHEMERAL_STORAGE) or is_huge_page_resource(name)


# --- queueing hints ----------------------------------------------------------------------------------------------


def _frees_resources(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    return queue_if(has_node_or_nomination(old))


def _frees_request(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    """Whether a placed pod frees a resource that the pending pod requests."""
    requested, before, after = _requested(pod), _requested(old), _requested(new)
    return queue_if(
        any(
            amount and index < len(before) and before[index] > (after[index] if index < len(after) else 0)
            for index, amount in enumerate(requested)
            if index not in (CPU_NON_ZERO, MEMORY_NON_ZERO)
        )
    )


def _provides_request(pod: PodInfo, old: DeviceClass | None, new: DeviceClass) -> QueueingHint:
    """Whether the added or updated DeviceClass provides a resource that the pod requests."""
    named = new.spec.extended_resource_name
    if old is not None and (old.spec.extended_resource_name or "") == (named or ""):
        return QueueingHint.SKIP
    requested = pod_requests_nano(pod.signature.view, _BY_SPEC)
    if old is None and DEVICE_CLASS_PREFIX + new.metadata.name in requested:
        return QueueingHint.QUEUE
    return queue_if(named is not None and named in requested)


def _requested(pod: PodInfo) -> Sequence[int]:
    """What a pod uses of its node, by index."""
    amounts: list[int] = pod.signature.request_vector.tolist()
    return amounts


@PerSignature
def _requests(signature: PodSignature) -> Amounts:
    """The positive requests of a pod."""
    return {name: amount for name, amount in fit_filter_requests(signature.view).items() if amount > 0}
