"""Benchmark of a large cluster: `mooring up` with thousands of hollow nodes, in its own process.

Input: nothing, or `--quick`, `--ephemeral`, names of scenarios. Output: a line for each figure with its target; with
`--output FILE` also as JSON.

    python -m bench.cluster [idle|one|lost|many]...

    idle   the cost of the heartbeats of all nodes
    one    one Deployment of 10,000 replicas, until its status shows all of them as available
    lost   a tenth of the nodes falls silent: from the time at which the last eviction is due until the Deployment is
           complete again
    many   1,000 Deployments of 10 replicas, from the first request until each is complete

 1. The state is read over HTTPS, with one small request every `ASKED_EACH_S`, which is cheap in comparison.
 2. The store is durable, on a file, unless `--ephemeral` is given.
 3. A figure without a target is for comparison only.
 4. kube-controller-manager taints one node of a zone in ten seconds by default, which would take 28 minutes for 500.
    `--node-eviction-rate` raises that. The pods tolerate a lost node for `TOLERATED_S`, so that an eviction is due that
    long after its node was tainted.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from time import perf_counter, time

import click
import msgspec

from bench.client import Connection, ask_all, request
from bench.processes import MooringUp, check_answers, mooring_up
from bench.results import Figure, print_figures

TOKEN = "bench"
CONNECTIONS = 16
ASKED_EACH_S = 0.1
WAITED_S_MAX = 120.0
SETTLED_S = 2.0
TOLERATED_S = 15
GRACE_S = 20
EVICTIONS_PER_S = 1_000
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCENARIOS = ("idle", "one", "lost", "many")


class Size(msgspec.Struct, frozen=True):
    """How much of everything."""

    nodes: int = 5_000
    replicas: int = 10_000
    lost: int = 500
    deployments: int = 1_000
    replicas_of_each: int = 10
    idle_s: float = 20.0


QUICK = Size(nodes=100, replicas=200, lost=10, deployments=20, idle_s=3.0)


def running(nodes: int, directory: Path | None) -> AbstractContextManager[MooringUp]:
    """`mooring up` with that many nodes; on a directory, or in memory."""
    place = ["--data-dir", str(directory)] if directory is not None else ["--ephemeral"]
    eviction = [f"--node-eviction-rate={EVICTIONS_PER_S}", f"--node-monitor-grace-period={GRACE_S}s"]
    return mooring_up(TOKEN, "--nodes", str(nodes), *place, *eviction)


# --- what is measured -------------------------------------------------------------------------------------------


async def settle(cluster: MooringUp, size: Size) -> Figure:
    """All nodes are there and ready, and nothing is left to be done."""
    began_s = perf_counter()
    async with cluster.connected(CONNECTIONS) as (connection, *_):
        while await _ready_nodes(connection) < size.nodes:
            _check_time(began_s, "all nodes are ready")
            await asyncio.sleep(0.5)
    ready_s = perf_counter() - began_s
    # A heartbeat of each node more, and what was put off for the start is over as well.
    quiet = 0
    while quiet < SETTLED_S and perf_counter() - began_s < WAITED_S_MAX:
        before_s = cluster.cpu_s
        await asyncio.sleep(1.0)
        quiet = quiet + 1 if cluster.cpu_s - before_s < 0.5 else 0
    return Figure(f"{size.nodes:,} nodes ready after the server", ready_s, "s")


async def idle(cluster: MooringUp, size: Size) -> Figure:
    began_s, began_cpu_s = perf_counter(), cluster.cpu_s
    await asyncio.sleep(size.idle_s)
    share = (cluster.cpu_s - began_cpu_s) / (perf_counter() - began_s)
    return Figure(f"{size.nodes:,} nodes with heartbeats, of one core", 100 * share, "%", at_most=20.0)


async def one(cluster: MooringUp, size: Size) -> Iterator[Figure]:
    began_s, began_cpu_s = perf_counter(), cluster.cpu_s
    async with cluster.connected(CONNECTIONS) as connections:
        await _create(connections, [_deployment("one", size.replicas)])
        await _wait_whole(connections[0], "one", size.replicas)
        seconds, cpu_s = perf_counter() - began_s, cluster.cpu_s - began_cpu_s
    return iter(
        [
            Figure(f"a Deployment of {size.replicas:,}, until all are available", seconds, "s", at_most=15.0),
            Figure("  CPU a pod", 1e3 * cpu_s / size.replicas, "ms"),
            Figure("  resident memory then", cluster.resident_bytes / 1e6, "MB"),
        ]
    )


async def lost(cluster: MooringUp, size: Size) -> Iterator[Figure]:
    names = [f"node-{number}" for number in range(size.lost)]
    async with cluster.connected(CONNECTIONS) as connections:
        silenced = json.dumps({"metadata": {"annotations": {"mooring.dev/silent": "true"}}}).encode()
        patches = [_patch(f"/api/v1/nodes/{name}", silenced) for name in names]
        answers, _ = await ask_all(connections, patches)
        check_answers(answers, 200)
        tainted_s = await _wait_tainted(connections[0], names)
        due_s = max(tainted_s) + TOLERATED_S
        await asyncio.sleep(max(0.0, due_s - 1.0 - time()))
        began_cpu_s = cluster.cpu_s
        await asyncio.sleep(max(0.0, due_s - time()))
        await _wait_whole(connections[0], "one", size.replicas)
        healed_s = time()
    return iter(
        [
            Figure(
                f"{size.lost:,} nodes lost: whole again after the last eviction was due",
                healed_s - due_s,
                "s",
                at_most=15.0,
            ),
            Figure("  after the first eviction was due", healed_s - min(tainted_s) - TOLERATED_S, "s"),
            Figure("  CPU meanwhile", cluster.cpu_s - began_cpu_s, "s"),
        ]
    )


async def many(cluster: MooringUp, size: Size) -> Iterator[Figure]:
    names = [f"many-{number}" for number in range(size.deployments)]
    began_s, began_cpu_s = perf_counter(), cluster.cpu_s
    async with cluster.connected(CONNECTIONS) as connections:
        await _create(connections, [_deployment(name, size.replicas_of_each) for name in names])
        created_s = perf_counter() - began_s
        for name in names:
            await _wait_whole(connections[0], name, size.replicas_of_each)
        seconds, cpu_s = perf_counter() - began_s, cluster.cpu_s - began_cpu_s
    label = f"{size.deployments:,} Deployments of {size.replicas_of_each}, until all are available"
    return iter(
        [
            Figure(label, seconds, "s", at_most=20.0),
            Figure("  of which all Deployments were created after", created_s, "s"),
            Figure("  CPU a pod", 1e3 * cpu_s / (size.deployments * size.replicas_of_each), "ms"),
            Figure("  resident memory then", cluster.resident_bytes / 1e6, "MB"),
        ]
    )


# --- asking -----------------------------------------------------------------------------------------------------


async def _ready_nodes(connection: Connection) -> int:
    answer = await connection.ask(request(TOKEN, "GET", "/api/v1/nodes"))
    check_answers([answer], 200)
    return answer.body.count(b'"reason":"KubeletReady"')


async def _wait_whole(connection: Connection, name: str, replicas: int) -> None:
    began_s = perf_counter()
    asked = request(TOKEN, "GET", f"{DEPLOYMENTS}/{name}")
    while True:
        answer = await connection.ask(asked)
        check_answers([answer], 200)
        if json.loads(answer.body).get("status", {}).get("availableReplicas", 0) == replicas:
            return
        _check_time(began_s, f"Deployment {name} is whole: {answer.body.decode()[-400:]}")
        await asyncio.sleep(ASKED_EACH_S)


async def _wait_tainted(connection: Connection, names: Sequence[str]) -> list[float]:
    """When each of the nodes was given the taint that evicts, by the wall clock."""
    began_s = perf_counter()
    tainted_s: dict[str, float] = {}
    for name in names:
        while name not in tainted_s:
            answer = await connection.ask(request(TOKEN, "GET", f"/api/v1/nodes/{name}"))
            for taint in json.loads(answer.body)["spec"].get("taints", ()):
                if taint["effect"] == "NoExecute":
                    tainted_s[name] = datetime.fromisoformat(taint["timeAdded"]).timestamp()
            if name not in tainted_s:
                _check_time(began_s, f"node {name} is tainted")
                await asyncio.sleep(ASKED_EACH_S)
    return list(tainted_s.values())


async def _create(connections: Sequence[Connection], deployments: Sequence[dict[str, object]]) -> None:
    requests = [request(TOKEN, "POST", DEPLOYMENTS, json.dumps(deployment).encode()) for deployment in deployments]
    answers, _ = await ask_all(connections, requests)
    check_answers(answers, 201)


def _patch(path: str, body: bytes) -> bytes:
    return request(TOKEN, "PATCH", path, body, "application/merge-patch+json")


def _check_time(began_s: float, what: str) -> None:
    assert perf_counter() - began_s < WAITED_S_MAX, f"waited {WAITED_S_MAX:.0f} s in vain until {what}"


def _deployment(name: str, replicas: int) -> dict[str, object]:
    tolerations = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": TOLERATED_S,
        }
        for key in ("not-ready", "unreachable")
    ]
    container = {
        "name": "web",
        "image": "registry.example/web:1",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "tolerations": tolerations},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


# --- the suite --------------------------------------------------------------------------------------------------


def measure(size: Size, scenarios: Sequence[str], is_ephemeral: bool) -> Iterator[Figure]:
    """Every figure, one after the other."""
    if {"idle", "one", "lost"} & set(scenarios):
        with _directory(is_ephemeral) as directory, running(size.nodes, directory) as cluster:
            yield asyncio.run(settle(cluster, size))
            if "idle" in scenarios:
                yield asyncio.run(idle(cluster, size))
            if {"one", "lost"} & set(scenarios):
                yield from asyncio.run(one(cluster, size))
            if "lost" in scenarios:
                yield from asyncio.run(lost(cluster, size))
    if "many" in scenarios:
        with _directory(is_ephemeral) as directory, running(size.nodes, directory) as cluster:
            asyncio.run(settle(cluster, size))
            yield from asyncio.run(many(cluster, size))


@contextmanager
def _directory(is_ephemeral: bool) -> Iterator[Path | None]:
    with nullcontext() if is_ephemeral else tempfile.TemporaryDirectory() as directory:
        yield None if directory is None else Path(directory)


@click.command()
@click.argument("scenarios", nargs=-1, type=click.Choice(SCENARIOS))
@click.option("--quick", is_flag=True, help="A fiftieth of everything: does it work?")
@click.option("--ephemeral", is_flag=True, help="In memory, and not on a file.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures there, as JSON.")
def main(scenarios: tuple[str, ...], quick: bool, ephemeral: bool, output: Path | None) -> None:
    """Measure a whole cluster."""
    print_figures(measure(QUICK if quick else Size(), scenarios or SCENARIOS, ephemeral), output)


if __name__ == "__main__":
    main()
