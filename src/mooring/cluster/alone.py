"""A part of Mooring alone, against an API server somewhere else: the controllers, or simulated nodes.

Comes in   a connection, what to run, time and chance
Goes out   its work in that cluster, for as long as it leads

 1. Of several that are started, one works: it holds a Lease. A process that lost the lease sends no write any more.
 2. The lease is renewed over a client of its own, so that no rate limit holds it up.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mooring.client.election.elector import ElectionSettings, LeaderElector
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy

IN_FLIGHT_MAX = 200

Work = Callable[[Client], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """Which lease to hold while working, and its times. The defaults are Kubernetes'."""

    name: str
    namespace: str = "kube-system"
    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def settings(self, identity: str) -> ElectionSettings:
        """As the elector wants them. Raises `ElectionSettingsError` if the times contradict each other."""
        return ElectionSettings(self.namespace, self.name, identity, self.lease_s, self.renew_deadline_s, self.retry_s)


async def run_alone(
    connection: Connection,
    component: str,
    work: Work,
    clock: Clock,
    entropy: Entropy,
    *,
    lease: LeaseTerms | None = None,
    requests_per_s: float = 0.0,
    burst: int = 0,
) -> None:
    """Work while we lead; at once, if there is no lease to hold. Raises `LeadershipLostError`, among others."""
    limits = HttpLimits(requests_per_s, burst=burst or max(1, int(requests_per_s)), in_flight_max=IN_FLIGHT_MAX)

    def client(may_write: Callable[[], bool] | None) -> HttpClient:
        chance = entropy.fork("client")
        return HttpClient(connection, clock, chance, limits=limits, component=component, may_write=may_write)

    if lease is None:
        async with client(may_write=None) as unfenced:
            await work(unfenced)
        return
    async with HttpClient(connection, clock, entropy.fork("election"), component="leader-election") as electing:
        settings = lease.settings(f"{socket.gethostname()}_{entropy.uuid()}")
        elector = LeaderElector(electing, settings, clock=clock, entropy=entropy.fork("leader election"))

        async def lead() -> None:
            await work(fenced)

        async with client(may_write=lambda: elector.is_leading) as fenced:
            await elector.run(lead)
