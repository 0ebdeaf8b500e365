"""Runs controllers or nodes against any API server.

Input: a connection, a function that works with a client, a clock, entropy. Output: the function runs while this process
holds its Lease.

1. Of several processes with the same Lease, one works. A process that loses its Lease writes nothing from then on.
2. The Lease is renewed with a separate client, which no rate limit delays.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mooring.client.election.elector import ElectionSettings, LeaderElector
from mooring.client.election.fence import FencedClient
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy

IN_FLIGHT_MAX = 200

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
) -> None:
    """Call `work` as leader, or at once without a lease. Raises `LeadershipLostError`, among others."""
    limits = HttpLimits(requests_per_s, burst=burst or max(1, int(requests_per_s)), in_flight_max=IN_FLIGHT_MAX)
    async with HttpClient(connection, clock, entropy.fork("client"), limits=limits, component=component) as client:
        if lease is None:
            await work(client)
            return
        async with HttpClient(connection, clock, entropy.fork("election"), component="leader-election") as electing:
            settings = lease.settings(f"{socket.gethostname()}_{entropy.uuid()}")
            elector = LeaderElector(electing, settings, clock=clock, entropy=entropy.fork("leader election"))

            async def lead() -> None:
                await work(FencedClient(client, lambda: elector.is_leading))

            await elector.run(lead)
