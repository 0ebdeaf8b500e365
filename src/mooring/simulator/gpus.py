"""Shared GPUs as columns: what is left of each GPU of each node.

A node has GPUs of one model. A pod asks for a share of one GPU (`milli` below 1,000) or for whole ones. Both say so in
labels, because labels belong to the pod signature and annotations do not.

1. `left[gpu, row]` is in thousandths; 0 where the node has no such GPU.
2. `take` and `give_back` are the only writers, apart from changes of nodes. Reserve plugins call them after the pod was
   placed, so that the row is in the change log of the columns and cached results of the row are computed again.
3. Pods that were bound before the simulation take no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, grown
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.resources import CPU

GPU_COUNT = "gpu.mooring.dev/count"
"""Label of pods and nodes."""
GPU_MILLI = "gpu.mooring.dev/milli"
"""Label of pods: thousandths of each GPU."""
GPU_MODELS = "gpu.mooring.dev/models"
"""Label of pods: the models that they accept, joined by `_`. Default: any."""
GPU_MODEL = "gpu.mooring.dev/model"
"""Label of nodes."""

MILLI = 1000
GPUS_PER_NODE_MAX = 64
_GPUS_MIN = 8


class GpuRequest(NamedTuple):
    """What a pod asks for."""

    cpu_milli: int
    gpus: int
    milli: int
    """Thousandths of each GPU."""
    models: frozenset[str]
    """Empty: any model."""

    @property
    def total_milli(self) -> int:
        return self.gpus * self.milli

    @property
    def is_share(self) -> bool:
        return self.gpus == 1 and self.milli < MILLI


def models_label(models: Iterable[str]) -> str:
    return "_".join(models)


@PerSignature
def request_of(signature: PodSignature) -> GpuRequest:
    """The request of all pods of a signature."""
    labels = signature.labels
    count = int(labels.get(GPU_COUNT, "0"))
    milli = int(labels.get(GPU_MILLI, str(MILLI))) if count else 0
    models = labels.get(GPU_MODELS, "")
    vector = signature.request_vector
    return GpuRequest(int(vector[CPU]), count, milli, frozenset(models.split("_")) if models else frozenset())


class _Taken(NamedTuple):
    gpus: tuple[int, ...]
    milli: int


class GpuColumns:
    """The GPUs of all nodes. `columns.shared(GpuColumns)` returns the one object of an engine."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.models: list[str] = [""]
        """The models of all nodes; `model` has their places here."""
        self.choose_share: Callable[[GpuRequest, int], int] = self.least_left
        """Chooses the GPU of a row for a share. A policy may replace it."""
        self._left: Int64s = np.zeros((_GPUS_MIN, columns.capacity), dtype=np.int64)
        self._count: Int64s = np.zeros(columns.capacity, dtype=np.int64)
        self._model: Int64s = np.zeros(columns.capacity, dtype=np.int64)
        self._taken: dict[str, dict[str, _Taken]] = {}
        """By node name and pod uid."""
        self._read_until = 0

    @property
    def left(self) -> Int64s:
        """Per GPU and row: thousandths left."""
        self._read_nodes()
        return self._left

    @property
    def count(self) -> Int64s:
        """Per row: the number of GPUs."""
        self._read_nodes()
        return self._count

    @property
    def model(self) -> Int64s:
        """Per row: the place of the node's model in `models`."""
        self._read_nodes()
        return self._model

    def cpu_left(self, rows: Rows) -> Int64s:
        resources = self._columns.resources
        left: Int64s = resources.allocatable[CPU, rows] - resources.used[CPU, rows]
        return left

    def cpu_left_of(self, row: int) -> int:
        allocatable, used = self._columns.resources.at(row)
        return allocatable[CPU] - used[CPU]

    def accepted_models(self, request: GpuRequest) -> Int64s:
        """Per place of `models`: 1 if the request accepts the model."""
        self._read_nodes()
        accepted = [not request.models or name in request.models for name in self.models]
        return np.array(accepted, dtype=np.int64)

    def least_left(self, request: GpuRequest, row: int) -> int:
        """The GPU with the least left that fits the share, the first of equals."""
        left: list[int] = self.left[:, row].tolist()
        fitting = [(amount, gpu) for gpu, amount in enumerate(left) if amount >= request.milli]
        assert fitting, f"no GPU of row {row} has {request.milli} left"
        return min(fitting)[1]

    def take(self, pod: PodInfo, row: int) -> bool:
        """Take the GPUs of a pod. Returns whether there are enough."""
        request = request_of(pod.signature)
        left: list[int] = self.left[:, row].tolist()
        fitting = [gpu for gpu, amount in enumerate(left) if amount >= request.milli]
        if len(fitting) < request.gpus:
            return False
        gpus = (self.choose_share(request, row),) if request.is_share else tuple(fitting[: request.gpus])
        for gpu in gpus:
            self._left[gpu, row] -= request.milli
        node_name = self._columns.node_names[row]
        self._taken.setdefault(node_name, {})[pod.uid] = _Taken(gpus, request.milli)
        return True

    def give_back(self, pod: PodInfo, node_name: str) -> None:
        """Undo `take`, if it was called for the pod."""
        taken = self._taken.get(node_name, {}).pop(pod.uid, None)
        row = self._columns.row_of.get(node_name)
        if taken is None or row is None:
            return
        left = self.left
        for gpu in taken.gpus:
            left[gpu, row] += taken.milli

    def allocated_milli(self) -> int:
        rows = self._columns.live_rows
        return int(MILLI * self.count[rows].sum() - self.left[:, rows].sum())

    def capacity_milli(self) -> int:
        return int(MILLI * self.count[self._columns.live_rows].sum())

    def _read_nodes(self) -> None:
        columns, log = self._columns, self._columns.fact_changes
        if log.position == self._read_until:
            return
        self._left = grown(self._left, columns.height)
        self._count = grown(self._count, columns.height)
        self._model = grown(self._model, columns.height)
        changed = log.since(self._read_until)
        self._read_until = log.position
        for row in range(columns.height) if changed is None else changed.tolist():
            node = columns.nodes[row]
            labels = node.metadata.labels if node is not None else {}
            self._set_row(row, int(labels.get(GPU_COUNT, "0")), labels.get(GPU_MODEL, ""))

    def _set_row(self, row: int, count: int, model: str) -> None:
        if count > GPUS_PER_NODE_MAX:
            raise ValueError(f"node {self._columns.node_names[row]} has {count} GPUs; at most {GPUS_PER_NODE_MAX}")
        if count > len(self._left):
            more = np.zeros((count - len(self._left), self._left.shape[1]), dtype=np.int64)
            self._left = np.concatenate([self._left, more])
        if model not in self.models:
            self.models.append(model)
        self._count[row] = count
        self._model[row] = self.models.index(model)
        self._left[:, row] = 0
        self._left[:count, row] = MILLI
        for taken in self._taken.get(self._columns.node_names[row], {}).values():
            for gpu in taken.gpus:
                self._left[gpu, row] -= taken.milli
