"""Kernels of resource scoring: how full a node would be, as a number from 0 to 100.

Each kernel takes one `Level` for each resource that counts, with a place for each node, and is written after one node's
meaning. Places where a node offers none of a resource are left out of that node's average, as kube-scheduler does.

Whole numbers are divided as Go divides them: towards zero. Where a number could be negative it is held at zero
before the division, so that numpy's rounding down is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.resource_names import is_device_backed_resource
from mooring.api.views.devices import ResourceSlice
from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.framework.plugin import SCORE_MAX

_FLOAT_SAFE_MAX = 2**46


class Level(NamedTuple):
    """One resource on many nodes: what is used, what the pod adds, what there is, and how much it counts."""

    used: Int64s
    added: int
    allocatable: Int64s
    weight: int
    least: int
    """The least that any node offers: where that is more than nothing, no node needs to be left out."""
    most: int


ResourceScore = Callable[[Level], Int64s]
"""From a resource to 0..100."""


def free_share_score(level: Level) -> Int64s:
    """Per node: (allocatable - requested) * 100 // allocatable, and 0 where it does not fit."""
    free = level.allocatable - level.used
    free -= level.added
    return _percent(np.maximum(free, 0, out=free), level)


def used_share_score(level: Level) -> Int64s:
    """Per node: requested * 100 // allocatable, and 100 where it does not fit."""
    return _percent(np.minimum(level.used + level.added, level.allocatable), level)


