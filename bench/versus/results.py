"""Results of a comparison: rounds, medians and spreads, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from bench.results import Machine

MOORING, KUBE_SCHEDULER = "mooring", "kube-scheduler"


class Spread(msgspec.Struct, frozen=True):
    """The median of some rounds, the least and the most."""

    median: float
    least: float
    most: float


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler, once."""

    scheduler: str
    pods: int
    bound: int
    """Pods that had to be bound; the others fit on no node."""
    seconds: float
    p50_ms: float
    p99_ms: float
    scheduler_cpu_ms: float
    """CPU time for each pod, of each process."""
    api_server_cpu_ms: float
    store_cpu_ms: float
    ready_s: float = 0.0
    resident_bytes: int = 0
    peak_bytes: int = 0

    @property
    def pods_per_second(self) -> float:
        return self.bound / self.seconds


class ApiPath(msgspec.Struct, frozen=True, kw_only=True):
    """Pods created, then bound, without a scheduler."""

    pods: int
    create_s: float
    bind_s: float

    @property
    def bindings_per_second(self) -> float:
        return self.pods / self.bind_s

    @property
    def pods_per_second(self) -> float:
        """Created and bound: what a scheduler could reach that costs nothing."""
        return self.pods / (self.create_s + self.bind_s)


class WorkloadComparison(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of one workload, in the order in which they ran."""

    workload: str
    nodes: int
    placed: int
    pods: int
    rounds: tuple[Round, ...]
    api_path: tuple[ApiPath, ...]

    def of(self, scheduler: str) -> list[Round]:
        return [round_ for round_ in self.rounds if round_.scheduler == scheduler]

    def pods_per_second(self, scheduler: str) -> Spread:
        return spread([round_.pods_per_second for round_ in self.of(scheduler)])

    def share_of_api_path(self, scheduler: str) -> float:
        limit = median(path.pods_per_second for path in self.api_path)
        return self.pods_per_second(scheduler).median / limit


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one run measured."""

    date: str
    commit: str
    has_uncommitted_changes: bool
    machine: Machine
    etcd: str
    api_server: str
    kube_scheduler: str
    command: str
    workloads: tuple[WorkloadComparison, ...]


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))
