"""The suite: which runs make up `make bench`, and how each one is started.

Comes in   names of workloads and wishes about their size
Goes out   results, one after the other, as they come in

 1. Each run has a process of its own: its peak memory is its own, and what one run left in the allocator slows down no
    other. Only a quick suite stays in this process, because starting Python would take longer than the runs.
 2. A cluster of any size in the nodes sweep has as many pods a node as the 5,000 nodes with 10,000 pods have.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.results import Result
from bench.runner import run
from bench.workload import Size, Workload, read_workload, workload_names

NODES_SWEEP = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
NODES_SWEEP_QUICK = (20, 40)
NODES_SWEEP_WORKLOADS = ("plain", "spread-hard")
PLACED_SWEEP_WORKLOAD = "huge"
SWEEP_PODS = 2_000
TRIES = 3
PLACED_PER_NODE = 2


class RunFailedError(RuntimeError):
    """The process of a run ended without a result."""


class Wish(NamedTuple):
    """What whoever started the benchmark said about sizes; None leaves the workload's own."""

    nodes: int | None = None
    placed: int | None = None
    pods: int | None = None
    quick: bool = False

    def size_of(self, workload: Workload) -> Size:
        size = workload.size
        if self.quick:
            size = msgspec.structs.replace(size, nodes=60, placed=120, pods=40, warm_up=5)
        if self.placed is not None:  # whoever names a number wants that number, also where a cluster would be full
            size = msgspec.structs.replace(size, placed=self.placed, placed_per_node=None)
        wishes = {"nodes": self.nodes, "pods": self.pods}
        return msgspec.structs.replace(size, **{name: wish for name, wish in wishes.items() if wish is not None})


Starter = Callable[[str, Wish], Result]


def suite_names() -> list[str]:
    """The workloads of the suite; those with the highest target come first."""
    workloads = [workload for name in workload_names() if (workload := read_workload(name)).in_suite]
    return [workload.name for workload in sorted(workloads, key=lambda w: -(w.target_pods_per_second or 0))]


def runs(names: Sequence[str], wish: Wish, start: Starter) -> Iterator[Result]:
    for name in names:
        yield start(name, wish)


def best_runs(names: Sequence[str], wish: Wish, start: Starter) -> Iterator[Result]:
    """Each workload several times, and the fastest run of it: what else the machine does only ever makes one slower.

    A run with a wrong outcome is no measurement, however fast, and is what is reported.
    """
    for name in names:
        tries = [start(name, wish) for _ in range(1 if wish.quick else TRIES)]
        wrong = [result for result in tries if result.problems]
        yield wrong[0] if wrong else max(tries, key=lambda result: result.last.pods_per_second)


def nodes_sweep(wish: Wish, start: Starter) -> Iterator[Result]:
    """The same workloads on ever more nodes."""
    for name in NODES_SWEEP_WORKLOADS:
        for nodes in NODES_SWEEP_QUICK if wish.quick else NODES_SWEEP:
            pods = wish.pods if wish.pods is not None or wish.quick else SWEEP_PODS
            yield start(name, wish._replace(nodes=nodes, placed=PLACED_PER_NODE * nodes, pods=pods))


def placed_sweep(wish: Wish, start: Starter) -> Result:
    """Ever more placed pods on the most nodes."""
    return start(PLACED_SWEEP_WORKLOAD, wish)


def here(name: str, wish: Wish) -> Result:
    """Runs a workload in this process."""
    workload = read_workload(name)
    return run(workload, wish.size_of(workload))


def in_a_process_of_its_own(name: str, wish: Wish) -> Result:
    command = [sys.executable, "-m", "bench", name, "--json", *_options(wish)]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, check=False)
    try:
        return msgspec.json.decode(done.stdout, type=list[Result])[0]
    except (msgspec.DecodeError, IndexError) as error:
        raise RunFailedError(f"{' '.join(command[2:])} ended with code {done.returncode} and no result") from error


def _options(wish: Wish) -> list[str]:
    numbers = {"--nodes": wish.nodes, "--placed": wish.placed, "--pods": wish.pods}
    options = [part for name, number in numbers.items() if number is not None for part in (name, str(number))]
    return [*options, "--quick"] if wish.quick else options
