"""How full a node is: the scoring kernels of NodeResourcesFit and NodeResourcesBalancedAllocation, from 0 to 100.

Each kernel takes one `ResourceAllocation` for each scored resource, with one element per node. Its docstring gives the
formula for one node. A resource that a node does not offer is left out of that node's average, as in kube-scheduler.

1. Integers are divided as in Go: towards zero. A value that may be negative is set to zero before the division.
2. `DeviceBackedResources` counts devices for extended resources that a DeviceClass provides, on nodes that do not
   report the resource as allocatable. These counts change with every allocation, so scores depend on its `epoch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.resources import is_device_backed_resource
from mooring.api.views.devices import ResourceSlice
from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.framework.plugin import SCORE_MAX

_FLOAT_SAFE_MAX = 2**46


class ResourceAllocation(NamedTuple):
    """One resource on many nodes: used, added by the pod, allocatable, and the weight."""

    used: Int64s
    added: int
    allocatable: Int64s
    divisor: Float64s
    """max(allocatable, 1)"""
    weight: int
    least: int
    """The smallest allocatable amount of all nodes. If it is positive, no node is left out."""
    most: int


ResourceScore = Callable[[ResourceAllocation], Int64s]
"""From one resource to scores from 0 to 100."""


def free_share_score(resource: ResourceAllocation) -> Int64s:
    """Per node: (allocatable - requested) * 100 // allocatable, or 0 if it does not fit."""
    free = resource.allocatable - resource.used
    free -= resource.added
    return _percent(np.maximum(free, 0, out=free), resource)


def used_share_score(resource: ResourceAllocation) -> Int64s:
    """Per node: requested * 100 // allocatable, or 100 if it does not fit."""
    return _percent(np.minimum(resource.used + resource.added, resource.allocatable), resource)


