"""FGD: fragmentation gradient descent. The node, and the GPU, whose fragmentation grows least.

    int(100 · sigmoid((F(n) − F(n with the pod)) / 1,000))

For a share, the score is that of the node's best GPU (the first of equals), which Reserve then takes.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Float64s, Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SCORE_MAX, Scope, Score
from mooring.simulator.fragmentation import GpuFragmentation, typical_pods
from mooring.simulator.gpus import MILLI, GpuColumns, GpuRequest, request_of
from mooring.simulator.workload import PodTypes

IMPOSSIBLE = -1
"""Score of a GPU that does not fit: below that of any other."""


class FragmentationGradientDescent(Score[GpuRequest]):
    name = "FGD"
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns, workload: PodTypes) -> None:
        self._columns = columns
        self._gpus = columns.shared(GpuColumns)
        self._gpus.choose_share = self.choose_share
        self._fragmentation = GpuFragmentation(self._gpus, typical_pods(columns, workload))

    def pre_score(self, pod: PodInfo, feasible: Rows) -> GpuRequest:
        return request_of(pod.signature)

    def score(self, state: GpuRequest, rows: Rows) -> Int64s:
        left, cpu_left, model = self._gpus.left[:, rows], self._gpus.cpu_left(rows), self._gpus.model[rows]
        if state.is_share:
            best: Int64s = np.maximum(self._share_scores(state, left, cpu_left, model).max(axis=0), 0)
            return best
        before = self._fragmentation.of(left, cpu_left, model)
        after = self._fragmentation.of(_without_whole_gpus(left, state.gpus), cpu_left - state.cpu_milli, model)
        return _scores(before - after)

    def choose_share(self, request: GpuRequest, row: int) -> int:
        """The best GPU of a row. Reserve runs when the pod's cpu is taken already."""
        rows = np.array([row])
        cpu_left = self._gpus.cpu_left(rows) + request.cpu_milli
        return int(self._share_scores(request, self._gpus.left[:, rows], cpu_left, self._gpus.model[rows]).argmax())

    def _share_scores(self, request: GpuRequest, left: Int64s, cpu_left: Int64s, model: Int64s) -> Int64s:
        """Per GPU and node: the score if the share goes there.

        Another GPU changes only its own lookup, and the number of free GPUs if it was free.
        """
        single, multiple = self._fragmentation.tables()
        before = self._fragmentation.of(left, cpu_left, model)
        place = self._fragmentation.cpu_place(cpu_left - request.cpu_milli)
        usable = single[model, place, left]
        smaller = np.maximum(left - request.milli, 0)
        is_free = left == MILLI
        free = is_free.sum(axis=0)
        multiple_usable = np.where(
            is_free, multiple[model, place, np.maximum(free - 1, 0)], multiple[model, place, free]
        )
        usable_after = usable.sum(axis=0) - usable + single[model, place, smaller] + multiple_usable
        after = left.sum(axis=0) - request.milli - usable_after
        return np.where(left >= request.milli, _scores(before - after), IMPOSSIBLE)


def _scores(decrease: Float64s) -> Int64s:
    """int(100 · sigmoid(decrease / 1,000))"""
    scores: Int64s = (SCORE_MAX / (1.0 + np.exp(-decrease / 1000))).astype(np.int64)
    return scores


def _without_whole_gpus(left: Int64s, count: int) -> Int64s:
    """The GPUs of nodes after a pod has taken whole ones, by index."""
    if not count:
        return left
    is_free = left == MILLI
    is_taken = is_free & (is_free.cumsum(axis=0) <= count)
    return np.where(is_taken, 0, left)
