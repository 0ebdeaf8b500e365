"""What runs beside the API server: the scheduler, the controllers, the nodes.

Comes in   what was asked for, and the api_server
Goes out   nothing: they run until they are cancelled

 1. Each has a way in of its own, with its own name: what it writes is told apart.
 2. Where a second process was asked for, the scheduler and the controllers have it, and pipes lead there. The nodes
    stay: the API server asks them for the logs of their pods.
"""

from __future__ import annotations

from mooring.apiserver.server import ApiServer
from mooring.cluster.beside import run_beside
from mooring.cluster.settings import PROCESS, ClusterSettings
from mooring.cluster.stores import PODS_FOLDER
from mooring.cluster.ways_in import component_client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.settings import KubeletSettings

ZONES = ("zone-a", "zone-b", "zone-c")
"""Where simulated nodes stand, in turn."""
NAMES = {"scheduler": "kube-scheduler", "controllers": "kube-controller-manager"}
"""What the parts are called in Kubernetes."""


async def run_components(settings: ClusterSettings, api_server: ApiServer, clock: Clock, entropy: Entropy) -> None:
    """Run everything that was not left out."""
    clients = {part: component_client(api_server, name) for part, name in NAMES.items() if settings.runs(part)}
    async with TaskGroup("components") as group:
        if clients and settings.processes > 1:
            group.start(run_beside(settings.parts, clients, clock, entropy), name="beside")
        else:
            from mooring.cluster.parts import PARTS  # brings in what is not needed where they run elsewhere

            for part, client in clients.items():
                group.start(PARTS[part](settings.parts, client, clock, entropy), name=part)
        if settings.runs("nodes"):
            kubelets = _kubelets(settings, api_server, clock, entropy)
            api_server.logs = kubelets
            group.start(kubelets.run(), name="nodes")


def _kubelets(settings: ClusterSettings, api_server: ApiServer, clock: Clock, entropy: Entropy) -> Kubelets:
    client = component_client(api_server, "kubelet")
    if settings.runtime != PROCESS:
        simulated = KubeletSettings(
            count=settings.nodes, zones=ZONES, lease_s=settings.node_lease_s, stages=settings.stages
        )
        return Kubelets(client, clock, entropy.fork("nodes"), simulated)
    from mooring.cluster.nodes import process_kubelets  # brings in what simulated nodes have no use for

    directory = settings.data_directory / PODS_FOLDER if settings.data_directory is not None else None
    return process_kubelets(client, clock, entropy.fork("nodes"), directory, settings.nodes)
