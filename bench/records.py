"""What decision records cost the scheduler: CPU time with and without them, in turns in one process.

    python -m bench.records            loop-plain with 5,000 nodes, 120 turns of 500 pods
    python -m bench.records --quick    a small cluster: does everything work?

1. Without records a turn makes none and looks for no best nodes; with them it does both, as the scheduler always does.
2. Turns alternate as A B B A, so that neither gets the emptier cluster. The figure is the median, over these groups of
   four, of the quotient of the CPU time of the process: the speed of the machine changes little within a group. The
   garbage collector runs between turns only.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from statistics import median
from time import process_time
from typing import Any

import click

from bench.live import SECONDS_MAX, _load
from bench.live_cluster import live_cluster, pods_to_create
from bench.results import Figure
from bench.scenario import Scenario
from bench.workload import Size, read_workload
from mooring.kit.loop import run_real
from mooring.kit.memory import settle_memory
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.scheduler import Scheduler

NODES, NODES_QUICK = 5_000, 50
PODS, PODS_QUICK = 500, 20
TURNS, TURNS_QUICK = 120, 4


@contextmanager
def without_records(scheduler: Scheduler) -> Iterator[None]:
    """The scheduler records nothing meanwhile."""
    records: Any = scheduler.reports.decisions
    before = {cycle: cycle.best_nodes_max for cycle in scheduler.engine.cycles.values()}
    records.add = records.bound = lambda *arguments: None
    for cycle in before:
        cycle.best_nodes_max = 0
    try:
        yield
    finally:
        del records.add, records.bound
        for cycle, count in before.items():
            cycle.best_nodes_max = count


async def cost(nodes: int, pods: int, turns: int) -> Figure:
    size = Size(nodes=nodes, placed=2 * nodes, pods=(turns + 1) * pods, warm_up=0)
    scenario = Scenario(read_workload("loop-plain"), size)
    items = list(islice(scenario.measured(), size.pods))
    spent: dict[bool, list[float]] = {True: [], False: []}
    async with live_cluster() as cluster, TaskGroup("bench") as group:
        await _load(cluster, scenario, items)
        await cluster.start(group)
        waiting = iter(pods_to_create(items))

        async def turn() -> float:
            batch = list(islice(waiting, pods))
            settle_memory()
            gc.disable()
            started_s = process_time()
            undecided = await cluster.decide(batch, SECONDS_MAX)
            spent_s = process_time() - started_s
            gc.enable()
            assert not undecided, f"{undecided} pods were not decided"
            return spent_s

        await turn()
        for number in range(turns):
            if number % 4 in (0, 3):
                spent[True].append(await turn())
            else:
                with without_records(cluster.scheduler):
                    spent[False].append(await turn())
        assert len(cluster.scheduler.reports.decisions) >= pods, "nothing was recorded"
    click.echo(f"per pod: {_per_pod_us(spent[True], pods)} with records, {_per_pod_us(spent[False], pods)} without")
    with_records, without = (_pairs(spent[is_recorded]) for is_recorded in (True, False))
    share = median(a / b for a, b in zip(with_records, without, strict=True)) - 1
    return Figure("decision records, of the CPU time of loop-plain", 100 * share, "%", at_most=5.0)


def _pairs(seconds: list[float]) -> list[float]:
    """The sums of the two turns of each group."""
    return [first + second for first, second in zip(seconds[::2], seconds[1::2], strict=True)]


def _per_pod_us(seconds: list[float], pods: int) -> str:
    return f"{1e6 * median(seconds) / pods:.1f} µs"


@click.command()
@click.option("--quick", is_flag=True, help="A small cluster: does everything work?")
def main(quick: bool) -> None:
    """What decision records cost the scheduler."""
    sizes = (NODES_QUICK, PODS_QUICK, TURNS_QUICK) if quick else (NODES, PODS, TURNS)
    figure = run_real(cost(*sizes))
    click.echo(str(figure))
    if not quick and not figure.is_reached:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