def average_score(resources: Sequence[ResourceAllocation], resource_score: ResourceScore) -> Int64s:
    """Per node: the weighted average over the resources that the node offers, or 0 if it offers none."""
    length = len(resources[0].allocatable)
    if all(resource.least > 0 for resource in resources):
        weights = sum(resource.weight for resource in resources)
        total: Int64s | int = 0
        for resource in resources:
            scores = resource_score(resource)
            total = total + (scores if resource.weight == 1 else resource.weight * scores)
        assert not isinstance(total, int), "there are no resources"
        return total >> 1 if weights == 2 else total // weights
    total = np.zeros(length, dtype=np.int64)
    weight_sum = np.zeros(length, dtype=np.int64)
    for resource in resources:
        is_offered = resource.allocatable != 0
        scores = resource_score(resource)
        total += np.where(is_offered, resource.weight * scores, 0)
        weight_sum += np.where(is_offered, resource.weight, 0)
    return np.where(weight_sum > 0, total // np.maximum(weight_sum, 1), 0)


def ratio_score(resources: Sequence[ResourceAllocation], points_by_percent: Int64s) -> Int64s:
    """Per node: the rounded weighted average of `points_by_percent[utilization]`, leaving out resources that get 0."""
    total = np.zeros(len(resources[0].allocatable), dtype=np.int64)
    weight_sum = np.zeros(len(resources[0].allocatable), dtype=np.int64)
    for resource in resources:
        requested = resource.used + resource.added
        is_over = requested > resource.allocatable
        percent = np.where(is_over, 100, requested * 100 // np.maximum(resource.allocatable, 1))
        points = np.where(resource.allocatable != 0, points_by_percent[np.clip(percent, 0, 100)], 0)
        counts = points > 0
        total += np.where(counts, points * resource.weight, 0)
        weight_sum += np.where(counts, resource.weight, 0)
    divisor = np.maximum(weight_sum, 1)
    # Rounded to the nearest integer, halves up; never negative.
    return np.where(weight_sum > 0, (2 * total + divisor) // (2 * divisor), 0)


def shape_points(shape: Sequence[tuple[int, int]]) -> Int64s:
    """The piecewise linear function through (utilization, score) points, for each percent from 0 to 100."""
    return np.array([_on_line(shape, percent) for percent in range(101)], dtype=np.int64)


def balance_score(resources: Sequence[ResourceAllocation]) -> Int64s:
    """Per node: 50 + (50 + evenness with the pod - evenness without it) // 2."""
    half = SCORE_MAX // 2
    # The difference is between -50 and 50, so the shifted number is never negative.
    return half + (half + evenness(resources, with_pod=True) - evenness(resources, with_pod=False) >> 1)


def one_balance_score(offered: Sequence[tuple[int, int, int]]) -> int:
    """As `balance_score`, for one node and at most two (used, added, allocatable)."""
    half = SCORE_MAX // 2
    if len(offered) < 2:
        return half + half // 2
    (used, added, whole), (other_used, other_added, other_whole) = offered
    with_pod = _even(used + added, whole, other_used + other_added, other_whole)
    return half + (half + with_pod - _even(used, whole, other_used, other_whole)) // 2


def _even(requested: int, whole: int, other_requested: int, other_whole: int) -> int:
    share, other_share = requested / whole, other_requested / other_whole
    distance = (share if share < 1.0 else 1.0) - (other_share if other_share < 1.0 else 1.0)
    return int((1 - abs(distance / 2)) * float(SCORE_MAX))


def evenness(resources: Sequence[ResourceAllocation], *, with_pod: bool) -> Int64s:
    """Per node: 100 * (1 - standard deviation of the used shares), truncated."""
    shares = [_share(resource, resource.added if with_pod else 0) for resource in resources]
    if len(resources) == 2 and all(resource.least > 0 for resource in resources):
        deviation = np.abs(shares[0] - shares[1])
        deviation /= 2
    else:
        deviation = _deviation(shares, [resource.allocatable != 0 for resource in resources])
    deviation -= 1.0
    deviation *= -float(SCORE_MAX)  # equals (1 - deviation) * 100, without two more arrays
    return deviation.astype(np.int64)


def _share(resource: ResourceAllocation, added: int) -> Float64s:
    share = (resource.used + added if added else resource.used) / resource.divisor
    return np.minimum(share, 1.0, out=share)


def _deviation(shares: Sequence[Float64s], offered: Sequence[Bools]) -> Float64s:
    """Per node: the standard deviation of its shares; for two, half their difference; for fewer, 0.

    Sums follow the order of the resources, so that they round as in kube-scheduler.
    """
    length = len(shares[0])
    count = np.zeros(length, dtype=np.int64)
    total, earliest, latest = np.zeros(length), np.zeros(length), np.zeros(length)
    for share, is_offered in zip(shares, offered, strict=True):
        total = np.where(is_offered, total + share, total)
        earliest = np.where(is_offered & (count == 0), share, earliest)
        latest = np.where(is_offered, share, latest)
        count += is_offered
    mean = total / np.maximum(count, 1)
    squares = np.zeros(length)
    for share, is_offered in zip(shares, offered, strict=True):
        squares = np.where(is_offered, squares + (share - mean) * (share - mean), squares)
    of_two = np.abs((earliest - latest) / 2)
    of_many = np.sqrt(squares / np.maximum(count, 1))
    return np.where(count == 2, of_two, np.where(count > 2, of_many, 0.0))


def _percent(part: Int64s, resource: ResourceAllocation) -> Int64s:
    """Per node: part * 100 // allocatable, for 0 <= part <= allocatable, or 0 if nothing is allocatable.

    Float division is many times faster than integer division, and exact here: the quotient is at most 100, so its float
    error is at most 2**-46, while a quotient that is not an integer differs from the next integer by at least
    1 / allocatable. Larger amounts use integer division.
    """
    part *= SCORE_MAX
    if resource.most < _FLOAT_SAFE_MAX:
        return (part / resource.divisor).astype(np.int64)
    return part // np.maximum(resource.allocatable, 1)  # at least 1: avoids a division by zero


def _on_line(shape: Sequence[tuple[int, int]], percent: int) -> int:
    for index, (utilization, score) in enumerate(shape):
        if percent <= utilization:
            if index == 0:
                return score
            low_utilization, low_score = shape[index - 1]
            rise = (score - low_score) * (percent - low_utilization)
            run = utilization - low_utilization
            return low_score + (rise // run if rise >= 0 else -(-rise // run))
    return shape[-1][1]


class DeviceBackedResources:
    """Extended resources that devices provide, as used and allocatable amounts."""

    def __init__(self, columns: Columns, scored: Iterable[str]) -> None:
        self._columns = columns
        self._manager = columns.shared(DRAManager)
        self._slices = columns.objects.of(ResourceSlice)
        self._scored = tuple(name for name in scored if is_device_backed_resource(name))

    def epoch(self) -> object:
        """Changes when the devices change that filters and scores read."""
        class_resolver = self._manager.class_resolver
        if not self._scored or not any(self.has_device_class(name) for name in self._scored):
            return class_resolver.revision
        return class_resolver.revision, self._manager.allocated.revision, self._slices.version

    def has_device_class(self, name: str) -> bool:
        return self._manager.class_resolver.get(name) is not None

    def backed_indexes(self) -> frozenset[int]:
        """The indexes of scored resources with a DeviceClass."""
        return frozenset(self._columns.resources.index_of(name) for name in self._scored if self.has_device_class(name))

    def resource(self, index: int, added: int, rows: Rows, weight: int) -> ResourceAllocation:
        """One resource on many rows: devices on rows that report none as allocatable."""
        resources = self._columns.resources
        offered, used = resources.allocatable[index, rows], resources.used[index, rows]
        device_class = self._manager.class_resolver.get(resources.names[index])
        assert device_class is not None, f"no DeviceClass provides {resources.names[index]}"
        totals = self._manager.totals(device_class)
        are_devices = (offered == 0) & (totals.devices[rows] > 0)
        offered = np.where(are_devices, totals.devices[rows], offered)
        used = np.where(are_devices, totals.in_use[rows], used)
        divisor = np.maximum(offered, 1).astype(np.float64)
        return ResourceAllocation(used, added, offered, divisor, weight, 0, int(offered.max(initial=0)))
