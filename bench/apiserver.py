"""Benchmark of the API server: `mooring up` in its own process, over HTTPS.

Input: nothing, or `--quick`. Output: a line for each figure with its target; with `--output FILE` also as JSON.

    python -m bench.apiserver

 1. Every response is checked: one with an unexpected status fails the benchmark.
 2. The store is durable, on a file: a create is acknowledged after it is on disk.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import click

from bench.client import Connection, ask_all, request, unverified
from bench.processes import MooringUp, check_answers, mooring_up
from bench.results import Figure, print_figures

TOKEN = "bench"
API_SERVER_ONLY = ("--without", "scheduler,controllers,nodes")
"""Options for a cluster of the API server only. The time of a start is measured with all components."""
CONNECTIONS = 64
CREATED = 201
OK = 200


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[MooringUp]:
    """`mooring up` on a data directory, when it is ready."""
    with mooring_up(TOKEN, "--data-dir", str(directory), *options) as server:
        asyncio.run(_wait_ready(server))
        yield server


async def _wait_ready(server: MooringUp) -> None:
    async with server.connected(1) as connections:
        (answer,), _ = await ask_all(connections, [request(TOKEN, "GET", "/readyz")])
        assert answer.status == OK, f"/readyz answers {answer.status}"


def start_s() -> float:
    """The time from the start of the process until it is ready."""
    began_s = perf_counter()
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)):
        return perf_counter() - began_s


# --- what is measured -------------------------------------------------------------------------------------------


async def gets(server: MooringUp, count: int) -> Figure:
    async with server.connected(CONNECTIONS) as connections:
        one = request(TOKEN, "GET", "/api/v1/namespaces/default")
        await ask_all(connections, [one] * (count // 10))
        answers, seconds = await ask_all(connections, [one] * count)
    check_answers(answers, OK)
    return Figure("single gets", count / seconds, "/s", at_least=3_000)


async def creates(
    server: MooringUp,
    what: str,
    count: int,
    plural: str,
    body: Callable[[int], dict[str, object]],
    per_s: float | None = 1_500,
) -> Figure:
    async with server.connected(CONNECTIONS) as connections:
        path = f"/api/v1/namespaces/default/{plural}"
        bodies = (json.dumps(body(number), separators=(",", ":")).encode() for number in range(count + count // 10))
        asked = [request(TOKEN, "POST", path, body) for body in bodies]
        warm, _ = await ask_all(connections, asked[count:])
        check_answers(warm, CREATED)
        answers, seconds = await ask_all(connections, asked[:count])
    check_answers(answers, CREATED)
    return Figure(f"durable creates of {what}", count / seconds, "/s", at_least=per_s)


async def list_nodes(server: MooringUp, count: int) -> Figure:
    async with server.connected(CONNECTIONS) as connections:
        made = [request(TOKEN, "POST", "/api/v1/nodes", json.dumps(_node(index)).encode()) for index in range(count)]
        answers, _ = await ask_all(connections, made)
        check_answers(answers, CREATED)
        (answer,), seconds = await ask_all(connections[:1], [request(TOKEN, "GET", "/api/v1/nodes")])
    assert len(json.loads(answer.body)["items"]) == count
    return Figure(f"listing {count:,} nodes", seconds, "s", at_most=0.5)


async def watchers(server: MooringUp, count: int, changes_per_s: int, seconds: int) -> Iterator[Figure]:
    """Many watchers of a busy kind: how many changes a second reach all of them, and how late the last one.

    The clients write 1.3 times the wanted rate: a client that writes at a rate reaches a little less in any case.
    """
    written_per_s = changes_per_s * 1.3
    total = round(written_per_s * seconds)
    lines = [0] * count
    async with server.connected(CONNECTIONS) as connections:
        names = [f"watched-{number}" for number in range(len(connections))]
        created = [
            request(TOKEN, "POST", "/api/v1/namespaces/kube-public/configmaps", json.dumps(_config_map(name)).encode())
            for name in names
        ]
        answers, _ = await ask_all(connections, created)
        check_answers(answers, CREATED)
        since = max(int(json.loads(answer.body)["metadata"]["resourceVersion"]) for answer in answers)
        path = f"/api/v1/namespaces/kube-public/configmaps?watch=1&resourceVersion={since}"
        watching = [asyncio.create_task(_count_lines(server, path, index, lines, total)) for index in range(count)]
        await asyncio.sleep(1.0)
        began_s = perf_counter()
        await asyncio.gather(
            *(
                _change_steadily(connection, name, turns, written_per_s / len(connections))
                for connection, name, turns in zip(connections, names, _shares(total, len(connections)))
            )
        )
        written_s = perf_counter() - began_s
        await asyncio.wait_for(asyncio.gather(*watching), 60)
        seen_s = perf_counter() - began_s
    assert lines == [total] * count, f"watchers saw between {min(lines)} and {max(lines)} of {total} changes"
    return iter(
        [
            Figure(f"changes a second, each told to {count} watchers", total / seen_s, "/s", at_least=changes_per_s),
            Figure("the last watcher behind the last change", seen_s - written_s, "s", at_most=1.0),
        ]
    )


async def _change_steadily(connection: Connection, name: str, turns: int, changes_per_s: float) -> None:
    began_s = perf_counter()
    for turn in range(turns):
        patch = json.dumps({"data": {"turn": str(turn)}}).encode()
        path = f"/api/v1/namespaces/kube-public/configmaps/{name}"
        answered = await connection.ask(request(TOKEN, "PATCH", path, patch, "application/merge-patch+json"))
        assert answered.status == OK, answered.body
        ahead_s = began_s + (turn + 1) / changes_per_s - perf_counter()
        if ahead_s > 0:
            await asyncio.sleep(ahead_s)


def _shares(total: int, parts: int) -> list[int]:
    return [total // parts + (index < total % parts) for index in range(parts)]


async def _count_lines(server: MooringUp, path: str, index: int, lines: list[int], total: int) -> None:
    reader, writer = await asyncio.open_connection(server.host, server.port, ssl=unverified())
    writer.write(request(TOKEN, "GET", path))
    await reader.readuntil(b"\r\n\r\n")
    while lines[index] < total:
        lines[index] += (await reader.read(1 << 16)).count(b'{"type":"MODIFIED"')
    writer.close()


async def memory(server: MooringUp, count: int) -> Figure:
    async with server.connected(CONNECTIONS) as connections:
        one = request(TOKEN, "POST", "/api/v1/namespaces/default/pods", json.dumps(_pod()).encode())
        answers, _ = await ask_all(connections, [one] * count)
    check_answers(answers, CREATED)
    return Figure(f"resident memory holding {count:,} pods", server.resident_bytes / 1e9, "GB", at_most=1.5)


# --- objects ----------------------------------------------------------------------------------------------------


def _config_map(name: str = "") -> dict[str, object]:
    metadata = {"name": name} if name else {"generateName": "bench-"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}}


def _pod(number: int = 0, name: str = "web", amount: int = 127) -> dict[str, object]:
    """About 2 KB of a pod; another number, another environment."""
    container = {
        "name": name,
        "image": f"registry.example/{name}:1",
        "env": [{"name": f"{name.upper().replace('-', '_')}_{place}", "value": f"{number:040}"} for place in range(20)],
        "ports": [{"containerPort": 1 + amount}],
        "resources": {"requests": {"cpu": f"{1 + amount}m", "memory": f"{1 + amount}Mi"}},
    }
    metadata = {"generateName": "bench-", "labels": {"app": name, "pod-template-hash": "5d4f8c7b9"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def _odd_pod(number: int) -> dict[str, object]:
    """A pod with names, amounts and a port that no other has."""
    return _pod(number, f"web-{number}", number)


def _node(index: int) -> dict[str, object]:
    labels = {"kubernetes.io/hostname": f"n{index}", "topology.kubernetes.io/zone": f"z{index % 3}"}
    capacity = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{index}", "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


# --- the suite --------------------------------------------------------------------------------------------------


def measure(quick: bool) -> Iterator[Figure]:
    """Every figure, one after the other."""
    scale = 50 if quick else 1
    ready_s = min(start_s() for _ in range(1 if quick else 3))
    yield Figure("ready after the start of the process", ready_s, "s", at_most=1.5)
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory), *API_SERVER_ONLY) as server:
        yield asyncio.run(gets(server, 15_000 // scale))
        count = 7_500 // scale
        yield asyncio.run(creates(server, "configmaps", count, "configmaps", lambda number: _config_map()))
        yield asyncio.run(creates(server, "pods of one template", count, "pods", lambda number: _pod()))
        yield asyncio.run(creates(server, "pods that all differ in their variables", count, "pods", _pod))
        yield asyncio.run(creates(server, "pods of which none is like another", count, "pods", _odd_pod, per_s=None))
        yield from asyncio.run(watchers(server, 200 // scale, 1_000, 1 if quick else 5))
        yield asyncio.run(list_nodes(server, 5_000 // scale))
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory), *API_SERVER_ONLY) as server:
        yield asyncio.run(memory(server, 50_000 // scale))


@click.command()
@click.option("--quick", is_flag=True, help="A fiftieth of everything: does it work?")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures there, as JSON.")
def main(quick: bool, output: Path | None) -> None:
    """Measure the API server."""
    print_figures(measure(quick), output)


if __name__ == "__main__":
    main()
