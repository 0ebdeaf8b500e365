"""GPU fragmentation: the idle GPU thousandths of a node that typical pods cannot use.

    F(n) = Σ over typical pods m of p(m) · (idle thousandths of n that m cannot use)

All idle thousandths count if m does not fit on n (cpu, GPUs, model) or asks for no GPU, else those on GPUs with less
left than m asks for. From Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", USENIX ATC 2023.

Typical pods are the most frequent pod types that cover `COVERED` of the workload, renormalised.

F is a sum of table lookups. A typical pod that asks for one GPU can use a GPU exactly if enough is left of it, so its
part is a sum over GPUs; one that asks for several whole GPUs depends on the number of free GPUs:

    F(n) = Σ_g left(g) − Σ_g SINGLE[model, cpu, left(g)] − MULTIPLE[model, cpu, free GPUs]

`cpu` is the number of distinct cpu requests of typical pods that are at most the node's free cpu.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mooring.scheduler.cache.arrays import Float64s, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.simulator.gpus import MILLI, GpuColumns, GpuRequest, request_of
from mooring.simulator.workload import PodTypes

COVERED = 0.95
"""Typical pods cover this share of the workload."""


def typical_pods(columns: Columns, types: PodTypes) -> list[tuple[GpuRequest, float]]:
    """The most frequent requests (cpu, GPU count, thousandths, models) and their weights."""
    shares: dict[GpuRequest, float] = {}
    for pod_type in types:
        request = request_of(columns.record(pod_type.pod).signature)
        shares[request] = shares.get(request, 0.0) + pod_type.share
    ordered = sorted(shares.items(), key=lambda item: (item[1], item[0][:3], sorted(item[0].models)), reverse=True)
    chosen: list[tuple[GpuRequest, float]] = []
    covered = 0.0
    for request, share in ordered:
        if covered >= COVERED:
            break
        chosen.append((request, share))
        covered += share
    return [(request, share / covered) for request, share in chosen]


class GpuFragmentation:
    """Computes F for any state of nodes."""

    def __init__(self, gpus: GpuColumns, typical: Iterable[tuple[GpuRequest, float]]) -> None:
        self._gpus = gpus
        self._typical = list(typical)
        self._cpus = np.array(sorted({request.cpu_milli for request, _ in self._typical}), dtype=np.int64)
        self._single: Float64s = np.zeros((0, 0, 0))
        self._multiple: Float64s = np.zeros((0, 0, 0))
        self._built_for = (0, 0)

    def cpu_place(self, cpu_left: Int64s) -> Int64s:
        return np.searchsorted(self._cpus, cpu_left, side="right")

    def tables(self) -> tuple[Float64s, Float64s]:
        """SINGLE and MULTIPLE: usable thousandths, weighted by p."""
        model_count, gpu_count = len(self._gpus.models), len(self._gpus.left)
        if self._built_for != (model_count, gpu_count):
            self._build(model_count, gpu_count)
            self._built_for = (model_count, gpu_count)
        return self._single, self._multiple

    def of(self, left: Int64s, cpu_left: Int64s, model: Int64s) -> Float64s:
        """F of nodes: `left` per GPU and node."""
        single, multiple = self.tables()
        place = self.cpu_place(cpu_left)
        free = (left == MILLI).sum(axis=0)
        usable: Float64s = single[model, place, left].sum(axis=0) + multiple[model, place, free]
        fragmented: Float64s = left.sum(axis=0) - usable
        return fragmented

    def _build(self, model_count: int, gpu_count: int) -> None:
        cpu_count = len(self._cpus)
        single = np.zeros((model_count, cpu_count + 1, MILLI + 1))
        multiple = np.zeros((model_count, cpu_count + 1, gpu_count + 1))
        for request, weight in self._typical:
            if not request.gpus:
                continue
            place = int(np.searchsorted(self._cpus, request.cpu_milli)) + 1
            accepts = self._gpus.accepted_models(request).astype(np.bool_)
            if request.gpus == 1:
                single[accepts, place, request.milli] += weight
            elif request.gpus <= gpu_count:
                multiple[accepts, place, request.gpus] += weight
        self._single = single.cumsum(axis=1).cumsum(axis=2) * np.arange(MILLI + 1)
        self._multiple = multiple.cumsum(axis=1).cumsum(axis=2) * (MILLI * np.arange(gpu_count + 1))
