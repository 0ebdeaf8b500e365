"""The command line: `python -m bench [NAME …]`.

Output: a line for each run; without names also the history file, the plots and `docs/benchmarks.md`.

    python -m bench                           both suites and both sweeps, and the report: `make bench`
    python -m bench plain --nodes 1000        one workload at another size
    python -m bench plain --profile           with a profile
    python -m bench --list                    the names of the workloads

 1. The exit code is 1 if a result is wrong. A missed target is reported, and is not an error.
"""

from __future__ import annotations

import pstats
import sys
from collections.abc import Iterator
from cProfile import Profile
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from bench.machine import commit, describe_machine
from bench.report import write_report
from bench.results import AnyResult, Level, Report, Result, SchedulerResult
from bench.suite import (
    SizeOptions,
    Starter,
    best_runs,
    here,
    in_a_process_of_its_own,
    nodes_sweep,
    placed_sweep,
    runs,
    sections,
    suite_names,
    through_engine,
    through_scheduler,
)
from bench.workload import WorkloadError, read_workload, workload_names

ROOT = Path(__file__).parent.parent
PROFILE_LINES = 30


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--nodes", type=click.IntRange(min=1), help="So many nodes.")
@click.option("--placed", type=click.IntRange(min=0), help="So many pods placed before.")
@click.option("--pods", type=click.IntRange(min=1), help="So many pods measured.")
@click.option("--quick", is_flag=True, help="Tiny clusters: does everything work?")
@click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")
@click.option("--profile", is_flag=True, help="Run under cProfile, and print where the time goes.")
@click.option("--list", "only_list", is_flag=True, help="List the workloads.")
@click.option("--output", type=click.Path(path_type=Path), help="Write history/ and docs/ there.  [default: here]")
def main(
    names: tuple[str, ...],
    nodes: int | None,
    placed: int | None,
    pods: int | None,
    quick: bool,
    as_json: bool,
    profile: bool,
    only_list: bool,
    output: Path | None,
) -> None:
    """Measure how fast pods are decided and bound: named workloads, or both suites with their sweeps."""
    options = SizeOptions(nodes, placed, pods, quick)
    try:
        if only_list:
            _list()
            return
        if profile:
            results: list[AnyResult] = [_profiled(name, options) for name in names]
        elif names:
            results = _named(names, options, as_json)
        else:
            results = _everything(options, output, as_json)
    except WorkloadError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(msgspec.json.encode(results))
    sys.exit(1 if any(result.problems for result in results) else 0)


def _list() -> None:
    for name in workload_names():
        click.echo(f"{name:<50} {read_workload(name).description}")


def _named(names: tuple[str, ...], options: SizeOptions, quiet: bool) -> list[AnyResult]:
    for name in names:
        read_workload(name)  # a name that is none is an error before anything runs
    start: Starter = here if len(names) == 1 or options.quick else in_a_process_of_its_own
    return [_print(result, quiet) for result in runs(names, options, start)]


def _everything(options: SizeOptions, output: Path | None, quiet: bool) -> list[AnyResult]:
    start: Starter = here if options.quick else in_a_process_of_its_own
    name, has_changes = commit()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    decided = [_print(result, quiet) for result in best_runs(suite_names("engine"), options, start)]
    bound = [_print(result, quiet) for result in best_runs(suite_names("scheduler"), options, start)]
    over_nodes = [_print(result, quiet) for result in nodes_sweep(options, start)]
    over_placed = [_print(placed_sweep(options, start), quiet)]
    report = Report(
        date=date,
        commit=name,
        has_uncommitted_changes=has_changes,
        machine=describe_machine(),
        results=tuple(through_engine(decided)),
        nodes_sweep=tuple(through_engine(over_nodes)),
        placed_sweep=next(through_engine(over_placed)),
        through_scheduler=tuple(through_scheduler(bound)),
        sections=() if options.quick else tuple(sections()),
    )
    # A quick run says nothing about speed: it is written only to the file of an option.
    if output is not None:
        path = write_report(report, output / "history", output / "docs", output / "README.md")
        click.echo(f"written to {path}", err=quiet)
    elif not options.quick:
        path = write_report(report, ROOT / "bench" / "history", ROOT / "docs", ROOT / "README.md")
        click.echo(f"written to {path.relative_to(ROOT)}, docs/benchmarks.md and README.md", err=quiet)
    return list(report.all_results)


def _profiled(name: str, options: SizeOptions) -> AnyResult:
    profile = Profile()
    result = here(name, options, profile)
    pstats.Stats(profile).sort_stats("tottime").print_stats(PROFILE_LINES)
    return _print(result, quiet=False)


def _print(result: AnyResult, quiet: bool) -> AnyResult:
    if not quiet:
        for line in _engine_lines(result) if isinstance(result, Result) else _scheduler_lines(result):
            click.echo(line)
        for problem in result.problems:
            click.echo(f"    WRONG: {problem}")
    return result


def _engine_lines(result: Result) -> Iterator[str]:
    for level in result.levels:
        yield (
            f"{result.name:<48} {result.nodes:>7,} nodes {level.placed:>9,} placed "
            f"{level.pods_per_second:>8,.0f}{_target(result)} pods/s  mean {level.mean_us:,.0f} µs, "
            f"p99 {level.p99_us:,.0f}, record {level.record_us:.1f}  {level.resident_bytes >> 20:,} MiB"
            f"{_disturbance(level)}"
        )


def _scheduler_lines(result: SchedulerResult) -> Iterator[str]:
    slowdown = ""
    if result.slowdown is not None:
        of = f" of {result.slowdown_max:.2f}" if result.slowdown_max is not None else ""
        slowdown = f", {result.slowdown:.2f}{of} × as long as without those ({result.cpu_slowdown or 0:.2f} × the CPU)"
    yield (
        f"{result.name:<48} {result.nodes:>7,} nodes {result.placed:>9,} placed {result.waiting:>6,} waiting "
        f"{result.pods_per_second:>8,.0f}{_target(result)} pods/s{slowdown}  "
        f"{result.mean_us:,.0f} µs a pod ({result.cpu_us:,.0f} of CPU), bound after {result.p50_ms:,.0f} ms, "
        f"p99 {result.p99_ms:,.0f}, quiet after {result.quiet_ms:,.0f} ms more  "
        f"{result.resident_before_bytes / 1e6:,.0f} + {result.growth_bytes / 1e6:,.0f} MB{_disturbance(result)}"
    )


def _target(result: AnyResult) -> str:
    return f" of {result.target_pods_per_second:,.0f}" if result.target_pods_per_second else ""


def _disturbance(measured: Level | SchedulerResult) -> str:
    return "" if measured.was_undisturbed else f"  (disturbed: {measured.cpu_share:.0%} of the CPU)"


if __name__ == "__main__":
    main()
