"""The suite: the runs of `make bench`, and how each is started.

Input: names of workloads and sizes. Output: results, one after the other.

 1. Each run has its own process, so that its peak memory is its own and no run is slowed down by the allocator state of
    another. A quick suite stays in this process, because starting Python would take longer than the runs.
 2. In the nodes sweep, every cluster has as many pods per node as 5,000 nodes with 10,000 pods.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from cProfile import Profile
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.live import ROUNDS, run_live
from bench.results import AnyResult, Figure, Result, SchedulerResult, Section
from bench.runner import run
from bench.workload import Size, Way, Workload, read_workload, workload_names

NODES_SWEEP = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
NODES_SWEEP_QUICK = (20, 40)
NODES_SWEEP_WORKLOADS = ("plain", "spread-hard")
PLACED_SWEEP_WORKLOAD = "huge"
SWEEP_PODS = 2_000
TRIES = 3
PLACED_PER_NODE = 2
QUICK_WAITING = 30
PROGRAMS = {
    "The API server over HTTPS, on a file": "bench.apiserver",
    "A whole cluster: `mooring up --nodes 5000`, on a file": "bench.cluster",
    "The scheduler over HTTPS": "bench.remote",
    "Plans: 5,000 nodes with 50,000 pods": "bench.plans",
}
"""Title -> module."""


class RunFailedError(RuntimeError):
    """The process of a run ended without a result."""


class SizeOptions(NamedTuple):
    """The sizes of the command line; None: as in the workload."""

    nodes: int | None = None
    placed: int | None = None
    pods: int | None = None
    quick: bool = False

    def size_of(self, workload: Workload) -> Size:
        size = workload.size
        if self.quick:
            few = min(size.waiting, QUICK_WAITING)
            size = msgspec.structs.replace(size, nodes=60, placed=120, pods=40, waiting=few, warm_up=5)
        if self.placed is not None:  # also for a workload with `placed_per_node`
            size = msgspec.structs.replace(size, placed=self.placed, placed_per_node=None)
        numbers = {"nodes": self.nodes, "pods": self.pods}
        return msgspec.structs.replace(size, **{name: number for name, number in numbers.items() if number is not None})

    def arguments(self) -> list[str]:
        """The options for the command line of another process."""
        numbers = {"--nodes": self.nodes, "--placed": self.placed, "--pods": self.pods}
        arguments = [part for name, number in numbers.items() if number is not None for part in (name, str(number))]
        return [*arguments, "--quick"] if self.quick else arguments


Starter = Callable[[str, SizeOptions], AnyResult]


def suite_names(through: Way) -> list[str]:
    """The workloads of a suite; those with the highest target come first."""
    workloads = [workload for workload in map(read_workload, workload_names()) if workload.in_suite]
    workloads = [workload for workload in workloads if workload.through == through]
    return [workload.name for workload in sorted(workloads, key=lambda w: -(w.target_pods_per_second or 0))]


def runs(names: Sequence[str], options: SizeOptions, start: Starter) -> Iterator[AnyResult]:
    for name in names:
        yield start(name, options)


def best_runs(names: Sequence[str], options: SizeOptions, start: Starter) -> Iterator[AnyResult]:
    """The fastest of several runs of each workload: other load of the machine only makes a run slower.

    A run with a wrong outcome is no measurement, however fast, and is what is reported. A workload beside waiting pods
    takes turns by itself, and is started once.
    """
    for name in names:
        takes_turns = bool(read_workload(name).waiting)
        tries = [start(name, options) for _ in range(1 if options.quick or takes_turns else TRIES)]
        wrong = [result for result in tries if result.problems]
        if wrong:
            yield wrong[0]
            continue
        fastest = max(tries, key=lambda result: result.pods_per_second)
        yield msgspec.structs.replace(fastest, runs=tuple(sorted(result.pods_per_second for result in tries)))


def through_engine(results: Iterable[AnyResult]) -> Iterator[Result]:
    for result in results:
        assert isinstance(result, Result), f"{result.name} goes through the scheduler"
        yield result


def through_scheduler(results: Iterable[AnyResult]) -> Iterator[SchedulerResult]:
    for result in results:
        assert isinstance(result, SchedulerResult), f"{result.name} goes through the engine"
        yield result


def nodes_sweep(options: SizeOptions, start: Starter) -> Iterator[AnyResult]:
    """The same workloads on increasing numbers of nodes."""
    for name in NODES_SWEEP_WORKLOADS:
        for nodes in NODES_SWEEP_QUICK if options.quick else NODES_SWEEP:
            pods = options.pods if options.pods is not None or options.quick else SWEEP_PODS
            yield start(name, options._replace(nodes=nodes, placed=PLACED_PER_NODE * nodes, pods=pods))


def placed_sweep(options: SizeOptions, start: Starter) -> AnyResult:
    """Increasing numbers of placed pods on the largest cluster."""
    return start(PLACED_SWEEP_WORKLOAD, options)


def sections() -> Iterator[Section]:
    """The programs that measure whole processes, one after the other."""
    for title, module in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figures.json"
            command = [sys.executable, "-m", module, "--output", str(file)]
            subprocess.run(command, cwd=Path(__file__).parent.parent, check=True)
            yield Section(title, f"python -m {module}", msgspec.json.decode(file.read_bytes(), type=tuple[Figure, ...]))


def here(name: str, options: SizeOptions, profile: Profile | None = None) -> AnyResult:
    """Runs a workload in this process."""
    workload = read_workload(name)
    if workload.through == "engine":
        return run(workload, options.size_of(workload), profile=profile)
    rounds = 1 if options.quick or profile is not None else ROUNDS
    return run_live(workload, options.size_of(workload), rounds=rounds, profile=profile)


def in_a_process_of_its_own(name: str, options: SizeOptions) -> AnyResult:
    command = [sys.executable, "-m", "bench", name, "--json", *options.arguments()]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, check=False)
    try:
        return msgspec.json.decode(done.stdout, type=list[AnyResult])[0]
    except (msgspec.DecodeError, IndexError) as error:
        raise RunFailedError(f"{' '.join(command[2:])} ended with code {done.returncode} and no result") from error
