"""Cost curves: time of a decision and memory against nodes, placed pods and distinct specs, with fitted exponents.

    python -m bench.curves [--quick] [--write]

1. Each point is a plain pod on an engine of its own, in a process of its own: the mean time of record, decide and
   assume, and the peak memory of the process.
2. The exponent is the slope of a least-squares line through the logarithms: 0 is constant, 1 is linear.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
import numpy as np

from bench.machine import commit, describe_machine
from bench.report import with_results
from bench.runner import run
from bench.templates import Variable
from bench.workload import PodGroup, Size, Workload, read_workload
from mooring.cli.simulate.plots import Point, line_plot

ROOT = Path(__file__).parent.parent
PLOT = "cost-curves.svg"
BEGIN = "<!-- curves: written by `python -m bench.curves`, down to the next mark -->"
END = "<!-- end of curves -->"
PODS = 2_000
WARM_UP = 300
NODES, PLACED = 5_000, 10_000
AXES = {
    "nodes": (1_000, 3_000, 10_000, 30_000, 100_000),
    "placed pods": (1_000, 10_000, 100_000, 300_000),
    "distinct specs": (1, 10, 100, 1_000),
}
QUICK_AXES = {"nodes": (20, 40), "placed pods": (20, 40), "distinct specs": (1, 4)}
QUICK_PODS = 40


class Measure(msgspec.Struct, frozen=True):
    """One point."""

    decide_us: float
    peak_mib: float


class Curve(NamedTuple):
    """What was measured along one axis."""

    axis: str
    values: Sequence[int]
    measures: Sequence[Measure]

    def points(self, field: str) -> list[Point]:
        return [(value, getattr(costs, field)) for value, costs in zip(self.values, self.measures)]


def exponent(points: Sequence[Point]) -> float:
    """The slope on logarithmic axes."""
    slope, _ = np.polyfit([log(x) for x, _ in points], [log(y) for _, y in points], 1)
    return float(slope)


def measure(axis: str, value: int, pods: int) -> Measure:
    """One point, in this process. Raises `RuntimeError` for a wrong outcome."""
    size = Size(nodes=NODES, placed=PLACED, pods=pods, warm_up=WARM_UP)
    workload = read_workload("plain")
    match axis:
        case "nodes":
            size = msgspec.structs.replace(size, nodes=value, placed=2 * value)
        case "placed pods":
            size = msgspec.structs.replace(size, nodes=max(NODES, value // 20), placed=value)
        case _:
            workload = with_specs(workload, value)
            size = msgspec.structs.replace(size, warm_up=max(WARM_UP, value))
    if pods == QUICK_PODS:
        size = msgspec.structs.replace(size, nodes=max(40, min(size.nodes, value)), placed=40, warm_up=5)
    result = run(workload, size)
    if result.problems:
        raise RuntimeError(f"{axis} {value}: {result.problems[0]}")
    return Measure(result.last.mean_us, result.peak_bytes / 2**20)


def with_specs(workload: Workload, count: int) -> Workload:
    """The workload with so many different requests for CPU, in turn."""
    requests = tuple(f"{10 + number}m" for number in range(count))
    group = PodGroup(template=("pod", "sized"), variables={"cpu": Variable(cycle=requests)})
    return msgspec.structs.replace(workload, measured=(group,), expect=())


def curves(quick: bool) -> Iterator[Curve]:
    pods = QUICK_PODS if quick else PODS
    for axis, values in (QUICK_AXES if quick else AXES).items():
        measures = []
        for value in values:
            measures.append(measure(axis, value, pods) if quick else _in_a_process(axis, value))
            click.echo(f"{axis:<15} {value:>9,} {measures[-1].decide_us:>8,.0f} µs {measures[-1].peak_mib:>7,.0f} MiB")
        yield Curve(axis, values, measures)


def _in_a_process(axis: str, value: int) -> Measure:
    command = [sys.executable, "-m", "bench.curves", "--point", axis, str(value)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Measure)


def plot(measured: Sequence[Curve]) -> str:
    lines = {
        f"{curve.axis}: {exponent(curve.points('decide_us')):.2f}": curve.points("decide_us") for curve in measured
    }
    x_title = "nodes, placed pods, distinct specs"
    return line_plot("A decision (µs), with the fitted exponents", x_title, lines, is_logarithmic=True)


def text(measured: Sequence[Curve], plot_path: str) -> str:
    machine, (name, _) = describe_machine(), commit()
    lines = ["| against | from | to | µs a pod | exponent | peak MiB | exponent |", "|---|--:|--:|--:|--:|--:|--:|"]
    for curve in measured:
        first, last = curve.measures[0], curve.measures[-1]
        lines.append(
            f"| {curve.axis} | {curve.values[0]:,} | {curve.values[-1]:,} "
            f"| {first.decide_us:,.0f} to {last.decide_us:,.0f} | {exponent(curve.points('decide_us')):.2f} "
            f"| {first.peak_mib:,.0f} to {last.peak_mib:,.0f} | {exponent(curve.points('peak_mib')):.2f} |"
        )
    where = f"Commit {name}, {machine.cpu}, {machine.cores} cores. An exponent of 0 is constant, 1 is linear."
    return "\n\n".join([f"![cost of a decision]({plot_path})", "\n".join(lines), where])


@click.command()
@click.option("--quick", is_flag=True, help="Tiny clusters: does everything work?")
@click.option("--write", is_flag=True, help="Write the plot and docs/benchmarks.md.")
@click.option("--point", type=(str, int), hidden=True, help="Measure one point and print it as JSON.")
def main(quick: bool, write: bool, point: tuple[str, int] | None) -> None:
    """Measure how the cost of a decision and memory grow with the cluster."""
    if point is not None:
        click.echo(msgspec.json.encode(measure(*point, PODS)))
        return
    measured = list(curves(quick))
    click.echo(text(measured, f"plots/{PLOT}"))
    if write:
        (ROOT / "docs" / "plots" / PLOT).write_text(plot(measured), encoding="utf-8")
        page = ROOT / "docs" / "benchmarks.md"
        results = with_results(page.read_text(encoding="utf-8"), text(measured, f"plots/{PLOT}"), BEGIN, END)
        page.write_text(results, encoding="utf-8")


if __name__ == "__main__":
    main()
