"""DotProd: the node whose free resources are least aligned with the request.

int(100 · (1 − ½ · (cpu left · cpu / 128,000² + GPU left · GPU / 8,000²)))
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


class DotProduct(Score[GpuRequest]):
    name = "DotProd"
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns) -> None:
        self._gpus = columns.shared(GpuColumns)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> GpuRequest:
        return request_of(pod.signature)

    def score(self, state: GpuRequest, rows: Rows) -> Int64s:
        cpu = self._gpus.cpu_left(rows) / CPU_MILLI_MAX * (state.cpu_milli / CPU_MILLI_MAX)
        gpu = self._gpus.left[:, rows].sum(axis=0) / GPU_MILLI_MAX * (state.total_milli / GPU_MILLI_MAX)
        scores: Int64s = np.clip((1.0 - (cpu + gpu) / 2) * SCORE_MAX, 0, SCORE_MAX).astype(np.int64)
        return scores

    def score_row(self, state: GpuRequest, row: int) -> int:
        cpu = self._gpus.cpu_left_of(row) / CPU_MILLI_MAX * (state.cpu_milli / CPU_MILLI_MAX)
        left = sum(self._gpus.left[:, row].tolist())
        gpu = left / GPU_MILLI_MAX * (state.total_milli / GPU_MILLI_MAX)
        return min(max(int((1.0 - (cpu + gpu) / 2) * SCORE_MAX), 0), SCORE_MAX)
