"""BestFit: the node with the least cpu and GPU left, each as a share of the largest node.

int(100 · (1 − ½ · (cpu left − cpu) / 128,000 − ½ · (GPU left − GPU) / 8,000))
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SCORE_MAX, Scope, Score
from mooring.simulator.gpus import GpuColumns, GpuRequest, request_of

CPU_MILLI_MAX = 128_000
GPU_MILLI_MAX = 8_000


class BestFit(Score[GpuRequest]):
    """The original brings the scores to 0 to 100 afterwards, which does not change their order."""

    name = "BestFit"
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns) -> None:
        self._gpus = columns.shared(GpuColumns)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> GpuRequest:
        return request_of(pod.signature)

    def score(self, state: GpuRequest, rows: Rows) -> Int64s:
        cpu = (self._gpus.cpu_left(rows) - state.cpu_milli) / CPU_MILLI_MAX
        gpu = (self._gpus.left[:, rows].sum(axis=0) - state.total_milli) / GPU_MILLI_MAX
        scores: Int64s = np.clip((1.0 - (cpu * 0.5 + gpu * 0.5)) * SCORE_MAX, 0, SCORE_MAX).astype(np.int64)
        return scores

    def score_row(self, state: GpuRequest, row: int) -> int:
        cpu = (self._gpus.cpu_left_of(row) - state.cpu_milli) / CPU_MILLI_MAX
        gpu = (sum(self._gpus.left[:, row].tolist()) - state.total_milli) / GPU_MILLI_MAX
        return min(max(int((1.0 - (cpu * 0.5 + gpu * 0.5)) * SCORE_MAX), 0), SCORE_MAX)
