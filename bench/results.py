"""Results: what a run measured, as data that is written down and drawn.

Comes in   times and sizes from the runner
Goes out   JSON in `history/`, and the tables and plots of `docs/benchmarks.md`

 1. A result whose `problems` are not empty is no measurement. It is shown, and whoever asked for it is told so.
 2. The headline, `pods_per_second`, is for record, decide and assume together: what each new pod costs the scheduler's
    loop once its JSON has been decoded.
"""

from __future__ import annotations

import msgspec

UNDISTURBED_SHARE = 0.95
"""Below this share of the wall time, the machine had other things to do and the figures are too bad."""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """Measured with so many pods placed."""

    placed: int
    pods: int
    seconds: float
    pods_per_second: float
    pods_per_second_without_record: float
    mean_us: float
    p50_us: float
    p99_us: float
    longest_us: float
    record_us: float
    """Looking up the shape of a pod: part of the headline."""
    decode_us: float
    """From JSON to a view: not part of it."""
    cpu_share: float
    """CPU time by wall time: well below 1 if the machine had other things to do."""
    loaded: int
    """Pods that were placed since the level before."""
    load_us: float
    """For each of those: decode and put."""
    resident_bytes: int

    @property
    def was_undisturbed(self) -> bool:
        return self.cpu_share >= UNDISTURBED_SHARE


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One workload at one size."""

    name: str
    nodes: int
    node_load_us: float
    levels: tuple[Level, ...]
    peak_bytes: int
    problems: tuple[str, ...] = ()
    target_pods_per_second: float | None = None
    kube_scheduler_ms: float | None = None

    @property
    def last(self) -> Level:
        return self.levels[-1]

    @property
    def times_kube_scheduler(self) -> float | None:
        """How many times faster than kube-scheduler's own algorithm, where that is known."""
        return None if self.kube_scheduler_ms is None else self.kube_scheduler_ms * 1_000 / self.last.mean_us

    @property
    def reaches_target(self) -> bool | None:
        if self.problems:
            return False
        return None if self.target_pods_per_second is None else self.last.pods_per_second >= self.target_pods_per_second


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where it was measured."""

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str
    numpy: str
    msgspec: str
    garbage_collection: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one `make bench` found out."""

    date: str
    commit: str
    has_uncommitted_changes: bool
    machine: Machine
    results: tuple[Result, ...]
    nodes_sweep: tuple[Result, ...] = ()
    placed_sweep: Result | None = None

    @property
    def all_results(self) -> tuple[Result, ...]:
        placed_sweep = () if self.placed_sweep is None else (self.placed_sweep,)
        return (*self.results, *self.nodes_sweep, *placed_sweep)
