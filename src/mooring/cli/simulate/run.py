"""One run of `mooring simulate`: read the scenario, run the sweep, check the assertions, show the results.

Assertions compare the mean over seeds of each policy: `p99_wait_s <= 30`, or of one policy: `packing.pending == 0`.
Results are tables for the terminal, JSON or CSV.
"""

from __future__ import annotations

import csv
import io
import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, pstdev
from typing import NamedTuple

from msgspec.structs import replace

from mooring.cli.errors import input_error
from mooring.cli.terminal import ProgressBar, table
from mooring.kit.clock import Clock
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import Scenario, seeds_of
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import ResultStore, SimulationResult, SweepTask
from mooring.simulator.workers import run_sweep as run_sweep

_ASSERTION = re.compile(r"\s*(?:([\w-]+)\.)?([A-Za-z_][\w-]*)\s*(<=|>=|==|<|>)\s*(-?[0-9]+(?:\.[0-9]+)?)\s*")
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """What is requested on the command line."""

    scenario: str
    values: Mapping[str, str] = field(default_factory=dict)
    policies: tuple[str, ...] = ()
    seeds: str = ""
    ties: str | None = None
    level: str | None = None
    workers: int | None = None
    on: str = ""
    diff: tuple[str, str] | None = None
    folder: str = ""
    resumes: bool = False
    assertions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a figure."""

    text: str
    policy: str
    figure: str
    comparison: str
    limit: float

    def violations(self, results: Sequence[SimulationResult]) -> list[str]:
        """What does not hold. Raises `InputError` if there is no such figure."""
        found: list[str] = []
        for policy in dict.fromkeys(result.policy for result in results):
            if self.policy and policy != self.policy:
                continue
            figures = [result.figures for result in results if result.policy == policy]
            if any(self.figure not in by_name for by_name in figures):
                raise input_error(f"--assert {self.text!r}: there is no {self.figure}; found {', '.join(figures[0])}")
            mean = fmean(by_name[self.figure] for by_name in figures)
            if not _COMPARISONS[self.comparison](mean, self.limit):
                found.append(f"assertion failed: {self.text}: {self.figure} of {policy} is {mean:.6g}")
        return found


@dataclass(frozen=True, slots=True)
class SimulateOutcome:
    """The results in order of policies and seeds."""

    results: list[SimulationResult]
    planned: int
    is_interrupted: bool
    assertions: list[Assertion]

    def violations(self) -> list[str]:
        """The assertions that do not hold. Raises `InputError` if there is no such figure."""
        return [text for assertion in self.assertions for text in assertion.violations(self.results)]


def run_simulate(options: SimulateOptions, clock: Clock) -> SimulateOutcome:
    """Raises `InputError`."""
    assertions = [parsed_assertion(text) for text in options.assertions]
    try:
        scenario = read_scenario(Path(options.scenario), options.values, options.level)
        if options.ties is not None:
            scenario = replace(scenario, ties=options.ties)
        tasks = [
            SweepTask(scenario, policy, seed, keeps_placements=policy in (options.diff or ()))
            for policy in _policies(options, scenario)
            for seed in _seeds(options, scenario)
        ]
        simulated = {task.policy for task in tasks}
        for option, named in (
            ("--assert", {assertion.policy for assertion in assertions if assertion.policy}),
            ("--diff", set(options.diff or ())),
        ):
            unknown = ", ".join(sorted(named - simulated))
            if unknown:
                raise input_error(f"{option} names the policy {unknown}, which is not simulated")
        results, is_interrupted = _swept(options, tasks, clock)
    except ScenarioError as error:
        raise input_error(error.text, error.where) from error
    order = {(task.policy, task.seed): place for place, task in enumerate(tasks)}
    results.sort(key=lambda result: order[result.policy, result.seed])
    return SimulateOutcome(results, len(tasks), is_interrupted, assertions)


def parsed_assertion(text: str) -> Assertion:
    """Raises `InputError`."""
    match = _ASSERTION.fullmatch(text)
    if match is None:
        expected = "wanted a figure, one of <= >= == < >, and a number, such as p99_wait_s <= 30"
        raise input_error(f"--assert {text!r}: {expected}")
    return Assertion(text, match[1] or "", match[2], match[3], float(match[4]))


def _swept(options: SimulateOptions, tasks: list[SweepTask], clock: Clock) -> tuple[list[SimulationResult], bool]:
    store = ResultStore(Path(options.folder)) if options.folder else None
    workers = options.workers or os.cpu_count() or 1
    results: list[SimulationResult] = []
    try:
        with ProgressBar("simulating", 100 * len(tasks), clock) as bar:
            for result in run_sweep(
                tasks, workers, store, on=options.on, resumes=options.resumes, progress=bar.advance
            ):
                results.append(result)
    except KeyboardInterrupt:
        return results, True
    return results, False


def _policies(options: SimulateOptions, scenario: Scenario) -> list[str]:
    unknown = [name for name in options.policies if name not in scenario.policies]
    if unknown:
        known = ", ".join(scenario.policies)
        raise input_error(f"has no policy {', '.join(unknown)}; it has {known}", options.scenario)
    return list(dict.fromkeys(options.policies)) or list(scenario.policies)


def _seeds(options: SimulateOptions, scenario: Scenario) -> list[int]:
    try:
        return seeds_of(options.seeds or scenario.seeds)
    except ValueError as error:
        raise input_error(f"--seeds: {error}") from error


# --- tables ---------------------------------------------------------------------------------------------------


DECIMALS = 4
"""Of figures in JSON and CSV."""
COUNTS = ("placed", "pending", "running", "evictions", "preemptions")
"""Figures without decimals."""
ALWAYS_SHOWN = ("placed", "pending", "p50_wait_s", "p99_wait_s")
"""Other figures are left out of the table where they are 0 for all policies."""
DIFFERENCES_SHOWN = 10
"""Pods of a difference that are printed."""

Row = dict[str, float | str]
"""Cells by name of column."""


def as_json(results: Sequence[SimulationResult]) -> str:
    return json.dumps(result_rows(results), indent=2) + "\n"


def as_lines(results: Sequence[SimulationResult], width: int) -> list[str]:
    """One column for each policy: the mean, and the standard deviation over seeds if there are several. Policies that
    do not fit into the width are in a table below."""
    if not results:
        return ["no simulation has finished"]
    rows = figure_table(results)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines: list[str] = []
    begin = 1
    while begin < len(widths):
        end = begin + 1
        while (
            end < len(widths) and widths[0] + sum(2 + column_width for column_width in widths[begin : end + 1]) <= width
        ):
            end += 1
        lines += [*table([[row[0], *row[begin:end]] for row in rows], has_numbers=True), ""]
        begin = end
    return [*lines, seeds_line(results)]


def figure_table(results: Sequence[SimulationResult]) -> list[list[str]]:
    """Rows of cells: the names of policies, then for each figure its name and values."""
    policies = policies_of(results)
    rows = [["", *policies]]
    for name in _figure_names(results):
        cells = [_cell(_values(results, policy, name)) for policy in policies]
        if any(cell not in ("0", "") for cell in cells) or name in ALWAYS_SHOWN:
            rows.append([name, *cells])
    return rows


def seeds_line(results: Iterable[SimulationResult]) -> str:
    seeds = len(dict.fromkeys(result.seed for result in results))
    return f"Means over {seeds} seeds ± standard deviation." if seeds > 1 else "One seed."


class PlacementDifference(NamedTuple):
    """A pod that two policies placed on different nodes. An empty name: it was not placed."""

    seed: int
    pod: str
    nodes: tuple[str, str]


def placement_differences(
    results: Sequence[SimulationResult], policies: tuple[str, str]
) -> tuple[list[PlacementDifference], int]:
    """What differs in the seeds that both policies have finished, and the number of pods that were compared."""
    found: list[PlacementDifference] = []
    compared = 0
    of = {(result.policy, result.seed): result.placements for result in results}
    for seed in dict.fromkeys(result.seed for result in results):
        both = of.get((policies[0], seed)), of.get((policies[1], seed))
        if both[0] is None or both[1] is None:
            continue
        pods = dict.fromkeys([*both[0], *both[1]])
        compared += len(pods)
        for pod in pods:
            nodes = both[0].get(pod, ""), both[1].get(pod, "")
            if nodes[0] != nodes[1]:
                found.append(PlacementDifference(seed, pod, nodes))
    return found, compared


def difference_lines(found: Sequence[PlacementDifference], compared: int, policies: tuple[str, str]) -> list[str]:
    """The number of pods, and the first of them."""
    first, second = policies
    line = f"{second} placed {len(found):,} of {compared:,} pods elsewhere than {first}"
    for name, place in ((first, 1), (second, 0)):
        alone = sum(not difference.nodes[place] for difference in found)
        line += f"; {alone:,} of them only {name} placed" if alone else ""
    lines = [f"{line}."]
    shown = [["pod", first, second, "seed"]]
    shown += [
        [difference.pod, *(node or "-" for node in difference.nodes), str(difference.seed)]
        for difference in found[:DIFFERENCES_SHOWN]
    ]
    if found:
        lines += table(shown)
    if len(found) > DIFFERENCES_SHOWN:
        lines.append(f"… {len(found) - DIFFERENCES_SHOWN:,} more; differences.csv of --output has all of them")
    return lines


def result_rows(results: Iterable[SimulationResult]) -> list[Row]:
    """The figures, a row for each simulation."""
    return [{"policy": result.policy, "seed": result.seed, **_rounded(result.figures)} for result in results]


def sample_rows(results: Iterable[SimulationResult]) -> list[Row]:
    """The samples of all simulations."""
    return [
        {"policy": result.policy, "seed": result.seed, **_rounded(sample)}
        for result in results
        for sample in result.samples
    ]


def difference_rows(found: Iterable[PlacementDifference], policies: tuple[str, str]) -> list[Row]:
    first, second = policies
    return [
        {"seed": difference.seed, "pod": difference.pod, first: difference.nodes[0], second: difference.nodes[1]}
        for difference in found
    ]


def as_csv(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def policies_of(results: Iterable[SimulationResult]) -> list[str]:
    return list(dict.fromkeys(result.policy for result in results))


def _figure_names(results: Iterable[SimulationResult]) -> list[str]:
    return list(dict.fromkeys(name for result in results for name in result.figures))


def _values(results: Iterable[SimulationResult], policy: str, name: str) -> list[float]:
    return [result.figures[name] for result in results if result.policy == policy and name in result.figures]


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean, spread = _number(fmean(values)), _number(pstdev(values))
    return mean if float(spread) == 0 else f"{mean} ± {spread}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) or abs(value) >= 10_000 else f"{value:.2f}"


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: int(value) if name in COUNTS else round(value, DECIMALS) for name, value in figures.items()}
