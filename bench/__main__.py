"""The command line: `python -m bench [NAME …]`.

Comes in   names of workloads, or none for everything
Goes out   a line for each run; without names also the history file, the plots and `docs/benchmarks.md`

    python -m bench                           the whole suite and both sweeps, written down: what `make bench` does
    python -m bench plain --nodes 1000        one workload, at a size of your own
    python -m bench plain --profile           and where its time goes
    python -m bench --list                    the workloads that there are

 1. It ends with code 1 if anything came out wrong. A missed target is told, and is not an error.
"""

from __future__ import annotations

import pstats
import sys
from cProfile import Profile
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from bench.machine import commit, describe_machine
from bench.report import write_report
from bench.results import Report, Result
from bench.runner import run
from bench.suite import (
    Starter,
    Wish,
    best_runs,
    here,
    in_a_process_of_its_own,
    nodes_sweep,
    placed_sweep,
    runs,
    suite_names,
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
    """Measure how fast the engine decides: named workloads, or the whole suite with its sweeps."""
    wish = Wish(nodes, placed, pods, quick)
    try:
        if only_list:
            _list()
            return
        if profile:
            results = [_profiled(name, wish) for name in names]
        elif names:
            results = _named(names, wish, as_json)
        else:
            results = _everything(wish, output, as_json)
    except WorkloadError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(msgspec.json.encode(results))
    sys.exit(1 if any(result.problems for result in results) else 0)


def _list() -> None:
    for name in workload_names():
        click.echo(f"{name:<50} {read_workload(name).description}")


def _named(names: tuple[str, ...], wish: Wish, quiet: bool) -> list[Result]:
    start: Starter = here if len(names) == 1 or wish.quick else in_a_process_of_its_own
    return [_told(result, quiet) for result in runs(names, wish, start)]


def _everything(wish: Wish, output: Path | None, quiet: bool) -> list[Result]:
    start: Starter = here if wish.quick else in_a_process_of_its_own
    name, has_changes = commit()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    results = [_told(result, quiet) for result in best_runs(suite_names(), wish, start)]
    over_nodes = [_told(result, quiet) for result in nodes_sweep(wish, start)]
    over_placed = _told(placed_sweep(wish, start), quiet)
    report = Report(
        date=date,
        commit=name,
        has_uncommitted_changes=has_changes,
        machine=describe_machine(),
        results=tuple(results),
        nodes_sweep=tuple(over_nodes),
        placed_sweep=over_placed,
    )
    # A quick run says nothing about speed: it is written down only where somebody asks for it.
    if output is not None:
        path = write_report(report, output / "history", output / "docs")
        click.echo(f"written to {path}", err=quiet)
    elif not wish.quick:
        path = write_report(report, ROOT / "bench" / "history", ROOT / "docs")
        click.echo(f"written to {path.relative_to(ROOT)} and docs/benchmarks.md", err=quiet)
    return list(report.all_results)


def _profiled(name: str, wish: Wish) -> Result:
    workload = read_workload(name)
    profile = Profile()
    result = run(workload, wish.size_of(workload), profile=profile)
    pstats.Stats(profile).sort_stats("tottime").print_stats(PROFILE_LINES)
    return _told(result, quiet=False)


def _told(result: Result, quiet: bool) -> Result:
    if not quiet:
        for level in result.levels:
            target = f" of {result.target_pods_per_second:,.0f}" if result.target_pods_per_second else ""
            click.echo(
                f"{result.name:<48} {result.nodes:>7,} nodes {level.placed:>9,} placed "
                f"{level.pods_per_second:>8,.0f}{target} pods/s  mean {level.mean_us:,.0f} µs, "
                f"p99 {level.p99_us:,.0f}, record {level.record_us:.1f}  {level.resident_bytes >> 20:,} MiB"
                f"{'' if level.was_undisturbed else f'  (disturbed: {level.cpu_share:.0%} of the CPU)'}"
            )
        for problem in result.problems:
            click.echo(f"    WRONG: {problem}")
    return result


if __name__ == "__main__":
    main()
