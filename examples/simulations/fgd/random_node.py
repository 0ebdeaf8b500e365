"""Random: one feasible node, and one of its GPUs that fit, at random."""

from __future__ import annotations

import numpy as np

from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SCORE_MAX, PreScore, Score
from mooring.simulator.gpus import GpuColumns, GpuRequest


class RandomNode(Score[int], PreScore[int]):
    """The state is the chosen row."""

    name = "Random"

    def __init__(self, columns: Columns, entropy: Entropy) -> None:
        self._columns = columns
        self._gpus = columns.shared(GpuColumns)
        self._gpus.choose_share = self.choose_share
        self._entropy = entropy.fork("random node")

    def pre_score(self, pod: PodInfo, feasible: Rows) -> int:
        return int(self._entropy.choose(self._row_numbers(feasible).tolist()))

    def score(self, state: int, rows: Rows) -> Int64s:
        return np.where(self._row_numbers(rows) == state, SCORE_MAX, 0)

    def choose_share(self, request: GpuRequest, row: int) -> int:
        left: list[int] = self._gpus.left[:, row].tolist()
        return self._entropy.choose([gpu for gpu, amount in enumerate(left) if amount >= request.milli])

    def _row_numbers(self, rows: Rows) -> Int64s:
        return np.arange(self._columns.height)[rows]
