"""The tables and the plot of a comparison, for a terminal, docs/benchmarks.md and README.md.

Only the text between the marks of a page is replaced: `python -m bench.versus` writes it, from its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.report import commit_text
from bench.versus.results import KUBE_SCHEDULER, MOORING, Comparison, Round, WorkloadComparison
from mooring.cli.simulate.plots import bar_plot

BEGIN = "<!-- comparison: written by `python -m bench.versus`, down to the next mark -->"
END = "<!-- end of comparison -->"
PLOT = "versus.svg"
README_WORKLOADS = {
    "plain": "plain pods",
    "spread-hard": "spread over zones",
    "mixed": "of all kinds mixed",
}
SCHEDULERS = (MOORING, KUBE_SCHEDULER)


def page_text(comparison: Comparison, json_path: str, plot_path: str) -> str:
    """What docs/benchmarks.md shows."""
    parts = [
        f"Measured on {comparison.date[:10]}, commit {commit_text(comparison)} ([all figures]({json_path})), with "
        f"{_versions(comparison)}, on {comparison.machine.cpu}, {comparison.machine.cores} cores:",
        f"![pods a second and CPU time of a pod]({plot_path})",
        "\n".join(table(comparison)),
        f"`{comparison.command}`",
    ]
    return "\n\n".join(parts)


def readme_text(comparison: Comparison) -> str:
    """A few of the same figures."""
    lines = ["| on the same API server | Mooring | kube-scheduler | CPU time of a pod |", "|---|--:|--:|--:|"]
    for compared in comparison.workloads:
        if compared.workload in README_WORKLOADS:
            ours, theirs = (compared.pods_per_second(name).median for name in SCHEDULERS)
            times = _cpu(compared, KUBE_SCHEDULER) / _cpu(compared, MOORING)
            cpu = f"{_cpu(compared, MOORING):.2f} ms and {_cpu(compared, KUBE_SCHEDULER):.2f} ms: {times:.1f} ×"
            words = f"{README_WORKLOADS[compared.workload]}, {compared.nodes:,} nodes"
            lines.append(f"| {words} | {ours:,.0f} pods/s | {theirs:,.0f} pods/s | {cpu} |")
    where = f"{comparison.machine.cpu}, {comparison.machine.cores} cores"
    lines += [
        "",
        f"From created to bound, medians, measured on {comparison.date[:10]}, commit {commit_text(comparison)}, with "
        f"{_versions(comparison)}, on {where}.",
    ]
    return "\n".join(lines)


def table(comparison: Comparison) -> Iterator[str]:
    yield (
        "| workload | nodes, placed, pods | scheduler | pods/s: median (least to most) | of the API path "
        "| CPU ms a pod | … API server | p50 ms | p99 ms | resident MB |"
    )
    yield "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    for compared in comparison.workloads:
        size = f"{compared.nodes:,}, {compared.placed:,}, {compared.pods:,}"
        for name in SCHEDULERS:
            rounds, speed = compared.of(name), compared.pods_per_second(name)
            cells = [
                compared.workload,
                size,
                name,
                f"**{speed.median:,.0f}** ({speed.least:,.0f} to {speed.most:,.0f})",
                f"{compared.share_of_api_path(name):.0%}",
                f"{_cpu(compared, name):.2f}",
                f"{_median(rounds, 'api_server_cpu_ms'):.2f}",
                f"{_median(rounds, 'p50_ms'):,.0f}",
                f"{_median(rounds, 'p99_ms'):,.0f}",
                f"{_median(rounds, 'resident_bytes') / 1e6:,.0f}",
            ]
            yield f"| {' | '.join(cells)} |"
        bindings = median(path.bindings_per_second for path in compared.api_path)
        path = median(path.pods_per_second for path in compared.api_path)
        yield (
            f"| {compared.workload} | {size} | none | {path:,.0f} created and bound; {bindings:,.0f} bindings alone "
            "| 100% | | | | | |"
        )


def plot(comparison: Comparison) -> str:
    """Pods a second, and CPU time of a pod, of both schedulers."""
    workloads = comparison.workloads
    speeds = {name: [compared.pods_per_second(name).median for compared in workloads] for name in SCHEDULERS}
    speeds["API path"] = [median(path.pods_per_second for path in compared.api_path) for compared in workloads]
    costs = {name: [_cpu(compared, name) for compared in workloads] for name in SCHEDULERS}
    panels = {"Pods a second, from created to bound": speeds, "CPU time of the scheduler for a pod, ms": costs}
    return bar_plot("Both schedulers on the same API server", [compared.workload for compared in workloads], panels)


def _cpu(comparison: WorkloadComparison, name: str) -> float:
    return _median(comparison.of(name), "scheduler_cpu_ms")


def _median(rounds: list[Round], field: str) -> float:
    return median(float(getattr(round_, field)) for round_ in rounds)


def _versions(comparison: Comparison) -> str:
    return (
        f"kube-scheduler {comparison.kube_scheduler}, {comparison.api_server}"
        f"{f', etcd {comparison.etcd}' if comparison.etcd else ''}"
    )
