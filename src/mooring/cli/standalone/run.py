"""Runs `mooring controllers` and `mooring nodes` against a cluster, until Ctrl-C.

The exit code is 1 if the lease is lost or the cluster cannot be reached.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from mooring.cli.errors import InputError, Problem, input_error
from mooring.client.election import ElectionSettings, LeadershipLostError, new_identity
from mooring.client.errors import ClientError
from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.client.kubeconfig.entries import KubeconfigError
from mooring.client.kubeconfig.load import component_connection
from mooring.cluster.secure_port import SecurePort
from mooring.cluster.settings import ROUTINE_EVENTS_NODES_MAX, NodeShapes
from mooring.cluster.standalone import ComponentHealth, NodeMetrics, run_standalone
from mooring.controllers.manager import ControllerManager
from mooring.controllers.settings import KUBERNETES_DEFAULTS, ControllerSettings, SettingError
from mooring.kit.clock import Clock, SystemClock
from mooring.kit.entropy import system_entropy
from mooring.kit.logs import ATTEMPTS, start_logs
from mooring.kit.loop import run_real
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.processes.directories import DirectoryTakenError
from mooring.kubelet.processes.sandboxes import PodUsersError
from mooring.kubelet.settings import node_name_of
from mooring.kubelet.simulated.stage_file import load_stage_sets
from mooring.serving.http.listener import PortTakenError
from mooring.serving.tls import ServingTls, serving_context

EXIT_FAILED = 1

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StandaloneOptions:
    """The options of both commands, named like the parameters of the commands."""

    kubeconfig: str
    master: str
    leader_elect: bool
    leader_elect_resource_name: str
    leader_elect_resource_namespace: str
    leader_elect_lease_duration: float
    leader_elect_renew_deadline: float
    leader_elect_retry_period: float
    kube_api_qps: float
    kube_api_burst: int
    is_verbose: bool
    log_format: str
    bind_address: str
    port: int
    cert_dir: str
    tls_cert_file: str
    tls_private_key_file: str
    authentication_kubeconfig: str
    authorization_kubeconfig: str

    def connection(self, clock: Clock) -> Connection:
        """To the API server. Raises `KubeconfigError`."""
        return component_connection(clock, kubeconfig=self.kubeconfig, master=self.master)

    def secure_port(self, component: str, clock: Clock) -> SecurePort:
        """Raises `KubeconfigError` and `ServingTlsError`."""
        own = self.connection(clock)
        files = self.authentication_kubeconfig, self.authorization_kubeconfig
        authentication, authorization = (
            component_connection(clock, kubeconfig=file) if file else own for file in files
        )
        tls = ServingTls(
            name=component,
            certificate_file=self.tls_cert_file,
            key_file=self.tls_private_key_file,
            directory=self.cert_dir,
        )
        serving_context(tls, clock.wall_s())  # reports errors before anything starts
        return SecurePort(
            host=self.bind_address,
            port=self.port,
            tls=tls,
            authentication=authentication,
            authorization=authorization,
        )

    def lease(self, name: str, identity: str) -> ElectionSettings | None:
        """The lease to hold, with this default name. Raises `ElectionSettingsError`."""
        if not self.leader_elect:
            return None
        return ElectionSettings(
            self.leader_elect_resource_namespace,
            self.leader_elect_resource_name or name,
            identity,
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        )


def standalone_options(flags: Mapping[str, Any], port: int) -> StandaloneOptions:
    """The options that both commands have."""
    names = [field.name for field in fields(StandaloneOptions) if field.name != "port"]
    return StandaloneOptions(port=port, **{name: flags[name] for name in names})


def start_logging(options: StandaloneOptions) -> None:
    """Log to standard error."""
    start_logs(options.log_format, ATTEMPTS if options.is_verbose else logging.WARNING)


def run_controllers(
    options: StandaloneOptions, settings: ControllerSettings, enabled: tuple[str, ...], root_ca_file: str
) -> None:
    """Run the controllers until Ctrl-C. Without a file, the CA certificates of the connection are published."""
    clock, entropy = SystemClock(), system_entropy()
    given_pem = _read_pem(Path(root_ca_file)) if root_ca_file else None
    health = ComponentHealth("kube-controller-manager")

    async def work(client: Client) -> None:
        root_ca_pem = given_pem if given_pem is not None else options.connection(clock).authority.decode("utf-8")
        manager = ControllerManager(
            client, clock, entropy.fork("controllers"), settings, enabled, root_ca_pem=root_ca_pem
        )
        health.ready["informers"] = lambda: "" if manager.is_working else "informers have not synced"
        await manager.run()

    _run(options, "controllers", work, "kube-controller-manager", health, is_served=options.port != 0)


def _read_pem(file: Path) -> str:
    """Raises `InputError`."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise input_error("is not UTF-8 text; certificates in PEM format are wanted", str(file)) from None
    except OSError as error:
        raise input_error(f"cannot be read: {error.strerror or error}", str(file)) from None


