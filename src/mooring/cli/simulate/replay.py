"""`mooring simulate --replay`: decide everything in a recording again, and show what differs.

Without a configuration the recorded one is used, and the replay must agree decision by decision.

A recording runs no code: the plugins of its scheduler are loaded from the files that the user names, never from those
that the recording names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mooring import __version__
from mooring.cli.errors import input_error
from mooring.cli.scheduler.configuration import check_recordable, checked_configuration, read_configuration
from mooring.cli.terminal import ProgressBar, Terminal, counted, table, wrapped
from mooring.kit.clock import Clock
from mooring.kit.loop import run
from mooring.scheduler.catalogue import registry_with
from mooring.scheduler.config.types import ConfigurationError, SchedulerConfiguration
from mooring.scheduler.framework.loading import PluginFileError
from mooring.scheduler.framework.registry import BadPluginError, Registry
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.scheduler.reporting.recording import RecordingHeader, recorded_plugin
from mooring.simulator.errors import ScenarioError
from mooring.simulator.replay import RecordingReader, Replay, ReplayDifference, ReplayReport, Verdict
from mooring.simulator.scenario.reading import read_scenario

SHOWN_MAX = 10
"""Differences that the text shows."""
PERCENT = 100


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What is requested on the command line."""

    file: str
    config: str = ""
    plugins: tuple[str, ...] = ()
    scenario: str = ""
    """With `policy`: the scenario that has it."""
    values: Mapping[str, str] | None = None
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """What a replay found, and under which conditions."""

    header: RecordingHeader
    report: ReplayReport
    is_exact: bool
    is_interrupted: bool
    notes: list[str]

    @property
    def is_failed(self) -> bool:
        """Whether a replay that must agree does not."""
        return self.is_exact and self.report.differing > 0


def run_replay(options: ReplayOptions, clock: Clock) -> ReplayOutcome:
    """Raises `InputError`."""
    notes: list[str] = []
    try:
        reader = RecordingReader(Path(options.file))
        config, plugins, is_exact = _requested(options)
        header = reader.header
        if is_exact:
            configuration, registry = _recorded(options, header)
            notes += _changed_plugins(header, registry)
        else:
            document = read_configuration(config) if config else None
            configuration, registry = checked_configuration(config, document, plugins)
            check_recordable(configuration)
        if header.mooring != __version__:
            notes.append(f"recorded by mooring {header.mooring}; this is {__version__}")
        found = _replay(options, reader, configuration, registry, is_exact)
        is_interrupted = _watched(found, clock)
    except ScenarioError as error:
        raise input_error(error.text, error.where) from error
    if not found.report.end and not is_interrupted and not (is_exact and found.report.differing):
        notes.append("the recording has no end: its scheduler still runs, or was killed")
    return ReplayOutcome(header, found.report, is_exact, is_interrupted, notes)


def _requested(options: ReplayOptions) -> tuple[str, tuple[str, ...], bool]:
    """The configuration file, the plugins, and whether they are the recorded ones."""
    if not options.scenario:
        if options.policies:
            raise input_error("--policy needs the scenario that has it: mooring simulate SCENARIO --replay FILE")
        if options.values:
            raise input_error(
                "--set needs the scenario that has the parameter: mooring simulate SCENARIO --replay FILE"
            )
        return options.config, options.plugins, not options.config
    if options.config or options.plugins:
        text = "--config, --plugin and a scenario contradict each other: --policy chooses one of its policies"
        raise input_error(text)
    scenario = read_scenario(Path(options.scenario), options.values or {})
    if len(options.policies) != 1 or options.policies[0] not in scenario.policies:
        known = ", ".join(scenario.policies)
        raise input_error(f"--replay needs one --policy; the scenario has {known}", options.scenario)
    policy = scenario.policies[options.policies[0]]
    return policy.config or scenario.config, (*scenario.plugins, *policy.plugins), False


def _recorded(options: ReplayOptions, header: RecordingHeader) -> tuple[SchedulerConfiguration, Registry]:
    try:
        registry, _ = registry_with(options.plugins)
        for plugin in header.plugins:
            if registry.get(plugin.name) is None:
                text = f"the recorded scheduler had the plugin {plugin.name}; if you trust it: --plugin {plugin.source}"
                raise input_error(text, f"{options.file}:1")
        return load_configuration_or_policy(header.configuration), registry
    except (ConfigurationError, PluginFileError, BadPluginError) as error:
        raise input_error(f"the recorded configuration cannot be used: {error}", f"{options.file}:1") from error


def _replay(
    options: ReplayOptions,
    reader: RecordingReader,
    configuration: SchedulerConfiguration,
    registry: Registry,
    is_exact: bool,
) -> Replay:
    try:
        return Replay(reader, configuration, registry, is_exact=is_exact)
    except ConfigurationError as error:
        raise input_error(f"the configuration cannot be used: {error}", f"{options.file}:1") from error


