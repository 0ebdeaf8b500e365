"""Runs controllers or nodes against any API server, with health and metrics on a secure port.

Input: a connection, a function that works with a client, a clock, entropy. Output: the function runs while this process
holds its Lease.

    /healthz /livez /readyz    and each check below them
    /metrics                   leadership, work queues, requests, nodes, the process

1. Of several processes with the same Lease, one works. A process that loses its Lease writes nothing from then on.
2. The Lease is renewed with a separate client, which no rate limit delays.
3. A process that waits for its Lease is ready: it can take over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.client.election import ElectionSettings, LeaderElector
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.cluster.component_metrics import ClientRequestMetrics, add_leader_gauge, component_registry
from mooring.cluster.secure_port import SecurePort, open_secure_port
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kubelet.kubelets import Kubelets
from mooring.serving.endpoints import Check, health_answer, ping
from mooring.serving.pages import METRICS, PageRequest, PageResponse
from mooring.serving.server import Page

IN_FLIGHT_MAX = 200

Work = Callable[[Client], Awaitable[None]]


class ComponentHealth:
    """Health and metrics of a standalone component. The component adds its own checks and metrics when it starts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: dict[str, Check] = {}
        self.elector: LeaderElector | None = None
        self.requests = ClientRequestMetrics()
        self.metrics = component_registry(self.requests)
        add_leader_gauge(self.metrics, name, lambda: self.elector is None or self.elector.is_leading)

    def pages(self) -> dict[str, Page]:
        return {
            **{f"/{name}": partial(self._health, name) for name in ("healthz", "livez", "readyz")},
            "/metrics": lambda request: PageResponse(generate_latest(self.metrics), content_type=METRICS),
        }

    def _health(self, name: str, request: PageRequest) -> PageResponse:
        checks: dict[str, Check] = {"ping": ping}
        if self.elector is not None and name != "livez":
            checks["leaderElection"] = self.elector.health_problem
        if name == "readyz":
            checks |= self.ready
        return health_answer(name, checks, request)


async def run_standalone(
    connection: Connection,
    component: str,
    work: Work,
    clock: Clock,
    entropy: Entropy,
    *,
    lease: ElectionSettings | None,
    requests_per_s: float,
    burst: int,
    health: ComponentHealth,
    port: SecurePort | None,
) -> None:
    """Call `work` as leader, or at once without a lease. Raises `LeadershipLostError`, among others.

    The pages of `health` are served on `port`.
    """
    limits = HttpLimits(requests_per_s, burst=burst or max(1, int(requests_per_s)), in_flight_max=IN_FLIGHT_MAX)
    async with AsyncExitStack() as stack:

        async def open_client(name: str, **settings: Any) -> HttpClient:
            client = HttpClient(connection, clock, entropy.fork(name), **settings)
            health.requests.add(connection.server, client.request_statistics)
            return await stack.enter_async_context(client)

        if port is not None:
            await stack.enter_async_context(open_secure_port(port, health.pages(), clock, entropy.fork("port")))
        if lease is None:
            await work(await open_client("client", limits=limits, component=component))
            return
        electing = await open_client("election", component="leader-election")
        elector = health.elector = LeaderElector(electing, lease, clock=clock, entropy=entropy.fork("leader election"))
        client = await open_client("client", limits=limits, component=component, may_write=lambda: elector.is_leading)

        async def lead() -> None:
            await work(client)

        await elector.run(lead)


class NodeMetrics(Collector):
    """The nodes of this process, their pods and their writes.

    The names are our own: one process has thousands of kubelets, and kubelet's metrics are those of one node."""

    def __init__(self, kubelets: Kubelets) -> None:
        self._kubelets = kubelets

    def collect(self) -> Iterator[Metric]:
        found = self._kubelets.statistics()
        for name, text in (
            ("nodes", "Nodes of this process."),
            ("nodes_silent", "Nodes that send no heartbeats."),
            ("pods", "Pods on the nodes of this process."),
        ):
            value = found[name]
            assert isinstance(value, int), f"{name} is {value!r}"
            yield GaugeMetricFamily(f"mooring_kubelet_{name}", text, value)
        writes = CounterMetricFamily(
            "mooring_kubelet_writes", "Writes to the API server, by what is written.", labels=("kind", "result")
        )
        for kind, statistics in found.items():
            if isinstance(statistics, dict):
                for result in ("sent", "failed"):
                    writes.add_metric((kind.replace(" ", "_"), result), statistics[result])
        yield writes
