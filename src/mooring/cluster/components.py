"""The components of a cluster that run with its API server: scheduler, controllers, nodes.

1. Each component has a client of its own, under the name that it has in Kubernetes.
2. With a worker process, the scheduler and the controllers run there. The nodes stay in this process, because the API
   server reads the logs of their pods.
"""

from __future__ import annotations

import asyncio

from mooring.apiserver.server import ApiServer
from mooring.cluster.component_client import component_client
from mooring.cluster.objects import wait_nodes
from mooring.cluster.settings import COMPONENT_NAMES, PODS_FOLDER, PROCESS, ClusterSettings
from mooring.cluster.worker import WorkerAccess, run_worker
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Kubelets


async def run_components(
    settings: ClusterSettings,
    api_server: ApiServer,
    clock: Clock,
    entropy: Entropy,
    worker: WorkerAccess | None,
    nodes_ready: asyncio.Event,
) -> None:
    """Run all enabled components until cancelled. With `worker`, the control plane runs in the worker process.

    Sets `nodes_ready` when the nodes of the settings are.
    """
    if settings.runs("scheduler"):
        from mooring.cluster.console_pods import manifest_pods_page, pods_by_status

        client = component_client(api_server, "console")
        page = manifest_pods_page(client, api_server.context.worker, pods_by_status(client))
        api_server.component_pages["/console/data/pods"] = page
    async with TaskGroup("components") as group:
        if worker is not None:
            run = run_worker(settings.control_plane, worker, clock, entropy, api_server.component_pages)
            group.start(run, name="worker process")
        else:
            from mooring.cluster.control_plane import CONTROL_PLANE  # numpy and half of the package

            for component in settings.control_plane_components():
                client = component_client(api_server, COMPONENT_NAMES[component])
                run = CONTROL_PLANE[component](
                    settings.control_plane, client, clock, entropy, api_server.component_pages
                )
                group.start(run, name=component)
        if settings.runs("nodes"):
            kubelets = _kubelets(settings, api_server, clock, entropy)
            api_server.logs = kubelets
            group.start(kubelets.run(), name="nodes")
            await wait_nodes(api_server, kubelets.node_names, untainted=settings.removes_node_taints())
        nodes_ready.set()


def _kubelets(settings: ClusterSettings, api_server: ApiServer, clock: Clock, entropy: Entropy) -> Kubelets:
    client, kubelet_settings = component_client(api_server, "kubelet"), settings.kubelet_settings()
    if settings.runtime != PROCESS:
        return Kubelets(client, clock, entropy.fork("nodes"), kubelet_settings)
    from mooring.cluster.nodes import ProcessNodes, process_kubelets  # hollow nodes do not need it

    nodes = ProcessNodes(
        settings.nodes,
        settings.data_directory / PODS_FOLDER if settings.data_directory is not None else None,
        port=0,
        pod_users=settings.pod_users,
        api_server_url=settings.server_url,
    )
    return process_kubelets(client, clock, entropy.fork("nodes"), nodes, kubelet_settings)