def _changed_plugins(header: RecordingHeader, registry: Registry) -> Iterator[str]:
    for plugin in header.plugins:
        found = registry.get(plugin.name)
        assert found is not None, f"plugin {plugin.name} is not registered"
        if recorded_plugin(found).hash != plugin.hash:
            yield f"the plugin {plugin.name} has changed since the recording"


def _watched(found: Replay, clock: Clock) -> bool:
    """Runs with a progress bar. Returns whether it was interrupted."""
    with ProgressBar("replaying", PERCENT, clock) as bar:
        try:
            run(found.run(_shares(bar.advance)))
        except KeyboardInterrupt:
            return True
    return False


def _shares(advance: Callable[[int], None]) -> Callable[[float], None]:
    reported = 0

    def report(share: float) -> None:
        nonlocal reported
        done = int(PERCENT * share)
        if done > reported:
            advance(done - reported)
            reported = done

    return report


def replay_json(outcome: ReplayOutcome) -> str:
    report = outcome.report
    document = {
        "started_at": outcome.header.started_at,
        "seed": outcome.header.seed,
        "exact": outcome.is_exact,
        "lines": report.lines,
        "attempts": report.attempts,
        "differing": report.differing,
        "moved": report.moved,
        "placed_only_recorded": report.placed_only_recorded,
        "placed_only_replayed": report.placed_only_replayed,
        "differences": [asdict(difference) for difference in report.differences],
    }
    return json.dumps(document, indent=2) + "\n"


def replay_lines(outcome: ReplayOutcome, terminal: Terminal) -> list[str]:
    report, header = outcome.report, outcome.header
    attempts = counted(report.attempts, "attempt")
    lines = [f"{attempts} in {report.last_at_s:.1f} s from {header.started_at}, seed {header.seed}"]
    if outcome.is_exact:
        if not report.differing:
            what = "so far" if outcome.is_interrupted else ""
            return [*lines, f"Every decision is the recorded one {what}".rstrip() + "."]
        return [*lines, "The first difference:", *_in_full(report.differences[0], terminal)]
    rows = [
        ("as recorded", report.attempts - report.differing),
        ("another node", report.moved),
        ("no node, recorded with one", report.placed_only_recorded),
        ("a node, recorded without", report.placed_only_replayed),
    ]
    width = max(len(name) for name, _ in rows)
    lines += [f"  {name.ljust(width)}  {count:>8}" for name, count in rows]
    if not report.differing:
        return lines
    lines += ["The first difference:", *_in_full(report.differences[0], terminal)]
    others = report.differences[1:SHOWN_MAX]
    if others:
        lines += ["Others:", *_short(others)]
    left = report.differing - 1 - len(others)
    return [*lines, f"  and {left} more"] if left else lines


def _in_full(difference: ReplayDifference, terminal: Terminal) -> list[str]:
    lines = [f"  pod {difference.pod}, line {difference.line}, at {difference.at_s:.3f} s"]
    for name, verdict in (("recorded", difference.recorded), ("replayed", difference.replayed)):
        lines += wrapped(f"{name}  {_text(verdict)}", terminal.width, indent=2, hanging=12)
    if difference.rejection:
        text = f"{difference.recorded.node} is rejected by {difference.rejection}"
        lines += wrapped(text, terminal.width, indent=2, hanging=4)
    if difference.scores:
        lines += ["  scores of the replay:", *_score_table(difference.scores)]
    return lines


def _text(verdict: Verdict) -> str:
    if verdict.node is not None:
        return verdict.node if verdict.score is None else f"{verdict.node}, score {verdict.score}"
    text = verdict.message or "no node"
    if verdict.preemption_node:
        text += f"; preempts on {verdict.preemption_node}: {', '.join(verdict.victims) or 'nobody'}"
    return text


def _score_table(scores: Mapping[str, Mapping[str, int]]) -> list[str]:
    plugins = dict.fromkeys(plugin for by_plugin in scores.values() for plugin in by_plugin if plugin != "total")
    rows = [["", *scores]]
    rows += [[plugin, *(str(row.get(plugin, 0)) for row in scores.values())] for plugin in (*plugins, "total")]
    return [f"    {line}" for line in table(rows, has_numbers=True)]


def _short(differences: Iterable[ReplayDifference]) -> list[str]:
    rows = [
        (
            f"line {difference.line}",
            difference.pod,
            f"{difference.recorded.node or 'no node'} -> {difference.replayed.node or 'no node'}",
        )
        for difference in differences
    ]
    return [f"  {line}" for line in table(rows)]