def run_nodes(
    options: StandaloneOptions,
    *,
    count: int,
    name_prefix: str,
    shapes: NodeShapes,
    node_lease_s: int,
    routine_events: bool | None,
    stages: Path | None,
) -> None:
    """Run hollow nodes until Ctrl-C."""
    clock, entropy = SystemClock(), system_entropy()
    try:
        settings = shapes.kubelet_settings(
            count,
            name_prefix=name_prefix,
            lease_s=node_lease_s,
            stages=checked_stages(stages) if stages is not None else "",
            records_normal_events=routine_events if routine_events is not None else count < ROUTINE_EVENTS_NODES_MAX,
        )
    except ValueError as error:
        raise InputError([Problem("", str(error))]) from None

    health = ComponentHealth("mooring-nodes")
    if settings.lease_period_s >= KUBERNETES_DEFAULTS.node_monitor_grace_period_s:
        logger.warning(
            "nodes renew their lease every %g s: they become NotReady unless the --node-monitor-grace-period of the "
            "cluster is longer (default: %g s)",
            settings.lease_period_s,
            KUBERNETES_DEFAULTS.node_monitor_grace_period_s,
        )

    async def work(client: Client) -> None:
        kubelets = Kubelets(client, clock, entropy.fork("nodes"), settings)
        health.metrics.register(NodeMetrics(kubelets))
        await kubelets.run()

    # Several processes may add nodes to one cluster, each with its own name prefix.
    _run(options, "nodes", work, f"mooring-nodes-{name_prefix}".rstrip("-."), health, is_served=True)


def checked_stages(file: Path) -> str:
    """The content of a valid stage file. Raises `InputError`."""
    try:
        text = file.read_text(encoding="utf-8")
        load_stage_sets(text, str(file))
    except ValueError as error:
        raise InputError([Problem("", str(error))]) from None
    return text


def run_real_nodes(options: StandaloneOptions, *, count: int, directory: Path | None, pod_users: str) -> None:
    """Run nodes with the process runtime until Ctrl-C."""
    from mooring.cluster.nodes import ProcessNodes, run_process_nodes  # hollow nodes do not need it

    clock, entropy = SystemClock(), system_entropy()
    health = ComponentHealth("mooring-nodes")

    async def work(client: Client) -> None:
        connection = options.connection(clock)
        nodes = ProcessNodes(
            count, directory, options.port, options.bind_address, pod_users=pod_users, api_server_url=connection.server
        )
        await run_process_nodes(client, connection, clock, entropy.fork("nodes"), nodes, health)

    # One lease per machine: the machines have different nodes and do not replace each other.
    # The port opens with the kubelets, which serve the logs of their pods on it.
    lease = f"mooring-nodes-{node_name_of(socket.gethostname())}"
    _run(options, "nodes", work, lease, health, is_served=False)


def _run(
    options: StandaloneOptions,
    component: str,
    work: Callable[[Client], Awaitable[None]],
    lease: str,
    health: ComponentHealth,
    *,
    is_served: bool,
) -> None:
    try:
        election = options.lease(lease, new_identity(system_entropy()))
        port = options.secure_port(health.name, SystemClock()) if is_served else None
        run_real(_until_stopped(options, component, work, election, health, port))
    except (KubeconfigError, SettingError, ValueError) as error:
        raise InputError([Problem("", str(error))]) from None
    except (LeadershipLostError, ClientError, PortTakenError, DirectoryTakenError, PodUsersError) as error:
        click.echo(f"mooring: {error}", err=True)
        raise SystemExit(EXIT_FAILED) from None


async def _until_stopped(
    options: StandaloneOptions,
    component: str,
    work: Callable[[Client], Awaitable[None]],
    lease: ElectionSettings | None,
    health: ComponentHealth,
    port: SecurePort | None,
) -> None:
    clock, entropy = SystemClock(), system_entropy()
    connection = options.connection(clock)
    working = asyncio.current_task()
    assert working is not None
    is_stopping = False

    def on_signal() -> None:
        nonlocal is_stopping
        is_stopping = True
        working.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    click.echo(f"{component} against {connection.server}; Ctrl-C stops them", err=True)
    try:
        await run_standalone(
            connection,
            component,
            work,
            clock,
            entropy,
            lease=lease,
            requests_per_s=options.kube_api_qps,
            burst=options.kube_api_burst,
            health=health,
            port=port,
        )
    except asyncio.CancelledError:
        if not is_stopping:
            raise
    click.echo(f"{component} stopped", err=True)
