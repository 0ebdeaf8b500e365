"""GpuShare: filters nodes by GPUs that have enough left, and reserves them. Reports allocation and fragmentation.

The policy decides which GPU a share gets (`GpuColumns.choose_share`); the default is the one with the least left that
fits. Whole GPUs are taken by index.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SKIP, Filter, Proceed, Reserve, Scope, Skip
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.simulator.fragmentation import GpuFragmentation, typical_pods
from mooring.simulator.gpus import GpuColumns, GpuRequest, request_of
from mooring.simulator.workload import PodTypes

TOO_LITTLE_LEFT = 1
OTHER_MODEL = 2


class GpuShare(Filter[GpuRequest], Reserve):
    name = "GpuShare"
    filter_scope = Scope.NODE_PODS
    filter_reasons = (
        Reason("node(s) had too little left of their GPUs", Code.UNSCHEDULABLE),
        Reason("node(s) had GPUs of another model", Code.UNRESOLVABLE),
    )

    def __init__(self, columns: Columns, workload: PodTypes) -> None:
        self._columns = columns
        self._gpus = columns.shared(GpuColumns)
        self._fragmentation = GpuFragmentation(self._gpus, typical_pods(columns, workload))

    def pre_filter(self, pod: PodInfo) -> Proceed[GpuRequest] | Skip:
        request = request_of(pod.signature)
        return Proceed(request) if request.gpus else SKIP

    def filter(self, state: GpuRequest, rows: Rows) -> Int64s:
        gpus = self._gpus
        fitting = (gpus.left[:, rows] >= state.milli).sum(axis=0)
        rejected = np.where(fitting < state.gpus, TOO_LITTLE_LEFT, 0)
        if state.models:
            rejected |= np.where(gpus.accepted_models(state)[gpus.model[rows]], 0, OTHER_MODEL)
        return rejected

    def filter_row(self, state: GpuRequest, row: int) -> int:
        gpus = self._gpus
        left: list[int] = gpus.left[:, row].tolist()
        bits = TOO_LITTLE_LEFT if sum(amount >= state.milli for amount in left) < state.gpus else 0
        if state.models and gpus.models[gpus.model.item(row)] not in state.models:
            bits |= OTHER_MODEL
        return bits

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        if not request_of(pod.signature).gpus or self._gpus.take(pod, row):
            return None
        return Status.unschedulable("the node has too little left of its GPUs")

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        self._gpus.give_back(pod, node_name)

    def sample(self) -> Mapping[str, float]:
        """The measures of `mooring simulate`."""
        gpus, rows = self._gpus, self._columns.live_rows
        capacity = max(gpus.capacity_milli(), 1)
        fragmented = self._fragmentation.of(gpus.left[:, rows], gpus.cpu_left(rows), gpus.model[rows])
        return {
            "gpu_allocation_percent": 100 * gpus.allocated_milli() / capacity,
            "fragmentation_percent": 100 * float(fragmented.sum()) / capacity,
        }
