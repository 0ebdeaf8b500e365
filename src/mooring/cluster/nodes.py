"""Nodes whose containers are processes of this machine.

Input: a client, a directory for the pods, the number of nodes. Output: the kubelets of these nodes; for a cluster
elsewhere, with a port on which its API server reads logs.

The module is imported on demand: hollow nodes do not need it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.cluster.secure_port import SecurePort, open_secure_port
from mooring.cluster.standalone import ComponentHealth, NodeMetrics
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kubelet.container_logs import PATH, container_logs_page
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.processes.runtime import ProcessRuntime, ProcessSettings
from mooring.kubelet.settings import KubeletSettings, host_facts, host_settings
from mooring.serving.authorization import of_node
from mooring.serving.pages import PageRequest, PageResponse, not_found
from mooring.serving.tls import ServingTls

EVERYWHERE = "0.0.0.0"
"""As a kubelet: an API server looks for it by its name first, and that may be any of its addresses."""


@dataclass(frozen=True, slots=True)
class ProcessNodes:
    """Settings of the nodes."""

    count: int
    directory: Path | None
    """The directory of the pods; None: a temporary one."""
    port: int
    """The port on which the API server reads logs."""
    host: str = EVERYWHERE
    """The address of that port."""
    pod_users: str = ""
    """As `ProcessSettings.pod_users`."""
    api_server_url: str = ""
    """Where pods reach the API server."""


async def run_process_nodes(
    client: Client,
    connection: Connection,
    clock: Clock,
    entropy: Entropy,
    nodes: ProcessNodes,
    health: ComponentHealth,
) -> None:
    """Be nodes of another cluster until cancelled. Raises `PortTakenError`, `DirectoryTakenError`.

    The port also serves the pages of `health`.
    """
    host = host_facts()
    port = SecurePort(
        host=nodes.host,
        port=nodes.port,
        tls=ServingTls(host.name, hosts=(host.name, host.address)),
        authentication=connection,
        authorization=connection,
        attributes=of_node(host.name),
    )
    started: list[Kubelets] = []

    async def logs(page_request: PageRequest) -> PageResponse:
        # What the node says of its port has to be known before the kubelets start.
        return await container_logs_page(page_request, client, started[0]) if started else not_found()

    async with open_secure_port(port, {**health.pages(), PATH: logs}, clock, entropy.fork("port")) as number:
        settings = replace(host_settings(host, nodes.count), port=number, records_normal_events=True)
        started.append(process_kubelets(client, clock, entropy, nodes, settings))
        health.metrics.register(NodeMetrics(started[0]))
        await started[0].run()


def process_kubelets(
    client: Client, clock: Clock, entropy: Entropy, nodes: ProcessNodes, settings: KubeletSettings
) -> Kubelets:
    assert settings.host is not None, "real nodes are a machine"
    runtime = ProcessSettings(nodes.directory, settings.host, nodes.pod_users, nodes.api_server_url)
    return Kubelets(client, clock, entropy, settings, lambda needs: ProcessRuntime(runtime, needs))
