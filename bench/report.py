"""The report: writes results to `bench/history/DATE-COMMIT.json`, the plots, `docs/benchmarks.md` and `README.md`.

1. Only the text between the marks of a page is replaced. A page without marks gets them at its end.
2. The page names the history file, so that every figure can be traced to its run.
3. The README quotes a few of the same figures, as ranges over the runs: no figure is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from bench.results import AnyResult, Figure, Level, Machine, Report, Result, SchedulerResult, rounded
from bench.workload import read_workload
from mooring.cli.simulate.plots import line_plot

BEGIN = "<!-- results: written by `make bench`, down to the next mark -->"
END = "<!-- end of results -->"
NODES_PLOT = "cost-against-nodes.svg"
PLACED_PLOT = "cost-against-placed-pods.svg"
PAGE_START = "# Benchmarks\n"
README_ENGINE = {
    "plain": "plain pods",
    "spread-hard": "spread over zones",
    "different": "all different",
}
README_SCHEDULER = {"loop-plain": "plain pods", "loop-spread-hard": "spread over zones"}
README_FIGURES = {
    "a Deployment of 10,000, until all are available": "5,000 nodes: a Deployment of 10,000 pods available",
    "single gets": "the API server: gets over HTTPS",
}
"""Name of the workload or figure -> words of the README."""
THROUGH_SCHEDULER = """\
On 5,000 nodes with 10,000 pods, from 10,000 pods created in the store to all of them bound in it, everything on:
watches, queue, hints, bindings, conditions, events, metrics. All pods come at once, so most of the time *until bound*
is standing in line; *quiet after* is how much later the last event was written. *beside waiting pods* is how many times
longer it took than without them, measured turn by turn in the same process. *MB* is what the pods took above the
cluster: as stored objects with their history, as events, and in the scheduler."""


def write_report(report: Report, history: Path, docs: Path, readme: Path) -> Path:
    """Writes everything; returns the history file."""
    history.mkdir(parents=True, exist_ok=True)
    path = history / f"{report.date[:10]}-{report.commit}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    plots = docs / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    (plots / NODES_PLOT).write_text(nodes_plot(report), encoding="utf-8")
    (plots / PLACED_PLOT).write_text(placed_plot(report), encoding="utf-8")
    page = docs / "benchmarks.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else PAGE_START
    page.write_text(with_results(text, results_text(report, path.name)), encoding="utf-8")
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    readme.write_text(with_results(text, readme_text(report)), encoding="utf-8")
    return path


def with_results(page: str, results: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with these results between its marks."""
    if begin not in page or end not in page:
        page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
    before, after = page.split(begin)[0], page.split(end)[1]
    return f"{before}{begin}\n\n{results.strip()}\n\n{end}{after}"


def results_text(report: Report, history_name: str) -> str:
    parts = [
        f"Measured on {report.date[:10]}, commit {commit_text(report)} "
        f"([all figures](../bench/history/{history_name})), on this machine:",
        "\n".join(_machine_lines(report.machine)),
        "### On 5,000 nodes",
        "\n".join(table(report.results)),
        *_disturbance_lines(report.results),
    ]
    if report.through_scheduler:
        parts += ["### Through the scheduler", THROUGH_SCHEDULER]
        parts += ["\n".join(scheduler_table(report.through_scheduler))]
        parts += _disturbance_lines(report.through_scheduler)
    for section in report.sections:
        parts += [f"### {section.title}", f"`{section.command}`, one run:", "\n".join(figure_table(section.figures))]
    parts += _problem_lines(report.all_results)
    if report.nodes_sweep:
        parts += ["### Cost against nodes", f"![cost against nodes](plots/{NODES_PLOT})"]
        parts += ["\n".join(nodes_table(report.nodes_sweep))]
    if report.placed_sweep is not None:
        parts += ["### Cost against placed pods", f"![cost against placed pods](plots/{PLACED_PLOT})"]
        parts += ["\n".join(placed_table(report.placed_sweep))]
        parts += [_placed_sentence(report.placed_sweep)]
    return "\n\n".join(parts)


