"""Shows and stops running clusters.

1. `status` asks each API server for the numbers of nodes and pods, with the kubeconfig of the cluster. A server that
   does not answer in time is shown without them.
2. `down` sends SIGTERM and waits until the process has ended: then its ports and its data directory are free.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import click
import msgspec

from mooring.api.decode import decode_as
from mooring.api.kinds import NODE, POD
from mooring.api.views.meta import is_true
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.cli.clusters.registry import ClusterProcess, ClusterState, running_clusters
from mooring.cli.errors import input_error
from mooring.client.errors import ClientError
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.kubeconfig.entries import KubeconfigError
from mooring.client.kubeconfig.load import load_connection
from mooring.kit.clock import SystemClock, format_rfc3339
from mooring.kit.entropy import system_entropy
from mooring.kit.loop import run_real

REQUEST_S_MAX = 5.0
CHECK_S = 0.05
EXIT_DONE, EXIT_FAILED = 0, 1
_INDENT = 2
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


@dataclass(slots=True)
class Numbers:
    """What an API server holds."""

    nodes: int
    nodes_ready: int
    pods: Counter[str]
    """By phase."""


def show_status(name: str, form: str) -> int:
    """Returns the exit code."""
    clusters = [state for state in running_clusters() if not name or state.name == name]
    numbers = [run_real(_numbers_of(state)) for state in clusters]
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(list(map(_document, clusters, numbers))), indent=2))
    elif not clusters:
        click.echo(
            f"no running cluster is named {name}" if name else "no cluster runs: `mooring up` starts one", err=True
        )
    else:
        now_s = SystemClock().wall_s()
        click.echo("\n\n".join("\n".join(_lines(*pair, now_s)) for pair in zip(clusters, numbers, strict=True)))
    return EXIT_DONE if clusters else EXIT_FAILED


async def _numbers_of(state: ClusterState) -> Numbers | str:
    """The numbers, or why they are not known."""
    if not state.kubeconfig:
        return "starting"
    clock = SystemClock()
    try:
        connection = load_connection(clock, kubeconfig=state.kubeconfig)
        limits = HttpLimits(requests_per_s=0.0, request_s_max=REQUEST_S_MAX)
        async with HttpClient(connection, clock, system_entropy(), limits=limits) as client:
            nodes = [decode_as(Node, raw) for raw in (await client.list(NODE)).items]
            pods = [decode_as(Pod, raw) for raw in (await client.list(POD)).items]
    except (ClientError, KubeconfigError) as error:
        return str(error)
    ready = sum(map(_is_ready, nodes))
    return Numbers(len(nodes), ready, Counter(pod.status.phase or "Pending" for pod in pods))


def _is_ready(node: Node) -> bool:
    return is_true(node.status.conditions, "Ready")


def _lines(state: ClusterState, numbers: Numbers | str, now_s: float) -> list[str]:
    lines = [f"{state.name}: {'ready' if state.is_ready else 'starting'}, up {_age(now_s - state.started_wall_s)}"]
    rows = {"API server": state.url}
    if isinstance(numbers, str):
        rows["problem"] = numbers
    else:
        rows["nodes"] = f"{numbers.nodes:,} ({numbers.nodes_ready:,} ready)" if numbers.nodes else "0"
        phases = ", ".join(f"{count:,} {phase}" for phase, count in sorted(numbers.pods.items()))
        rows["pods"] = f"{numbers.pods.total():,}{f' ({phases})' if phases else ''}"
    rows |= {"objects": state.objects, "kubeconfig": state.kubeconfig, "log": state.log, "process": str(state.pid)}
    return [*lines, *(f"{'':{_INDENT}}{title:<12} {value}" for title, value in rows.items() if value)]


def _document(state: ClusterState, numbers: Numbers | str) -> dict[str, object]:
    document: dict[str, object] = {
        "name": state.name,
        "ready": state.is_ready,
        "server": state.url,
        "objects": state.objects,
        "kubeconfig": state.kubeconfig,
        "log": state.log,
        "pid": state.pid,
        "started": format_rfc3339(state.started_wall_s),
    }
    if isinstance(numbers, str):
        return {**document, "problem": numbers}
    return {**document, "nodes": numbers.nodes, "nodesReady": numbers.nodes_ready, "podsByPhase": dict(numbers.pods)}


def _age(seconds: float) -> str:
    """As kubectl shows ages: `5s`, `3m`, `2h`, `4d`."""
    for length_s, unit in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "m")):
        if seconds >= length_s:
            return f"{int(seconds // length_s)}{unit}"
    return f"{int(max(seconds, 0.0))}s"


def stop_clusters(name: str, *, is_all: bool, timeout_s: float) -> int:
    """Returns the exit code. Raises `InputError`."""
    if name and is_all:
        raise input_error("a name and --all contradict each other: leave one out")
    clusters = [state for state in running_clusters() if not name or state.name == name]
    if not clusters:
        click.echo(f"no running cluster is named {name}" if name else "no cluster runs", err=True)
        return EXIT_FAILED if name else EXIT_DONE
    if len(clusters) > 1 and not is_all:
        names = ", ".join(state.name for state in clusters)
        raise input_error(f"several clusters run: {names}; name one of them, or use --all")
    processes = {state.name: ClusterProcess(state.name) for state in clusters}
    for state in clusters:
        _signal(state.pid)
    return run_real(_wait_ended(clusters, processes, timeout_s))


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return  # it has ended since


async def _wait_ended(clusters: list[ClusterState], processes: Mapping[str, ClusterProcess], timeout_s: float) -> int:
    clock, waiting = SystemClock(), list(clusters)
    end_s = clock.now_s() + timeout_s
    while True:
        for state in [state for state in waiting if processes[state.name].has_ended()]:
            waiting.remove(state)
            click.echo(f"cluster {state.name} has ended")
        if not waiting:
            return EXIT_DONE
        if clock.now_s() >= end_s:
            for state in waiting:
                click.echo(f"mooring: {state.name} does not end; `kill -9 {state.pid}` ends it at once", err=True)
            return EXIT_FAILED
        await clock.wait(CHECK_S)
