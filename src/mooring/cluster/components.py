"""What runs beside the API server: the scheduler, the controllers, the nodes.

Comes in   what was asked for, and the desk
Goes out   nothing: they run until they are cancelled

 1. Each has a way in of its own, with its own name: what it writes is told apart.
"""

from __future__ import annotations

from mooring.apiserver.desk import Desk
from mooring.cluster.settings import PROCESS, ClusterSettings
from mooring.cluster.stores import PODS_FOLDER
from mooring.cluster.ways_in import inside_client
from mooring.controllers.manager import ControllerManager
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.fleet import Fleet
from mooring.kubelet.settings import FleetSettings
from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.scheduler import Scheduler

ZONES = ("zone-a", "zone-b", "zone-c")
"""Where simulated nodes stand, in turn."""


async def run_components(settings: ClusterSettings, desk: Desk, clock: Clock, entropy: Entropy) -> None:
    """Run everything that was not left out."""
    async with TaskGroup("components") as group:
        if settings.runs("scheduler"):
            scheduler = Scheduler(
                inside_client(desk, clock, entropy.fork("scheduler client"), "kube-scheduler"),
                load_configuration(settings.scheduler_configuration),
                clock=clock,
                entropy=entropy.fork("scheduler"),
            )
            group.start(scheduler.run(), name="scheduler")
        if settings.runs("controllers"):
            manager = ControllerManager(
                inside_client(desk, clock, entropy.fork("controllers client"), "kube-controller-manager"),
                clock,
                entropy.fork("controllers"),
                settings.controllers,
                settings.enabled_controllers,
            )
            group.start(manager.run(), name="controllers")
        if settings.runs("nodes"):
            client = inside_client(desk, clock, entropy.fork("nodes client"), "kubelet")
            if settings.runtime == PROCESS:
                from mooring.cluster.nodes import process_fleet  # brings in what simulated nodes have no use for

                directory = settings.data_directory / PODS_FOLDER if settings.data_directory is not None else None
                fleet = process_fleet(client, clock, entropy.fork("nodes"), directory, settings.nodes)
            else:
                simulated = FleetSettings(count=settings.nodes, zones=ZONES, lease_s=settings.node_lease_s)
                fleet = Fleet(client, clock, entropy.fork("nodes"), simulated)
            desk.logs = fleet
            group.start(fleet.run(), name="nodes")
