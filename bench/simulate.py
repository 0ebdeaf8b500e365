"""What a simulated pod costs: CPU time and memory against the number of pods and of nodes, with fitted exponents.

    nice python -m bench.simulate [--quick] [--write]

1. A point is one day at engine level, in a process of its own: arrivals, decisions, departures and samples. Time is the
   CPU time of the process, which other work on the machine does not change much.
2. Against pods, the cluster has `NODES` nodes and the same load; pods are more and run shorter. Against nodes, there
   are `PODS_PER_NODE` pods for each node, and a third of them run from the beginning to the end.
3. A process ends at `MEMORY_BYTES_MAX` of address space.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from bench.curves import exponent
from bench.machine import commit, describe_machine
from bench.report import with_results
from mooring.cli.simulate.plots import Point, line_plot
from mooring.simulator.scenario.fields import ClusterPart, PodTemplatePart, PolicyPart, Pool, Scenario, WorkloadPart
from mooring.simulator.simulation import simulate

ROOT = Path(__file__).parent.parent
PLOT = "simulate-cost.svg"
BEGIN = "<!-- scale: written by `python -m bench.simulate`, down to the next mark -->"
END = "<!-- end of scale -->"
NODES = 1_000
PODS_PER_NODE = 3
HOURS = 24
CPUS_OF_NODE = 32
LOAD = 0.8
"""Share of the cpu that pods ask for, against pods."""
LARGE_SHARE = 0.1
"""Of pods: three times as large as the others."""
MEMORY_BYTES_MAX = 12 << 30
AXES = {"pods": (25_000, 50_000, 100_000, 200_000), "nodes": (1_000, 10_000, 100_000, 1_000_000)}
QUICK_AXES = {"pods": (200, 400), "nodes": (20, 40)}


class SimulationCost(msgspec.Struct, frozen=True):
    """One point."""

    nodes: int
    pods: int
    cpu_s: float
    peak_mib: float

    @property
    def us_per_pod(self) -> float:
        return 1e6 * self.cpu_s / self.pods


class CostCurve(NamedTuple):
    """What was measured along one axis."""

    axis: str
    costs: Sequence[SimulationCost]

    def points(self, field: str) -> list[Point]:
        return [(getattr(cost, self.axis), getattr(cost, field)) for cost in self.costs]


def day_of_pods(pods: int, nodes: int = NODES) -> Scenario:
    """So many pods arrive in a day; they are running for as long as makes the load."""
    pod_cpus = 2 * (1 - LARGE_SHARE) + 6 * LARGE_SHARE
    lifetime_h = LOAD * nodes * CPUS_OF_NODE / (pods / HOURS * pod_cpus)
    return _scenario(nodes, [], pods, f"{3600 * lifetime_h:.0f}s")


def day_of_nodes(nodes: int) -> Scenario:
    stay = PodTemplatePart("stay", cpu="1", memory="2Gi", replicas=nodes)
    return _scenario(nodes, [stay], (PODS_PER_NODE - 1) * nodes, "4h")


def _scenario(nodes: int, staying: list[PodTemplatePart], arriving: int, lifetime: str) -> Scenario:
    small, large = (round(arriving * share) for share in (1 - LARGE_SHARE, LARGE_SHARE))
    groups = [
        *staying,
        PodTemplatePart("small", cpu="2", memory="6Gi", rate=f"{small}/d", lifetime=lifetime),
        PodTemplatePart("large", cpu="6", memory="18Gi", rate=f"{large}/d", lifetime=lifetime),
    ]
    pool = Pool("node", count=nodes, cpu=str(CPUS_OF_NODE), memory="128Gi", zones=3, price=1.0)
    return Scenario(
        ClusterPart(pools=[pool]), WorkloadPart(pods=groups), duration=f"{HOURS}h", policies={"default": PolicyPart()}
    )


def measure(axis: str, value: int) -> SimulationCost:
    """One point, in this process. Raises `RuntimeError` if no pod was placed."""
    scenario = day_of_pods(value) if axis == "pods" else day_of_nodes(value)
    begun_s = time.process_time()
    result = simulate(scenario, "default", 1, _show_progress)
    cpu_s = time.process_time() - begun_s
    placed = int(result.figures["placed"])
    if not placed:
        raise RuntimeError(f"{axis} {value}: no pod was placed")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return SimulationCost(scenario.cluster.pools[0].count, placed, cpu_s, peak_mib)


def curves(quick: bool) -> Iterator[CostCurve]:
    for axis, values in (QUICK_AXES if quick else AXES).items():
        costs = []
        for value in values:
            cost = measure(axis, value) if quick else _in_a_process(axis, value)
            costs.append(cost)
            click.echo(
                f"{axis:<5} {cost.nodes:>9,} nodes {cost.pods:>9,} pods {cost.cpu_s:>8,.1f} s "
                f"{cost.us_per_pod:>6,.0f} µs a pod {cost.peak_mib:>6,.0f} MiB"
            )
        yield CostCurve(axis, costs)


def plot(measured: Sequence[CostCurve]) -> str:
    lines = {
        f"{curve.axis}: {exponent(curve.points('us_per_pod')):.2f}": curve.points("us_per_pod") for curve in measured
    }
    title = "A simulated pod (µs of CPU), with exponents"
    return line_plot(title, "pods, nodes", lines, is_logarithmic=True)


def text(measured: Sequence[CostCurve], plot_path: str) -> str:
    machine, (name, _) = describe_machine(), commit()
    lines = ["| nodes | pods | CPU s | µs a pod | peak MiB |", "|--:|--:|--:|--:|--:|"]
    for curve in measured:
        for cost in curve.costs:
            figures = f"{cost.cpu_s:,.1f} | {cost.us_per_pod:,.0f} | {cost.peak_mib:,.0f}"
            lines.append(f"| {cost.nodes:,} | {cost.pods:,} | {figures} |")
    exponents = " ".join(
        f"Against {curve.axis}, CPU time has the exponent {exponent(curve.points('cpu_s')):.2f} "
        f"and memory {exponent(curve.points('peak_mib')):.2f}."
        for curve in measured
    )
    where = f"Commit {name}, {machine.cpu}, {machine.cores} cores. {exponents} An exponent of 1 is linear."
    return "\n\n".join([f"![cost of a simulated pod]({plot_path})", "\n".join(lines), where])


def _in_a_process(axis: str, value: int) -> SimulationCost:
    command = [sys.executable, "-m", "bench.simulate", "--point", axis, str(value)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=SimulationCost)


def _show_progress(share: float) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{100 * share:3.0f} % ", nl=False, err=True)


@click.command()
@click.option("--quick", is_flag=True, help="Tiny clusters: does everything work?")
@click.option("--write", is_flag=True, help="Write the plot and docs/simulate.md.")
@click.option("--point", type=(str, int), hidden=True, help="Measure one point and print it as JSON.")
def main(quick: bool, write: bool, point: tuple[str, int] | None) -> None:
    """Measure how the cost of a simulation grows with pods and nodes."""
    if point is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        click.echo(msgspec.json.encode(measure(*point)))
        return
    measured = list(curves(quick))
    click.echo(text(measured, f"plots/{PLOT}"))
    if write:
        (ROOT / "docs" / "plots" / PLOT).write_text(plot(measured), encoding="utf-8")
        page = ROOT / "docs" / "simulate.md"
        results = with_results(page.read_text(encoding="utf-8"), text(measured, f"plots/{PLOT}"), BEGIN, END)
        page.write_text(results, encoding="utf-8")


if __name__ == "__main__":
    main()
