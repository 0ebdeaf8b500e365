"""A cluster in the process of the caller, for tests and experiments.

    with Cluster(nodes=3) as cluster:
        core = kubernetes.client.CoreV1Api(cluster.client())

    async with Cluster(nodes=3) as cluster, cluster.async_client() as client:
        await client.create(POD, "default", manifest)

1. `with` runs the cluster in a thread of its own with its own event loop, `async with` on the event loop of the caller.
   An instance runs once.
2. When the block begins, the API server answers, and all nodes are Ready. When it ends, nothing is left: objects are in
   memory, and keys and kubeconfig in a temporary directory.
3. The server listens on a free port of 127.0.0.1, so that clusters can run side by side.
4. What ends the cluster early, such as a bug in a component, is raised at the end of the block.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mooring.api.decode import decode_as
from mooring.api.kinds import NODE
from mooring.api.views.meta import is_true
from mooring.api.views.node import Node
from mooring.client.http.client import HttpClient
from mooring.client.interface import Client
from mooring.client.kubeconfig.load import load_connection
from mooring.cluster.cluster import ClusterError, run_cluster
from mooring.cluster.component_client import component_client
from mooring.cluster.kubernetes_service import API_SERVER
from mooring.cluster.settings import ClusterSettings
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy, system_entropy
from mooring.kit.loop import run_real
from mooring.kit.temporary_directory import temporary_directory

READY_S_MAX = 60.0
"""How long the nodes have to become Ready."""
_READY_CHECK_S = 0.005
_DIRECTORY_PREFIX = "mooring-cluster-"


class Cluster:
    """A cluster while a `with` or an `async with` block lasts."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        without: Iterable[str] = (),
        settings: ClusterSettings | None = None,
        seed: int | None = None,
    ) -> None:
        """`nodes` hollow nodes; `without` leaves out scheduler, controllers or nodes. `settings` has everything else,
        such as tokens of users; its port, kubeconfig and places of data are not used."""
        base = settings if settings is not None else ClusterSettings()
        parts = base.without | frozenset(without)
        self._settings = replace(base, nodes=nodes, without=parts, port=0, data_directory=None, store_url="")
        self._clock = SystemClock()
        self._entropy = Entropy(seed) if seed is not None else system_entropy()
        self._stack = AsyncExitStack()
        self._thread: threading.Thread | None = None
        self._up: Future[asyncio.AbstractEventLoop] = Future()
        self._ending = asyncio.Event()
        self._failure: BaseException | None = None
        self.url = ""
        self.kubeconfig = Path()
        """A file for kubectl and every client: the administrator of the cluster."""

    # ------------------------------------------------------------------------------------------------ clients

    def client(self) -> Any:
        """An `ApiClient` of the official Python client, which must be installed (`pip install kubernetes`)."""
        try:
            config: Any = import_module("kubernetes.config")
        except ImportError as error:
            raise ClusterError("the package `kubernetes` is not installed: pip install kubernetes") from error
        return config.new_client_from_config(str(self.kubeconfig))

    def async_client(self) -> HttpClient:
        """A client of Mooring for the event loop of the caller, as a context manager."""
        connection = load_connection(self._clock, kubeconfig=str(self.kubeconfig))
        return HttpClient(connection, self._clock, self._entropy.fork("client"), component="library")

    # ------------------------------------------------------------------------------------------------- async with

    async def __aenter__(self) -> Self:
        assert not self.url, "a cluster runs once: make another one"
        async with AsyncExitStack() as stack:
            directory = stack.enter_context(temporary_directory(_DIRECTORY_PREFIX))
            settings = replace(self._settings, kubeconfig=directory / "kubeconfig")
            running = await stack.enter_async_context(run_cluster(settings, self._clock, self._entropy))
            if settings.runs("nodes"):
                await self._wait_ready(component_client(running.api_server, API_SERVER), settings.nodes)
            self.url, self.kubeconfig = running.url, directory / "kubeconfig"
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, asyncio.CancelledError):
            # By a component that failed: the task groups of the cluster must see it.
            await self._stack.__aexit__(kind, error, trace)
        else:
            await self._stack.aclose()

    async def _wait_ready(self, client: Client, count: int) -> None:
        try:
            async with asyncio.timeout(READY_S_MAX):
                while await _ready_count(client) < count:
                    await self._clock.wait(_READY_CHECK_S)
        except TimeoutError:
            raise ClusterError(f"the nodes are not Ready after {READY_S_MAX:g} s") from None

    # ------------------------------------------------------------------------------------------------------- with

    def __enter__(self) -> Self:
        assert self._thread is None, "a cluster runs once: make another one"
        self._thread = threading.Thread(target=self._run, name="mooring cluster", daemon=True)
        self._thread.start()
        self._up.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        if self._thread.is_alive():
            self._up.result().call_soon_threadsafe(self._ending.set)
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        try:
            run_real(self._serve())
        except BaseException as error:
            if self._up.done():
                self._failure = error
            else:
                self._up.set_exception(error)

    async def _serve(self) -> None:
        async with self:
            self._up.set_result(asyncio.get_running_loop())
            await self._ending.wait()


async def _ready_count(client: Client) -> int:
    nodes = [decode_as(Node, raw) for raw in (await client.list(NODE)).items]
    return sum(is_true(node.status.conditions, "Ready") for node in nodes)
