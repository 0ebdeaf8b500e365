"""Benchmark of the scheduler over HTTP and TLS: `mooring scheduler` in one process, a minimal API server in another.

Input: nothing, or sizes. Output: a line for each figure with its target; with `--output FILE` also as JSON.

    python -m bench.remote

 1. The server costs a fraction of the scheduler's CPU time and responds at once: the scheduler is what is measured.
 2. All pods appear at once, after the scheduler is ready. Time is measured until the last binding, and until the last
    event.
 3. CPU time is that of the scheduler's process, from the first pod to the last event.
 4. The server checks the outcome: each pod is bound once, to an existing node, and has one event. Otherwise the
    benchmark fails.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter

import click
import msgspec

from bench.client import Connection, connected, request
from bench.processes import SchedulerProcess, mooring_scheduler, scheduling, write_kubeconfig
from bench.results import Figure, print_figures

PODS_PER_S = 1_500
CPU_MS = 0.5
RESIDENT_MB = 250
READY_S = 3.0
PATIENCE_S = 60.0
WARM_UP = 200


class RemoteResult(msgspec.Struct):
    """What the server says became of the pods."""

    bound: int
    events: int
    errors: list[str]
    bound_s: float
    events_s: float


@contextmanager
def serving(workload: str, nodes: int, placed: int, pods: int) -> Iterator[int]:
    """The lean server, in a process; its port."""
    sizes = ["--workload", workload, "--nodes", str(nodes), "--placed", str(placed), "--pods", str(pods)]
    command = [sys.executable, "-m", "bench.remote_server", *sizes]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield msgspec.json.decode(process.stdout.readline())["port"]
        process.stdin.close()


def _ready_scheduler(port: int, folder: Path) -> AbstractContextManager[SchedulerProcess]:
    kubeconfig = write_kubeconfig(folder / "kubeconfig", port, "bench")
    return scheduling("mooring scheduler", mooring_scheduler, kubeconfig, folder)


def measure(workload: str, nodes: int, placed: int, pods: int) -> Iterator[Figure]:
    """Every figure of one run. `placed` is the cluster for memory and start; the pods come on top."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(workload, nodes, placed, pods + WARM_UP) as port,
        _ready_scheduler(port, Path(folder)) as scheduler,
    ):
        yield Figure(f"ready with {nodes:,} nodes and {placed:,} pods", scheduler.ready_s, "s", at_most=READY_S)
        asyncio.run(_bind_all(port, WARM_UP))
        yield Figure(
            f"resident with {placed:,} pods", scheduler.program.resident_bytes / 1e6, "MB", at_most=RESIDENT_MB
        )
        cpu_before_s = scheduler.program.cpu_s
        result = asyncio.run(_bind_all(port, pods))
        cpu_ms = (scheduler.program.cpu_s - cpu_before_s) * 1e3 / pods
        yield Figure(f"{workload} pods bound over HTTP and TLS", pods / result.bound_s, "/s", at_least=PODS_PER_S)
        yield Figure("… until the last event was written", pods / result.events_s, "/s", at_least=PODS_PER_S)
        yield Figure("CPU of the scheduler for a pod", cpu_ms, "ms", at_most=CPU_MS)
        yield Figure("resident at the end", scheduler.program.resident_bytes / 1e6, "MB", at_most=RESIDENT_MB)


async def _bind_all(port: int, count: int) -> RemoteResult:
    async with connected("127.0.0.1", port, 1) as (connection,):
        await connection.ask(request("", "POST", f"/bench/create?{count}"))
        deadline_s = perf_counter() + PATIENCE_S
        result = await _remote_result(connection)
        while (result.bound < count or result.events < count) and perf_counter() < deadline_s:
            await asyncio.sleep(0.05)
            result = await _remote_result(connection)
    assert (result.bound, result.events, result.errors) == (count, count, []), f"of {count} pods: {result}"
    return result


async def _remote_result(connection: Connection) -> RemoteResult:
    answer = await connection.ask(request("", "GET", "/bench/result"))
    return msgspec.json.decode(answer.body, type=RemoteResult)


@click.command()
@click.option("--workload", default="plain", help="Which of bench/workloads.")
@click.option("--nodes", default=5_000)
@click.option("--placed", default=50_000, help="Pods that are placed already.")
@click.option("--pods", default=10_000, help="Pods that come.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures there, as JSON.")
def main(workload: str, nodes: int, placed: int, pods: int, output: Path | None) -> None:
    """Measure the scheduler over HTTP and TLS."""
    print_figures(measure(workload, nodes, placed, pods), output)


if __name__ == "__main__":
    main()