def readme_text(report: Report) -> str:
    """What the README quotes: the slowest and the fastest run of a few workloads, and the machine."""
    machine = report.machine
    engine = {result.name: result for result in report.results}
    scheduler = {result.name: result for result in report.through_scheduler}
    figures = {figure.name: figure for section in report.sections for figure in section.figures}
    lines = ["| | |", "|---|--:|"]
    for name, words in README_ENGINE.items():
        if name in engine:
            lines.append(f"| deciding on 5,000 nodes, {words} | {_range(engine[name])} pods/s |")
    if report.placed_sweep is not None:
        last, nodes = report.placed_sweep.last, report.placed_sweep.nodes
        peak_gb = report.placed_sweep.peak_bytes / 1e9
        words = f"deciding on {nodes:,} nodes with {last.placed:,} pods, in {peak_gb:.1f} GB"
        lines.append(f"| {words} | {last.pods_per_second:,.0f} pods/s |")
    for name, words in README_SCHEDULER.items():
        if name in scheduler:
            lines.append(f"| from created to bound, {words} | {_range(scheduler[name])} pods/s |")
    for name, words in README_FIGURES.items():
        if name in figures:
            lines.append(f"| {words} | {rounded(figures[name].value)} {figures[name].unit} |")
    where = f"{machine.cpu}, {machine.cores} cores, {machine.python}"
    when = f"Measured on {report.date[:10]}, commit {commit_text(report)}"
    lines += ["", f"{when}, on {where}: slowest and fastest run of each."]
    return "\n".join(lines)


def figure_table(figures: Sequence[Figure]) -> Iterator[str]:
    yield "| what | measured | target | |"
    yield "|---|--:|--:|---|"
    for figure in figures:
        target = f"at least {figure.at_least:,g}" if figure.at_least is not None else ""
        target += f"at most {figure.at_most:,g}" if figure.at_most is not None else ""
        verdict = "" if not target else "reached" if figure.is_reached else "missed"
        yield f"| {figure.name.strip()} | {rounded(figure.value)} {figure.unit} | {target} | {verdict} |"


def _range(result: AnyResult) -> str:
    """`10,870 to 12,001`, or one number for one run."""
    slowest, fastest = (result.runs[0], result.runs[-1]) if result.runs else (result.pods_per_second,) * 2
    return f"{slowest:,.0f} to {fastest:,.0f}" if len(result.runs) > 1 else f"{fastest:,.0f}"


