"""Rounds of a comparison: one scheduler and one set of pods, or the API path alone.

    scheduler starts and is ready -> warm-up pods -> CLOCK: pods are created, decided, bound -> pods are deleted

1. The clock runs from the first request that creates a pod until the watch delivers the last binding. Pods that must
   not be bound are created too; a binding of one is an error.
2. The time of a pod runs from the response to its creation until the watch delivers its binding.
3. Every round ends with the cluster as it was: measured pods are deleted, victims created again.
4. The round without a scheduler creates the same pods and then binds them, as fast as the API server takes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import msgspec
import numpy as np

from bench.client import Answer, Connection, ask_all, connected, request, unverified
from bench.machine import cpu_s_of
from bench.processes import Command, scheduling
from bench.versus.cluster import TOKEN, ControlPlane, VersusCluster, VersusPod, bindings
from bench.versus.results import ApiPath, Round

CONNECTIONS = 32
DECIDE_S_MAX = 120.0
ERRORS_SHOWN = 200
WATCHES_MAX = 20
WATCH = "/api/v1/pods?watch=true&resourceVersion=0&fieldSelector=spec.nodeName!%3D"


class RoundError(RuntimeError):
    """A round that is no measurement."""


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Seen(msgspec.Struct):
    metadata: _Metadata
    message: str = ""


class _Change(msgspec.Struct):
    type: str
    object: _Seen


_changes = msgspec.json.Decoder(_Change)


class BindingWatch:
    """When each pod was bound, by a watch for pods with a node."""

    def __init__(self) -> None:
        self.bound_s: dict[str, float] = {}
        self._buffer = b""
        self._changed = asyncio.Event()
        self._error: Exception | None = None

    async def follow(self, port: int) -> None:
        """Reads for ever. A watch that the server ends is started again: kube-apiserver ends those that read slowly."""
        try:
            for _ in range(WATCHES_MAX):
                await self._watch_once(port)
            raise RoundError(f"the API server ended the watch for pods {WATCHES_MAX} times")
        except (RoundError, EOFError, OSError, ValueError) as error:
            self._error = error
            self._changed.set()

    async def _watch_once(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unverified())
        try:
            writer.write(request(TOKEN, "GET", WATCH))
            await reader.readuntil(b"\r\n\r\n")
            self._buffer = b""
            await self._read_chunks(reader)
        finally:
            writer.close()

    async def _read_chunks(self, reader: asyncio.StreamReader) -> None:
        while size := int((await reader.readline()).strip() or b"0", 16):
            data = await reader.readexactly(size + 2)
            self._take(data[:-2], perf_counter())

    def _take(self, data: bytes, now_s: float) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            change = _changes.decode(line)
            pod = change.object.metadata
            if change.type in ("ADDED", "MODIFIED"):
                self.bound_s.setdefault(f"{pod.namespace}/{pod.name}", now_s)
            elif change.type == "DELETED":
                self.bound_s.pop(f"{pod.namespace}/{pod.name}", None)
            else:
                raise RoundError(f"the watch for pods got {change.type}: {change.object.message}")
        self._changed.set()

    async def wait_for(self, pods: Sequence[VersusPod], connection: Connection) -> None:
        """Until all of them are bound. Raises `RoundError`."""
        missing = {pod.key for pod in pods}
        try:
            async with asyncio.timeout(DECIDE_S_MAX):
                while missing := {key for key in missing if key not in self.bound_s}:
                    if self._error is not None:
                        raise RoundError(f"the watch for pods failed: {self._error}") from self._error
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            one = min(missing)
            raise RoundError(
                f"{len(missing)} of {len(pods)} pods are not bound after {DECIDE_S_MAX:.0f} s, such as {one}: "
                f"{await _conditions(connection, one)}"
            ) from error


async def _conditions(connection: Connection, pod: str) -> str:
    """What the scheduler wrote about a pod."""
    namespace, _, name = pod.partition("/")
    answer = await connection.ask(request(TOKEN, "GET", f"/api/v1/namespaces/{namespace}/pods/{name}"))
    status = msgspec.json.decode(answer.body).get("status", {})
    messages = [condition.get("message", "") for condition in status.get("conditions", ())]
    return " ".join(messages) or "the pod has no condition"


@asynccontextmanager
async def watching(port: int) -> AsyncIterator[BindingWatch]:
    watch = BindingWatch()
    task = asyncio.create_task(watch.follow(port))
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def load(plane: ControlPlane, cluster: VersusCluster) -> None:
    """Creates what is there before. Raises `RoundError`."""
    async with connected("127.0.0.1", plane.port, CONNECTIONS) as connections:
        for requests in cluster.before:
            _check((await ask_all(connections, requests))[0])


def scheduler_round(name: str, command: Command, plane: ControlPlane, cluster: VersusCluster, folder: Path) -> Round:
    """One round of one scheduler. Raises `RoundError` or `ProgramError`."""
    folder.mkdir()
    with scheduling(name, command, plane.kubeconfig, folder) as scheduler:
        measured = asyncio.run(_measure(scheduler.program.name, plane, cluster, scheduler.program.pid))
        scheduler.program.check_runs()
        measured = msgspec.structs.replace(
            measured,
            ready_s=scheduler.ready_s,
            resident_bytes=scheduler.program.resident_bytes,
            peak_bytes=scheduler.program.peak_bytes,
        )
    asyncio.run(_restore(plane, cluster))
    return measured


async def _measure(name: str, plane: ControlPlane, cluster: VersusCluster, pid: int) -> Round:
    async with connected("127.0.0.1", plane.port, CONNECTIONS) as connections, watching(plane.port) as watch:
        _check((await ask_all(connections, [pod.create for pod in cluster.warm_up]))[0])
        await watch.wait_for([pod for pod in cluster.warm_up if pod.is_bound_in_the_end], connections[0])
        created_s: dict[str, float] = {}
        before, began_s = _cpu(plane, pid), perf_counter()
        await _create(connections, cluster.pods, created_s)
        expected = [pod for pod in cluster.pods if pod.is_bound_in_the_end]
        await watch.wait_for(expected, connections[0])
        after, ended_s = _cpu(plane, pid), max(watch.bound_s[pod.key] for pod in expected)
        if wrong := [pod.key for pod in cluster.pods if not pod.is_bound_in_the_end and pod.key in watch.bound_s]:
            raise RoundError(f"{name} bound {wrong[0]}, which fits on no node")
        waits_ms = np.array([watch.bound_s[pod.key] - created_s[pod.key] for pod in expected]).clip(0) * 1e3
    count = len(cluster.pods)
    scheduler, server, store = ((later - earlier) * 1e3 / count for earlier, later in zip(before, after))
    return Round(
        scheduler=name,
        pods=count,
        bound=len(expected),
        seconds=ended_s - began_s,
        p50_ms=float(np.percentile(waits_ms, 50)),
        p99_ms=float(np.percentile(waits_ms, 99)),
        scheduler_cpu_ms=scheduler,
        api_server_cpu_ms=server,
        store_cpu_ms=store,
    )


def api_path_round(plane: ControlPlane, cluster: VersusCluster) -> ApiPath:
    """The same pods created and bound without a scheduler. Raises `RoundError`."""
    return asyncio.run(_api_path(plane, cluster))


async def _api_path(plane: ControlPlane, cluster: VersusCluster) -> ApiPath:
    async with connected("127.0.0.1", plane.port, CONNECTIONS) as connections:
        created, create_s = await ask_all(connections, [pod.create for pod in cluster.pods])
        bound, bind_s = await ask_all(connections, list(bindings(cluster.pods, cluster.node_names)))
    _check(created + bound)
    await _restore(plane, cluster)
    return ApiPath(pods=len(cluster.pods), create_s=create_s, bind_s=bind_s)


async def _create(connections: Sequence[Connection], pods: Sequence[VersusPod], created_s: dict[str, float]) -> None:
    async def create_some(connection: Connection, some: Sequence[VersusPod]) -> None:
        for pod in some:
            _check([await connection.ask(pod.create)])
            created_s[pod.key] = perf_counter()

    async with asyncio.TaskGroup() as group:
        for number, connection in enumerate(connections):
            group.create_task(create_some(connection, pods[number :: len(connections)]))


async def _restore(plane: ControlPlane, cluster: VersusCluster) -> None:
    """Deletes the pods of the round, and creates its victims again."""
    async with connected("127.0.0.1", plane.port, CONNECTIONS) as connections:
        deletes = [pod.delete for pod in (*cluster.warm_up, *cluster.pods)]
        _check((await ask_all(connections, deletes))[0], 404)
        if any(pod.outcome == "preempts" for pod in cluster.pods):
            _check((await ask_all(connections, [pod.create for pod in cluster.placed]))[0], 409)


def _cpu(plane: ControlPlane, scheduler_pid: int) -> tuple[float, float, float]:
    store_s = plane.store.cpu_s if plane.store is not None else 0.0
    return cpu_s_of(scheduler_pid), plane.api_server.cpu_s, store_s


def _check(answers: Sequence[Answer], *allowed: int) -> None:
    for answer in answers:
        if answer.status >= 300 and answer.status not in allowed:
            said = answer.body[:ERRORS_SHOWN].decode("utf-8", "replace")
            raise RoundError(f"the API server answered {answer.status}: {said}")
