"""GpuPacking: used GPUs first, then free GPUs of used nodes, then free nodes.

| the node | score |
|---|---|
| has GPUs in use with enough left for the pod | 100 − a tenth of the percentage that is left of them, at least 50 |
| has GPUs in use, but the pod needs free ones | 50 − the number of free GPUs that it needs, at least 33 |
| has only free GPUs | 33 − their number |

The GPUs with the least left are tried first. A pod without GPUs scores 0 everywhere.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, Scope, Score, Skip
from mooring.simulator.gpus import MILLI, GpuColumns, GpuRequest, request_of


class GpuPacking(Score[GpuRequest]):
    name = "GpuPacking"
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns) -> None:
        self._gpus = columns.shared(GpuColumns)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> GpuRequest | Skip:
        request = request_of(pod.signature)
        return request if request.gpus else SKIP

    def score(self, state: GpuRequest, rows: Rows) -> Int64s:
        left = self._gpus.left[:, rows]
        free = (left == MILLI).sum(axis=0)
        is_used_enough = (left >= state.milli) & (left < MILLI)
        # A pod of several GPUs asks for whole ones, so only a share can use a GPU that is in use.
        used_left = np.where(is_used_enough, left, MILLI).min(axis=0)
        needed_free = np.where(is_used_enough.any(axis=0), 0, state.gpus)
        shared = np.maximum(SCORE_MAX - (used_left * 100 // MILLI) // 10, SCORE_MAX // 2)
        on_used_node = np.maximum(SCORE_MAX // 2 - needed_free, SCORE_MAX // 3)
        on_free_node = np.maximum(SCORE_MAX // 3 - free, free)
        used = np.where(needed_free > 0, on_used_node, shared)
        scores: Int64s = np.where(free == self._gpus.count[rows], on_free_node, used)
        return scores