def table(results: Sequence[Result]) -> Iterator[str]:
    yield (
        "| workload | pods/s | target | | mean µs | p50 | p99 | pods/s without record | record µs | decode µs "
        "| peak MiB |"
    )
    yield "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    for result in results:
        level = result.last
        cells = [
            f"[{result.name}](../bench/workloads/{result.name}.yaml): {read_workload(result.name).description}",
            f"**{_range(result)}**",
            _optional(result.target_pods_per_second, "{:,.0f}"),
            _verdict(result),
            f"{level.mean_us:,.0f}",
            f"{level.p50_us:,.0f}",
            f"{level.p99_us:,.0f}",
            f"{level.pods_per_second_without_record:,.0f}",
            f"{level.record_us:.1f}",
            f"{level.decode_us:.1f}",
            f"{result.peak_bytes / 2**20:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def scheduler_table(results: Sequence[SchedulerResult]) -> Iterator[str]:
    yield (
        "| workload | pods/s | target | beside waiting pods | of CPU | at most | | µs a pod | of CPU "
        "| ms until bound p50 | p99 | quiet after ms | MB | MB at the peak |"
    )
    yield "|---|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    for result in results:
        cells = [
            f"[{result.name}](../bench/workloads/{result.name}.yaml): {read_workload(result.name).description}",
            f"**{_range(result)}**",
            _optional(result.target_pods_per_second, "{:,.0f}"),
            _optional(result.slowdown, "{:.2f} ×"),
            _optional(result.cpu_slowdown, "{:.2f} ×"),
            _optional(result.slowdown_max, "{:.2f} ×"),
            _verdict(result),
            f"{result.mean_us:,.0f}",
            f"{result.cpu_us:,.0f}",
            f"{result.p50_ms:,.0f}",
            f"{result.p99_ms:,.0f}",
            f"{result.quiet_ms:,.0f}",
            f"{result.growth_bytes / 1e6:,.0f}",
            f"{(result.resident_peak_bytes - result.resident_before_bytes) / 1e6:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def nodes_table(results: Sequence[Result]) -> Iterator[str]:
    yield "| workload | nodes | placed pods | pods/s | mean µs | p99 µs | µs to load a node | peak MiB |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for result in results:
        level = result.last
        yield (
            f"| {result.name} | {result.nodes:,} | {level.placed:,} | {level.pods_per_second:,.0f} "
            f"| {level.mean_us:,.0f} | {level.p99_us:,.0f} | {result.node_load_us:.0f} "
            f"| {result.peak_bytes / 2**20:,.0f} |"
        )


def placed_table(result: Result) -> Iterator[str]:
    yield "| placed pods | pods/s | mean µs | p99 µs | µs to load a pod | memory MiB |"
    yield "|--:|--:|--:|--:|--:|--:|"
    for level in result.levels:
        load_us = f"{level.load_us:.1f}" if level.loaded else "–"
        yield (
            f"| {level.placed:,} | {level.pods_per_second:,.0f} | {level.mean_us:,.0f} | {level.p99_us:,.0f} "
            f"| {load_us} | {level.resident_bytes / 2**20:,.0f} |"
        )


def nodes_plot(report: Report) -> str:
    names = list(dict.fromkeys(result.name for result in report.nodes_sweep))
    lines = {name: [(r.nodes, r.last.mean_us) for r in report.nodes_sweep if r.name == name] for name in names}
    return line_plot("A decision (µs), by nodes", "nodes (2 pods placed on each)", lines, is_logarithmic=True)


def placed_plot(report: Report) -> str:
    result = report.placed_sweep
    levels: Sequence[Level] = result.levels if result is not None else ()
    nodes = f"{result.nodes:,}" if result is not None else "all"
    lines = {
        "decide": [(level.placed, level.mean_us) for level in levels],
        "load": [(level.placed, level.load_us) for level in levels if level.loaded],
    }
    return line_plot(f"A plain pod on {nodes} nodes (µs)", "placed pods", lines, is_logarithmic=True)


def _machine_lines(machine: Machine) -> Iterator[str]:
    yield f"- {machine.cpu}, {machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB, {machine.system}"
    yield f"- {machine.python}, numpy {machine.numpy}, msgspec {machine.msgspec}"
    yield f"- garbage collection while measuring: {machine.garbage_collection}"


def _placed_sentence(result: Result) -> str:
    nodes_s = result.node_load_us * result.nodes / 1e6
    pods_s = sum(level.loaded * level.load_us for level in result.levels) / 1e6
    return (
        f"Loading {result.nodes:,} nodes took {nodes_s:.1f} s, loading {result.last.placed:,} pods {pods_s:.1f} s; "
        f"the peak was {result.peak_bytes / 2**20:,.0f} MiB."
    )


def _disturbance_lines(results: Sequence[AnyResult]) -> list[str]:
    disturbed = [f"{result.name} ({result.cpu_share:.0%})" for result in results if not result.was_undisturbed]
    if not disturbed:
        return []
    return [f"While these ran the machine had other things to do (share of the CPU): {', '.join(disturbed)}."]


def _problem_lines(results: Sequence[AnyResult]) -> list[str]:
    return [f"**{result.name} went wrong**: {problem}." for result in results for problem in result.problems]


def _verdict(result: AnyResult) -> str:
    if result.problems:
        return "wrong"
    match result.reaches_target:
        case True:
            return "reached"
        case False:
            return "missed"
        case None:
            return ""


def _optional(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


class Measured(Protocol):
    """What was measured at a commit."""

    @property
    def commit(self) -> str: ...
    @property
    def has_uncommitted_changes(self) -> bool: ...


def commit_text(report: Measured) -> str:
    return f"{report.commit} with uncommitted changes" if report.has_uncommitted_changes else report.commit
