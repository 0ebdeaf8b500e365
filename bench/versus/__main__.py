"""The command line: `python -m bench.versus --etcd BIN --kube-apiserver BIN --kube-scheduler BIN`.

Both schedulers take turns on one API server: Mooring, kube-scheduler, Mooring, kube-scheduler, …. Each workload has a
control plane of its own, on 127.0.0.1. Output: a line for each round, a table; with `--output FOLDER` also versus.json
and versus.svg; with `--write` bench/versus.json, docs/benchmarks.md and README.md.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from bench.machine import commit, describe_machine
from bench.processes import ProgramError, kube_scheduler, mooring_scheduler
from bench.report import with_results
from bench.versus.cluster import Binaries, cluster_of, control_plane, version_of
from bench.versus.report import BEGIN, END, PLOT, page_text, plot, readme_text, table
from bench.versus.results import KUBE_SCHEDULER, MOORING, ApiPath, Comparison, Round, WorkloadComparison
from bench.versus.rounds import RoundError, api_path_round, load, scheduler_round
from bench.workload import Size, Workload, WorkloadError, read_workload

ROOT = Path(__file__).parents[2]
JSON_FILE = "versus.json"
WORKLOADS = (
    "plain",
    "node-affinity",
    "spread-hard",
    "pod-anti-affinity-required",
    "preemption",
    "mixed",
    "volumes-bound",
)
WARM_UP = 20
NOT_STARTED = "the comparison downloads nothing: all three are part of a Kubernetes release and of etcd's"


@click.command()
@click.option("--etcd", default="", metavar="BIN", help="The etcd binary.")
@click.option("--kube-apiserver", default="", metavar="BIN", help="The kube-apiserver binary.")
@click.option("--kube-scheduler", "binary", default="", metavar="BIN", help="The kube-scheduler binary.")
@click.option("--nodes", type=click.IntRange(min=1), default=1_000, show_default=True, help="Nodes.")
@click.option("--placed", type=click.IntRange(min=0), help="Pods placed before.  [default: as many as nodes]")
@click.option("--pods", type=click.IntRange(min=1), default=1_000, show_default=True, help="Pods in each round.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Rounds of each scheduler.")
@click.option("--workload", "names", multiple=True, help=f"May be repeated.  [default: {', '.join(WORKLOADS)}]")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Write versus.json and versus.svg there."
)
@click.option("--write", is_flag=True, help="Write bench/versus.json, docs/benchmarks.md and README.md.")
@click.option("--render", is_flag=True, help="Measure nothing: write the pages again, from bench/versus.json.")
def main(
    etcd: str,
    kube_apiserver: str,
    binary: str,
    nodes: int,
    placed: int | None,
    pods: int,
    rounds: int,
    names: tuple[str, ...],
    output: Path | None,
    write: bool,
    render: bool,
) -> None:
    """Compare Mooring with kube-scheduler on the same kube-apiserver and etcd."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that every process that was started ends
    try:
        if render:
            write_pages(msgspec.json.decode((ROOT / "bench" / JSON_FILE).read_bytes(), type=Comparison), ROOT)
            return
        binaries = Binaries(etcd, kube_apiserver, binary)
        versions = check_binaries(binaries)
        size = Size(nodes=nodes, placed=nodes if placed is None else placed, pods=pods, warm_up=WARM_UP)
        workloads = [read_workload(name) for name in names or WORKLOADS]
        comparison = compare(binaries, versions, workloads, size, rounds)
    except (RoundError, ProgramError, WorkloadError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for line in table(comparison):
        click.echo(line)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_files(comparison, output / JSON_FILE, output / PLOT)
    if write:
        write_pages(comparison, ROOT)


def check_binaries(binaries: Binaries) -> Binaries:
    """Their versions. Raises `click.UsageError`."""
    versions = []
    for option, binary in zip(("--etcd", "--kube-apiserver", "--kube-scheduler"), binaries):
        if not binary:
            raise click.UsageError(f"{option} BIN is missing; {NOT_STARTED}")
        try:
            versions.append(version_of(binary))
        except (OSError, ValueError) as error:
            raise click.UsageError(f"{option}: cannot run {binary}: {error}; {NOT_STARTED}") from error
    return Binaries(*versions)


def compare(
    binaries: Binaries, versions: Binaries, workloads: Sequence[Workload], size: Size, rounds: int
) -> Comparison:
    """All workloads, one after the other. Raises `RoundError` or `ProgramError`."""
    name, has_changes = commit()
    names = [workload.name for workload in workloads]
    chosen = "" if names == list(WORKLOADS) else "".join(f" --workload {workload.name}" for workload in workloads)
    with tempfile.TemporaryDirectory(prefix="versus-") as folder:
        results = [compare_on(workload, size, binaries, rounds, Path(folder)) for workload in workloads]
    return Comparison(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=name,
        has_uncommitted_changes=has_changes,
        machine=describe_machine(),
        etcd=versions.etcd,
        api_server=f"kube-apiserver {versions.kube_apiserver}" if versions.kube_apiserver else "Mooring's API server",
        kube_scheduler=versions.kube_scheduler,
        command=f"python -m bench.versus --nodes {size.nodes} --placed {size.placed} --pods {size.pods} "
        f"--rounds {rounds}{chosen} --etcd BIN --kube-apiserver BIN --kube-scheduler BIN",
        workloads=tuple(results),
    )


def size_for(workload: Workload, size: Size) -> Size:
    """A cluster that has to be full is full. Every pod that preempts needs a node of its own."""
    if workload.size.placed_per_node is None:
        return size
    pods = min(size.pods, max(1, size.nodes // 2))
    warm_up = min(size.warm_up, size.nodes - pods)
    return msgspec.structs.replace(size, placed_per_node=workload.size.placed_per_node, pods=pods, warm_up=warm_up)


def compare_on(workload: Workload, size: Size, binaries: Binaries, rounds: int, folder: Path) -> WorkloadComparison:
    """Both schedulers in turn on one workload, and the API path in each turn."""
    size = size_for(workload, size)
    cluster = cluster_of(workload, size)
    theirs = kube_scheduler(binaries.kube_scheduler) if binaries.kube_scheduler else mooring_scheduler
    measured: list[Round] = []
    paths: list[ApiPath] = []
    with control_plane(binaries, folder / workload.name) as plane:
        asyncio.run(load(plane, cluster))
        for number in range(rounds):
            for name, command in ((MOORING, mooring_scheduler), (KUBE_SCHEDULER, theirs)):
                of_round = folder / f"{workload.name}-{number}-{name}"
                measured.append(scheduler_round(name, command, plane, cluster, of_round))
                _progress(workload.name, number, measured[-1])
            paths.append(api_path_round(plane, cluster))
            click.echo(f"{workload.name:<28} {number + 1} API path       {paths[-1].pods_per_second:>7,.0f} pods/s")
    return WorkloadComparison(
        workload=workload.name,
        nodes=size.nodes,
        placed=size.placed_count,
        pods=size.pods,
        rounds=tuple(measured),
        api_path=tuple(paths),
    )


def _progress(workload: str, number: int, measured: Round) -> None:
    click.echo(
        f"{workload:<28} {number + 1} {measured.scheduler:<14} {measured.pods_per_second:>7,.0f} pods/s  "
        f"CPU {measured.scheduler_cpu_ms:.2f} ms a pod (API server {measured.api_server_cpu_ms:.2f})  "
        f"p50 {measured.p50_ms:,.0f} ms, p99 {measured.p99_ms:,.0f}  {measured.resident_bytes / 1e6:,.0f} MB"
    )


def write_files(comparison: Comparison, json_file: Path, plot_file: Path) -> None:
    json_file.write_bytes(msgspec.json.format(msgspec.json.encode(comparison), indent=1) + b"\n")
    plot_file.write_text(plot(comparison), encoding="utf-8")


def write_pages(comparison: Comparison, root: Path) -> None:
    """The files of a comparison in a tree, and the text of its pages."""
    write_files(comparison, root / "bench" / JSON_FILE, root / "docs" / "plots" / PLOT)
    texts = {
        root / "docs" / "benchmarks.md": page_text(comparison, f"../bench/{JSON_FILE}", f"plots/{PLOT}"),
        root / "README.md": readme_text(comparison),
    }
    for page, text in texts.items():
        page.write_text(with_results(page.read_text(encoding="utf-8"), text, BEGIN, END), encoding="utf-8")


if __name__ == "__main__":
    main()
