"""GpuClustering: nodes that hold pods of the same GPU class first, the fuller the better.

A class is a share of a GPU, or a number of whole GPUs. The score has four steps of 25, and within a step the used share
of eight GPUs:

| the node has | score |
|---|---|
| pods of this class alone | 75 to 100 |
| pods of this class and others | 50 to 75 |
| no pods with GPUs | 25 to 50 |
| pods of other classes alone | 0 to 25 |

A pod without GPUs scores 0 everywhere.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, Scope, Score, Skip
from mooring.simulator.gpus import GpuColumns, GpuRequest, request_of

GPU_MILLI_MAX = 8_000
STEP = SCORE_MAX // 4


class GpuClustering(Score[GpuRequest]):
    name = "GpuClustering"
    score_scope = Scope.NODE_PODS

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._gpus = columns.shared(GpuColumns)
        self._classes: dict[int, frozenset[int]] = {}
        """By row: the classes of its pods."""
        self._read_until = 0

    def pre_score(self, pod: PodInfo, feasible: Rows) -> GpuRequest | Skip:
        request = request_of(pod.signature)
        return request if request.gpus else SKIP

    def score(self, state: GpuRequest, rows: Rows) -> Int64s:
        self._read_pods()
        wanted, classes, nothing = _class_of(state), self._classes, frozenset[int]()
        numbers: list[int] = np.arange(self._columns.height)[rows].tolist()
        steps = np.array([_step(wanted, classes.get(row, nothing)) for row in numbers], dtype=np.int64)
        used = GPU_MILLI_MAX - self._gpus.left[:, rows].sum(axis=0)
        scores: Int64s = STEP * steps + np.maximum(STEP * used // GPU_MILLI_MAX, 0)
        return scores

    def _read_pods(self) -> None:
        columns, log = self._columns, self._columns.usage_changes
        if log.position == self._read_until:
            return
        changed = log.since(self._read_until)
        self._read_until = log.position
        for row in range(columns.height) if changed is None else changed.tolist():
            requests = (request_of(pod.signature) for pod in columns.pods_on[row].values())
            self._classes[row] = frozenset(_class_of(request) for request in requests if request.gpus)


def _class_of(request: GpuRequest) -> int:
    """0: a share; otherwise the number of GPUs."""
    return 0 if request.is_share else request.gpus


def _step(wanted: int, found: frozenset[int]) -> int:
    if wanted in found:
        return 3 if len(found) == 1 else 2
    return 0 if found else 1
