"""Results of runs, as they are stored and plotted, and single figures with their targets.

Input: times and sizes of the two runners: of the engine (`runner`) and of the scheduler (`live`). Output: JSON in
`history/`, and the tables and plots of `docs/benchmarks.md`.

1. A result with `problems` is no measurement. It is reported, and the exit code is 1.
2. `pods_per_second` of a `Result` covers record, decide and assume: the cost of a new pod in the scheduling loop once
   its JSON is decoded.
3. `pods_per_second` of a `SchedulerResult` covers everything from the first pod that is created in the store to the
   last one that is bound in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec


def rounded(value: float) -> str:
    """Three digits, or all digits before the decimal point."""
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


class Figure(msgspec.Struct, frozen=True):
    """One measured figure; without a target it is there for comparison only."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_reached(self) -> bool:
        is_enough = self.at_least is None or self.value >= self.at_least
        return is_enough and (self.at_most is None or self.value <= self.at_most)

    def __str__(self) -> str:
        words = [f"{self.name:<66} {rounded(self.value):>10} {self.unit:<4}"]
        if self.at_least is not None:
            words.append(f"(at least {self.at_least:,g})")
        if self.at_most is not None:
            words.append(f"(at most {self.at_most:,g})")
        if not self.is_reached:
            words.append("  MISSED")
        return " ".join(words).rstrip()


def print_figures(figures: Iterable[Figure], output: Path | None = None) -> list[Figure]:
    """Print each figure when it is measured; then write all of them to a file, as JSON, if one is named."""
    printed: list[Figure] = []
    for figure in figures:
        click.echo(str(figure))
        printed.append(figure)
    if output is not None:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(printed), indent=1) + b"\n")
    return printed


UNDISTURBED_SHARE = 0.95
"""Below this share of the wall time, the machine had other things to do and the figures are too bad."""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """The figures at one number of placed pods."""

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


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="engine", tag_field="through"):
    """One workload at one size, through the engine."""

    name: str
    nodes: int
    node_load_us: float
    levels: tuple[Level, ...]
    peak_bytes: int
    problems: tuple[str, ...] = ()
    target_pods_per_second: float | None = None
    runs: tuple[float, ...] = ()
    """Pods per second of all runs of which this is the fastest, ascending."""

    @property
    def last(self) -> Level:
        return self.levels[-1]

    @property
    def pods_per_second(self) -> float:
        return self.last.pods_per_second

    @property
    def was_undisturbed(self) -> bool:
        return self.last.was_undisturbed

    @property
    def cpu_share(self) -> float:
        return self.last.cpu_share

    @property
    def reaches_target(self) -> bool | None:
        if self.problems:
            return False
        return None if self.target_pods_per_second is None else self.last.pods_per_second >= self.target_pods_per_second


class SchedulerResult(msgspec.Struct, frozen=True, kw_only=True, tag="scheduler", tag_field="through"):
    """One workload at one size, through the running scheduler."""

    name: str
    nodes: int
    placed: int
    waiting: int
    pods: int
    seconds: float
    pods_per_second: float
    mean_us: float
    p50_ms: float
    """From created to bound. All pods come at once, so most of it is standing in line."""
    p99_ms: float
    cpu_share: float
    quiet_ms: float
    """From the last binding until the last event and the last status was written."""
    resident_before_bytes: int
    resident_after_bytes: int
    resident_peak_bytes: int
    """The most while the clock ran."""
    seconds_alone: float | None = None
    """The same without the waiting pods, in the same process."""
    cpu_slowdown: float | None = None
    """As `slowdown`, of CPU time alone: steadier where the machine has other things to do."""
    slowdown_max: float | None = None
    problems: tuple[str, ...] = ()
    target_pods_per_second: float | None = None
    runs: tuple[float, ...] = ()
    """Pods per second of all runs of which this is the fastest, ascending."""

    @property
    def growth_bytes(self) -> int:
        """What the measured pods took above the cluster that was there."""
        return self.resident_after_bytes - self.resident_before_bytes

    @property
    def cpu_us(self) -> float:
        """CPU time for each pod: what is left of `mean_us` on a machine that has nothing else to do."""
        return self.mean_us * self.cpu_share

    @property
    def slowdown(self) -> float | None:
        """How many times longer it took than without the waiting pods."""
        return None if self.seconds_alone is None else self.seconds / self.seconds_alone

    @property
    def was_undisturbed(self) -> bool:
        return self.cpu_share >= UNDISTURBED_SHARE

    @property
    def reaches_target(self) -> bool | None:
        if self.problems:
            return False
        verdicts: list[bool] = []
        if self.target_pods_per_second is not None:
            verdicts.append(self.pods_per_second >= self.target_pods_per_second)
        if self.slowdown is not None and self.slowdown_max is not None:
            verdicts.append(self.slowdown <= self.slowdown_max)
        return all(verdicts) if verdicts else None


AnyResult = Result | SchedulerResult


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


class Section(msgspec.Struct, frozen=True):
    """The figures of one program that measures whole processes."""

    title: str
    command: str
    figures: tuple[Figure, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one `make bench` found out."""

    date: str
    commit: str
    has_uncommitted_changes: bool
    machine: Machine
    results: tuple[Result, ...]
    nodes_sweep: tuple[Result, ...] = ()
    placed_sweep: Result | None = None
    through_scheduler: tuple[SchedulerResult, ...] = ()
    sections: tuple[Section, ...] = ()

    @property
    def all_results(self) -> tuple[AnyResult, ...]:
        placed_sweep = () if self.placed_sweep is None else (self.placed_sweep,)
        return (*self.results, *self.through_scheduler, *self.nodes_sweep, *placed_sweep)
