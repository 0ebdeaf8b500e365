"""One run of `mooring simulate`: read the scenario, run the sweep, check the assertions.

Assertions compare the mean over seeds of each policy: `p99_wait_s <= 30`, or of one policy: `packing.pending == 0`.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from msgspec.structs import replace

from mooring.cli.errors import input_error
from mooring.cli.terminal import ProgressBar
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
            if any(self.figure not in each for each in figures):
                raise input_error(f"--assert {self.text!r}: there is no {self.figure}; found {', '.join(figures[0])}")
            mean = fmean(each[self.figure] for each in figures)
            if not _COMPARISONS[self.comparison](mean, self.limit):
                found.append(f"assertion failed: {self.text}: {self.figure} of {policy} is {mean:.6g}")
        return found


@dataclass(frozen=True, slots=True)
class SimulateOutcome:
    """The results in order of policies and seeds."""

    results: list[SimulationResult]
    wanted: int
    is_interrupted: bool
    assertions: list[Assertion]

    def violations(self) -> list[str]:
        """The assertions that do not hold. Raises `InputError` if there is no such figure."""
        return [text for each in self.assertions for text in each.violations(self.results)]


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
            ("--assert", {each.policy for each in assertions if each.policy}),
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
        wanted = "wanted a figure, one of <= >= == < >, and a number, such as p99_wait_s <= 30"
        raise input_error(f"--assert {text!r}: {wanted}")
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
