"""`make bench-check`: fails if a workload is slower, or a node or pod larger, than the committed baseline allows.

   python -m bench.check                  every workload of the engine, in small, and the gate's own test
   python -m bench.check plain mixed      some of them
   python -m bench.check --write          measure, and write the baseline

1. A cost is CPU time of a pod divided by CPU time of a calibration loop: work of the same kind (method calls, tuples,
   dictionaries, short numpy arrays) without any code of Mooring. Both alternate every few milliseconds, so that another
   machine, or a busy one, slows down both alike. The median over the chunks counts.
2. A workload above its limit is measured again, up to `TRIES` times, and its least cost counts: other processes only
   ever make it slower.
3. Memory is what Python and numpy allocated (tracemalloc), which does not depend on load: it is not normalised.
4. The gate tests itself: an engine whose decisions take `SLOWDOWN` times as long must be above the limit.
"""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from statistics import median
from time import thread_time_ns
from typing import NamedTuple

import click
import msgspec
import numpy as np

from bench.machine import commit, describe_machine
from bench.results import Machine
from bench.runner import EngineRun
from bench.scenario import Scenario
from bench.suite import suite_names
from bench.workload import Size, Workload, WorkloadError, read_workload
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine

BASELINE = Path(__file__).parent / "baseline.json"
SLOWER_MAX = 1.5
"""The largest cost of a workload, relative to the baseline."""
LARGER_MAX = 1.25
"""The largest memory of a node and of a pod, relative to the baseline."""
TRIES = 3
SLOWDOWN = 4
"""Factor by which `SlowEngine` slows each decision."""
SLOWED_WORKLOAD = "plain"
NODES = 1_000
PLACED_PER_NODE = 2
PODS = 400
CHUNK = 20
"""Number of pods between two calibrations."""
WARM_UP = 100
MEMORY_NODES = 2_000
MEMORY_PODS = 10_000
CALIBRATION_ROUNDS = 40
CALIBRATION_LENGTH = 1_000


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of `--write`."""

    commit: str
    machine: Machine
    costs: dict[str, float]
    """Workload -> CPU time of a pod, in calibration loops."""
    bytes_per_node: int
    bytes_per_pod: int


class Verdict(NamedTuple):
    """A measured value beside that of the baseline."""

    name: str
    value: float
    baseline: float
    times_max: float

    @property
    def times(self) -> float:
        return self.value / self.baseline

    @property
    def is_within(self) -> bool:
        return self.times <= self.times_max


class Memory(NamedTuple):
    """Allocated bytes."""

    per_node: int
    per_pod: int


class WrongOutcomeError(RuntimeError):
    """A run with a wrong outcome is no measurement."""


class SlowEngine(Engine):
    """An engine that takes `SLOWDOWN` times as long for each decision."""

    def decide(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        started = thread_time_ns()
        decision = super().decide(pod, in_full=in_full)
        until = started + SLOWDOWN * (thread_time_ns() - started)
        while thread_time_ns() < until:
            pass
        return decision


def size_of(workload: Workload) -> Size:
    """A small size of the workload; a full cluster stays full."""
    return msgspec.structs.replace(
        workload.size, nodes=NODES, placed=NODES * PLACED_PER_NODE, pods=PODS, warm_up=WARM_UP, levels=(1.0,)
    )


def cost_of(workload: Workload, size: Size, engine_class: type[Engine] = Engine) -> float:
    """CPU time of a pod, in calibration loops. Raises `WrongOutcomeError`."""
    run = EngineRun(Scenario(workload, size), engine_class=engine_class)
    run.load_nodes_and_objects()
    run.load_pods(size.placed_count)
    costs: list[float] = []
    calibrate()
    before_ns = calibration_ns()

    def calibrated(pods: int, spent_ns: int) -> None:
        nonlocal before_ns
        after_ns = calibration_ns()
        costs.append(2 * spent_ns / pods / (before_ns + after_ns))
        before_ns = calibration_ns()

    times = run.measure(CHUNK, calibrated)
    if problems := run.check(times):
        raise WrongOutcomeError(f"{workload.name}: {problems[0]}")
    return median(costs)


def calibration_ns() -> int:
    started = thread_time_ns()
    calibrate()
    return thread_time_ns() - started


class _Item:
    """What the calibration loop calls."""

    __slots__ = ("count", "key")

    def __init__(self, key: tuple[str, int]) -> None:
        self.key = key
        self.count = 0

    def add(self, number: int) -> int:
        self.count += number
        return self.count


def calibrate() -> float:
    """A fixed amount of work of the kind that decisions consist of."""
    items: dict[tuple[str, int], _Item] = {}
    free = np.arange(CALIBRATION_LENGTH, dtype=np.int64)
    total = 0.0
    for number in range(CALIBRATION_ROUNDS):
        for name in ("cpu", "memory", "pods", "disk"):
            key = (name, number % 7)
            item = items.get(key)
            if item is None:
                item = items[key] = _Item(key)
            total += item.add(number)
        fits = free >= number
        scores = np.where(fits, free * 100 // (number + 1), 0)
        total += float(scores.max()) + len(np.flatnonzero(scores == scores.max()))
        total += sum(int(row) for row in scores[:20].tolist())
    return total


def memory_of(workload: Workload) -> Memory:
    """What loading nodes and placed pods allocates."""
    size = msgspec.structs.replace(workload.size, nodes=MEMORY_NODES, placed=MEMORY_PODS, pods=1, levels=(1.0,))
    run = EngineRun(Scenario(workload, size))
    tracemalloc.start()
    try:
        run.load_nodes_and_objects()
        with_nodes, _ = tracemalloc.get_traced_memory()
        run.load_pods(size.placed_count)
        with_pods, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return Memory(with_nodes // MEMORY_NODES, (with_pods - with_nodes) // MEMORY_PODS)


def compare(name: str, baseline: float, engine_class: type[Engine] = Engine) -> Verdict:
    """A workload against its baseline: the least of up to `TRIES` measurements."""
    workload = read_workload(name)
    best: Verdict | None = None
    for _ in range(TRIES):
        verdict = Verdict(name, cost_of(workload, size_of(workload), engine_class), baseline, SLOWER_MAX)
        if best is None or verdict.value < best.value:
            best = verdict
        if best.is_within:
            break
    assert best is not None
    return best


def read_baseline() -> Baseline:
    try:
        return msgspec.json.decode(BASELINE.read_bytes(), type=Baseline)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise click.ClickException(f"{BASELINE.name}: {error}; write it with python -m bench.check --write") from error


def write_baseline(names: list[str]) -> None:
    """Measures; each workload several times, of which the median counts."""
    costs: dict[str, float] = {}
    for name in names:
        workload = read_workload(name)
        costs[name] = round(median(cost_of(workload, size_of(workload)) for _ in range(TRIES)), 4)
        click.echo(f"{name:<50} {costs[name]:.4f}")
    memory = memory_of(read_workload(SLOWED_WORKLOAD))
    baseline = Baseline(
        commit=commit()[0],
        machine=describe_machine(),
        costs=costs,
        bytes_per_node=memory.per_node,
        bytes_per_pod=memory.per_pod,
    )
    BASELINE.write_bytes(msgspec.json.format(msgspec.json.encode(baseline), indent=2) + b"\n")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--write", is_flag=True, help="Write the baseline instead of comparing with it.")
def main(names: tuple[str, ...], write: bool) -> None:
    """Compare the cost of a pod and the memory of nodes and pods with bench/baseline.json."""
    if write:
        if names:
            raise click.UsageError("--write measures every workload")
        write_baseline(suite_names("engine"))
        return
    baseline = read_baseline()
    try:
        verdicts = [_print(compare(name, _cost(baseline, name))) for name in names or suite_names("engine")]
    except (WorkloadError, WrongOutcomeError) as error:
        raise click.ClickException(str(error)) from error
    memory = memory_of(read_workload(SLOWED_WORKLOAD))
    verdicts.append(_print(Verdict("bytes per node", memory.per_node, baseline.bytes_per_node, LARGER_MAX)))
    verdicts.append(_print(Verdict("bytes per pod", memory.per_pod, baseline.bytes_per_pod, LARGER_MAX)))
    slowed = compare(SLOWED_WORKLOAD, _cost(baseline, SLOWED_WORKLOAD), SlowEngine)
    click.echo(f"self-test: {SLOWED_WORKLOAD} slowed down by the gate: {slowed.times:.2f} times the baseline")
    if slowed.is_within:
        raise click.ClickException(f"the gate is blind: an engine that is {SLOWDOWN} times as slow passes")
    failed = [verdict for verdict in verdicts if not verdict.is_within]
    if failed:
        names_failed = ", ".join(verdict.name for verdict in failed)
        click.echo(f"make bench-check: above the limit: {names_failed}", err=True)
        sys.exit(1)


def _cost(baseline: Baseline, name: str) -> float:
    if name not in baseline.costs:
        raise click.ClickException(f"{BASELINE.name} has no workload {name!r}; python -m bench.check --write adds it")
    return baseline.costs[name]


def _print(verdict: Verdict) -> Verdict:
    state = "" if verdict.is_within else f"  ABOVE {verdict.times_max:g}"
    click.echo(f"{verdict.name:<50} {verdict.times:5.2f} times the baseline{state}")
    return verdict


if __name__ == "__main__":
    main()
