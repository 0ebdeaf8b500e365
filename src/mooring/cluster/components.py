"""What runs beside the API server: the scheduler, the controllers, the nodes.

Comes in   what was asked for, and the api_server
Goes out   nothing: they run until they are cancelled

 1. Each has a way in of its own, with its own name: what it writes is told apart.
 2. Where a second process was asked for, the scheduler and the controllers have it, and pipes lead there. The nodes
    stay: the API server asks them for the logs of their pods.
"""

from __future__ import annotations

from mooring.apiserver.server import ApiServer
from mooring.cluster.component_client import component_client
from mooring.cluster.settings import COMPONENT_NAMES, PROCESS, ClusterSettings
from mooring.cluster.stores import PODS_FOLDER
from mooring.cluster.worker import WorkerAccess, run_worker
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Fleet
from mooring.kubelet.settings import FleetSettings

ZONES = ("zone-a", "zone-b", "zone-c")
"""Where simulated nodes stand, in turn."""


async def run_components(
    settings: ClusterSettings, api_server: ApiServer, clock: Clock, entropy: Entropy, worker: WorkerAccess | None = None
) -> None:
    """Run everything that was not left out: in this process, or in the worker process what that one has a token for."""
    async with TaskGroup("components") as group:
        if worker is not None:
            group.start(run_worker(settings.control_plane, worker, clock, entropy), name="worker process")
        else:
            from mooring.cluster.control_plane import (
                CONTROL_PLANE,  # brings in what is not needed where they run elsewhere
            )

            for part in settings.control_plane_components():
                client = component_client(api_server, COMPONENT_NAMES[part])
                group.start(CONTROL_PLANE[part](settings.control_plane, client, clock, entropy), name=part)
        if settings.runs("nodes"):
            fleet = _fleet(settings, api_server, clock, entropy)
            api_server.logs = fleet
            group.start(fleet.run(), name="nodes")


def _fleet(settings: ClusterSettings, api_server: ApiServer, clock: Clock, entropy: Entropy) -> Fleet:
    client = component_client(api_server, "kubelet")
    if settings.runtime != PROCESS:
        simulated = FleetSettings(
            count=settings.nodes, zones=ZONES, lease_s=settings.node_lease_s, lives=settings.lives
        )
        return Fleet(client, clock, entropy.fork("nodes"), simulated)
    from mooring.cluster.nodes import process_fleet  # brings in what simulated nodes have no use for

    directory = settings.data_directory / PODS_FOLDER if settings.data_directory is not None else None
    return process_fleet(client, clock, entropy.fork("nodes"), directory, settings.nodes)