def average_score(levels: Sequence[Level], resource_score: ResourceScore) -> Int64s:
    """Per node: the weighted average of the resources that the node offers, and 0 if it offers none."""
    length = len(levels[0].allocatable)
    if all(level.least > 0 for level in levels):
        weights = sum(level.weight for level in levels)
        total: Int64s | int = 0
        for level in levels:
            scores = resource_score(level)
            total = total + (scores if level.weight == 1 else level.weight * scores)
        assert not isinstance(total, int), "there is no average of nothing"
        return total >> 1 if weights == 2 else total // weights
    total = np.zeros(length, dtype=np.int64)
    weight_sum = np.zeros(length, dtype=np.int64)
    for level in levels:
        is_offered = level.allocatable != 0
        scores = resource_score(level)
        total += np.where(is_offered, level.weight * scores, 0)
        weight_sum += np.where(is_offered, level.weight, 0)
    return np.where(weight_sum > 0, total // np.maximum(weight_sum, 1), 0)


def ratio_score(levels: Sequence[Level], points_by_percent: Int64s) -> Int64s:
    """Per node: the rounded weighted average of `points_by_percent[utilization]`, leaving out resources that get 0."""
    total = np.zeros(len(levels[0].allocatable), dtype=np.int64)
    weight_sum = np.zeros(len(levels[0].allocatable), dtype=np.int64)
    for level in levels:
        requested = level.used + level.added
        is_over = requested > level.allocatable
        percent = np.where(is_over, 100, requested * 100 // np.maximum(level.allocatable, 1))
        points = np.where(level.allocatable != 0, points_by_percent[np.clip(percent, 0, 100)], 0)
        counts = points > 0
        total += np.where(counts, points * level.weight, 0)
        weight_sum += np.where(counts, level.weight, 0)
    divisor = np.maximum(weight_sum, 1)
    # Rounded to the nearest, halves up: exact in whole numbers, and never negative.
    return np.where(weight_sum > 0, (2 * total + divisor) // (2 * divisor), 0)


def shape_points(shape: Sequence[tuple[int, int]]) -> Int64s:
    """The broken line through (utilization, score) points, for every whole percent from 0 to 100."""
    return np.array([_on_line(shape, percent) for percent in range(101)], dtype=np.int64)


def balance_score(levels: Sequence[Level], without_pod: Int64s) -> Int64s:
    """Per node: 75 if the pod leaves the balance between resources as it is, up to 100 the more it mends it."""
    half = SCORE_MAX // 2
    # The difference lies between -50 and 50, so that shifting right halves what is never negative.
    return half + (half + evenness(levels, with_pod=True) - without_pod >> 1)


def one_balance_score(offered: Sequence[tuple[int, int, int]]) -> int:
    """The same for one node and at most two (used, added, allocatable): the row that a pod was just placed on."""
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


def one_evenness(offered: Sequence[tuple[int, int]]) -> int:
    """As `evenness`, for one node and at most two (requested, allocatable)."""
    if len(offered) < 2:
        return SCORE_MAX
    return _even(*offered[0], *offered[1])


def evenness(levels: Sequence[Level], *, with_pod: bool) -> Int64s:
    """Per node: 100 * (1 - standard deviation of the used shares), cut off to a whole number."""
    shares = [_share(level, level.added if with_pod else 0) for level in levels]
    if len(levels) == 2 and all(level.least > 0 for level in levels):
        deviation = np.abs(shares[0] - shares[1])
        deviation /= 2
    else:
        deviation = _deviation(shares, [level.allocatable != 0 for level in levels])
    deviation -= 1.0
    deviation *= -float(SCORE_MAX)  # the same number as (1 - deviation) * 100, without two more arrays
    return deviation.astype(np.int64)


def _share(level: Level, added: int) -> Float64s:
    share = (level.used + added if added else level.used) / np.maximum(level.allocatable, 1)
    return np.minimum(share, 1.0, out=share)


def _deviation(shares: Sequence[Float64s], offered: Sequence[Bools]) -> Float64s:
    """Per node: the standard deviation of the shares it has; of two, half their distance; of fewer, 0.

    The sums run in the order of the resources, so that they round as kube-scheduler's do.
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


def _percent(part: Int64s, level: Level) -> Int64s:
    """Per node: part * 100 // allocatable, for 0 <= part <= allocatable, and 0 where nothing is offered.

    Dividing floats is six times faster than dividing whole numbers, and exact here: the quotient is at most 100, so
    a float next to it is 2**-46 away at most, while a quotient that is no whole number misses the next one by at
    least 1 / allocatable. Larger amounts are divided the slow way.
    """
    divisor = np.maximum(level.allocatable, 1)  # never divide by zero, even unread
    part *= SCORE_MAX
    if level.most < _FLOAT_SAFE_MAX:
        return (part / divisor).astype(np.int64)
    return part // divisor


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


class DeviceLevels:
    """Devices as a resource."""

    def __init__(self, columns: Columns, scored: Iterable[str]) -> None:
        self._columns = columns
        self._manager = columns.shared(DRAManager)
        self._slices = columns.objects.of(ResourceSlice)
        self._scored = tuple(name for name in scored if is_device_backed_resource(name))

    def epoch(self) -> object:
        """Changes with what filters and scores read of devices."""
        class_resolver = self._manager.class_resolver
        if not self._scored or not any(self.stand_behind(name) for name in self._scored):
            return class_resolver.revision
        return class_resolver.revision, self._manager.allocated.revision, self._slices.version

    def stand_behind(self, name: str) -> bool:
        return self._manager.class_resolver.get(name) is not None

    def backed_slots(self) -> frozenset[int]:
        """The slots of scored resources that devices stand behind."""
        return frozenset(self._columns.resources.slot(name) for name in self._scored if self.stand_behind(name))

    def level(self, slot: int, added: int, rows: Rows, weight: int) -> Level:
        """One resource on many rows: devices where a row offers none of it otherwise."""
        resources = self._columns.resources
        offered, used = resources.allocatable[slot, rows], resources.used[slot, rows]
        device_class = self._manager.class_resolver.get(resources.names[slot])
        assert device_class is not None, f"no device stands behind {resources.names[slot]}"
        totals = self._manager.totals(device_class)
        are_devices = (offered == 0) & (totals.devices[rows] > 0)
        offered = np.where(are_devices, totals.devices[rows], offered)
        used = np.where(are_devices, totals.in_use[rows], used)
        return Level(used, added, offered, weight, 0, int(offered.max(initial=0)))
