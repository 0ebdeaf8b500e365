"""Nodes whose containers are processes of this machine.

Input: a client, a directory for the pods, the number of nodes. Output: the kubelets of these nodes; for a cluster
elsewhere, with a port on which its API server reads logs.

The module is imported on demand: simulated nodes do not need it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.cluster.secure_port import SecurePort, open_secure_port
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kubelet.container_logs import PATH, log_page
from mooring.kubelet.kubelets import Fleet
from mooring.kubelet.processes.runtime import ProcessRuntime, ProcessSettings
from mooring.kubelet.settings import FleetSettings, host_facts, host_settings
from mooring.serving.authorization import of_node
from mooring.serving.pages import Answer, Question, not_found
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


def process_fleet(client: Client, clock: Clock, entropy: Entropy, directory: Path | None, count: int) -> Fleet:
    return _fleet(client, clock, entropy, directory, host_settings(host_facts(), count))


async def run_process_nodes(
    client: Client, connection: Connection, clock: Clock, entropy: Entropy, wanted: ProcessNodes
) -> None:
    """Be nodes of another cluster until cancelled. Raises `PortTakenError`, `DirectoryTakenError`."""
    host = host_facts()
    port = SecurePort(
        host=EVERYWHERE,
        port=wanted.port,
        tls=ServingTls(host.name, hosts=(host.name, host.address)),
        authentication=connection,
        authorization=connection,
        attributes=of_node(host.name),
    )
    fleets: list[Fleet] = []

    async def logs(question: Question) -> Answer:
        # What the node says of its port has to be known before there is a fleet.
        return await log_page(question, client, fleets[0]) if fleets else not_found()

    async with open_secure_port(port, {PATH: logs}, clock, entropy.fork("port")) as number:
        settings = replace(host_settings(host, wanted.count), port=number)
        fleets.append(_fleet(client, clock, entropy, wanted.directory, settings))
        await fleets[0].run()


def _fleet(client: Client, clock: Clock, entropy: Entropy, directory: Path | None, settings: FleetSettings) -> Fleet:
    assert settings.host is not None, "real nodes are a machine"
    runtime = ProcessSettings(directory, settings.host)
    return Fleet(client, clock, entropy, settings, lambda needs: ProcessRuntime(runtime, needs))
