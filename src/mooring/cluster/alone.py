"""A part of Mooring alone, against an API server somewhere else: the controllers, or simulated nodes.

Comes in   a connection, what to run, time and chance
Goes out   its work in that cluster, for as long as it leads

 1. Of several that are started, one works: it holds a Lease. Whoever loses it writes nothing more from that moment on.
 2. The lease is renewed over a client of its own, so that no rate limit holds it up.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

from mooring.client.fence import FencedClient
from mooring.client.http import HttpClient, HttpLimits
from mooring.client.http_connection import Connection
from mooring.client.leader_election import ElectionSettings, LeaderElector
from mooring.client.promise import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy

LEASE_NAMESPACE = "kube-system"
IN_FLIGHT_MAX = 200

Work = Callable[[Client], Awaitable[None]]


async def run_alone(
    connection: Connection,
    component: str,
    work: Work,
    clock: Clock,
    entropy: Entropy,
    *,
    lease: str = "",
    requests_per_s: float = 0.0,
) -> None:
    """Work while we lead; at once, if no lease is named. Raises `LeadershipLostError`, among others."""
    limits = HttpLimits(requests_per_s=requests_per_s, burst=max(1, int(requests_per_s)), in_flight_max=IN_FLIGHT_MAX)
    async with HttpClient(connection, clock, entropy.fork("client"), limits=limits, component=component) as client:
        if not lease:
            await work(client)
            return
        async with HttpClient(connection, clock, entropy.fork("election"), component="leader-election") as electing:
            identity = f"{socket.gethostname()}_{entropy.uuid()}"
            settings = ElectionSettings(LEASE_NAMESPACE, lease, identity)
            elector = LeaderElector(electing, settings, clock=clock, entropy=entropy.fork("leader election"))

            async def lead() -> None:
                await work(FencedClient(client, lambda: elector.is_leading))

            await elector.run(lead)
