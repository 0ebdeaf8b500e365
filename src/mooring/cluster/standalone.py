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

import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.client.election import ElectionSettings, LeaderElector
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.cluster.component_metrics import ClientRequestMetrics, WorkQueueMetrics
from mooring.cluster.secure_port import SecurePort, open_secure_port
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kubelet.kubelets import Kubelets
from mooring.serving.endpoints import Check, health_answer, ping
from mooring.serving.pages import PageRequest, PageResponse
from mooring.serving.server import Page

IN_FLIGHT_MAX = 200
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Work = Callable[[Client], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """The Lease and its times. The defaults are Kubernetes'."""

    name: str
    namespace: str = "kube-system"
    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def settings(self, identity: str) -> ElectionSettings:
        """Settings of the elector. Raises `ElectionSettingsError` if the times contradict each other."""
        return ElectionSettings(self.namespace, self.name, identity, self.lease_s, self.renew_deadline_s, self.retry_s)


class ComponentHealth:
    """Health and metrics of a standalone component. The component adds its own checks and metrics when it starts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.metrics = CollectorRegistry()
        self.ready: dict[str, Check] = {}
        self.elector: LeaderElector | None = None
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.metrics)
        leads = Gauge("leader_election_master_status", "Whether this process leads: 1, or 0.", ("name",), registry=None)
        leads.labels(name).set_function(lambda: float(self.elector is None or self.elector.is_leading))
        self.metrics.register(leads)
        self.requests = ClientRequestMetrics()
        self.metrics.register(self.requests)
        self.metrics.register(WorkQueueMetrics())

    def pages(self) -> dict[str, Page]:
        return {
            **{f"/{name}": partial(self._health, name) for name in ("healthz", "livez", "readyz")},
            "/metrics": lambda request: PageResponse(generate_latest(self.metrics), content_type=METRICS_TYPE),
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
    lease: LeaseTerms | None = None,
    requests_per_s: float = 0.0,
    burst: int = 0,
    health: ComponentHealth | None = None,
    port: SecurePort | None = None,
) -> None:
    """Call `work` as leader, or at once without a lease. Raises `LeadershipLostError`, among others.

    The pages of `health` are served on `port`.
    """
    health = health if health is not None else ComponentHealth(component)
    async with AsyncExitStack() as stack:
        if port is not None:
            await stack.enter_async_context(open_secure_port(port, health.pages(), clock, entropy.fork("port")))
        await _run_as_leader(connection, component, work, clock, entropy, lease, requests_per_s, burst, health)


async def _run_as_leader(
    connection: Connection,
    component: str,
    work: Work,
    clock: Clock,
    entropy: Entropy,
    lease: LeaseTerms | None,
    requests_per_s: float,
    burst: int,
    health: ComponentHealth,
) -> None:
    limits = HttpLimits(requests_per_s, burst=burst or max(1, int(requests_per_s)), in_flight_max=IN_FLIGHT_MAX)

    def client(may_write: Callable[[], bool] | None) -> HttpClient:
        chance = entropy.fork("client")
        return HttpClient(connection, clock, chance, limits=limits, component=component, may_write=may_write)

    if lease is None:
        async with client(may_write=None) as unfenced:
            health.requests.add(connection.server, unfenced.request_statistics)
            await work(unfenced)
        return
    async with HttpClient(connection, clock, entropy.fork("election"), component="leader-election") as electing:
        health.requests.add(connection.server, electing.request_statistics)
        settings = lease.settings(f"{socket.gethostname()}_{entropy.uuid()}")
        elector = LeaderElector(electing, settings, clock=clock, entropy=entropy.fork("leader election"))
        health.elector = elector

        async def lead() -> None:
            await work(fenced)

        async with client(may_write=lambda: elector.is_leading) as fenced:
            health.requests.add(connection.server, fenced.request_statistics)
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
