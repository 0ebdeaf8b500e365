"""Runs a control plane: store, API server, scheduler, controllers, nodes.

Input: settings, a clock, entropy. Output: a running cluster. Its components stop in order, the last started first.

 1. The cluster is up when the API server answers `/readyz` with 200: the store is read, roles and defaults exist, the
    nodes that the cluster adds are ready.
 2. The scheduler and the other components use a `LoopbackClient`: they write like any client, without the network.
 3. A problem with the environment (a port in use, a directory that is not writable) is a `ClusterError` in one line.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from mooring.api.decode import decode_as
from mooring.api.kinds import NODE, REGISTRY, SERVICE_ACCOUNT
from mooring.api.views.node import Node
from mooring.apiserver.access.certificates import ADMIN, KUBELET_CLIENT
from mooring.apiserver.access.keyring import (
    Keyring,
    KeyringError,
    KubeconfigFileError,
    TokenCredential,
    ephemeral_keyring,
    kubeconfig_document,
    write_kubeconfig,
)
from mooring.apiserver.admission.table import UnknownPluginError
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.bootstrap import NAMESPACES
from mooring.apiserver.http.handler import RequestHandler
from mooring.apiserver.http.server import HttpServer
from mooring.apiserver.server import ApiServer
from mooring.client.errors import AlreadyExistsError, NotFoundError
from mooring.client.http.dial import unverified_tls
from mooring.client.interface import Client
from mooring.cluster.component_client import component_client, component_user
from mooring.cluster.kubernetes_service import API_SERVER, AdvertisedServer, advertised_address, keep_published, publish
from mooring.cluster.settings import (
    ADDED_ANNOTATIONS,
    COMPONENT_NAMES,
    COMPONENTS,
    KEYS_FOLDER,
    PROCESS,
    STORE_FOLDER,
    VOLUMES_FOLDER,
    ClusterSettings,
)
from mooring.cluster.worker import WorkerAccess, new_tokens
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kit.temporary_directory import temporary_directory
from mooring.serving.http.listener import PortTakenError
from mooring.serving.users import User, authenticated
from mooring.store.interface import Store, StoreError
from mooring.store.memory import MemoryStore

SIMULATED_VOLUMES = "/var/lib/mooring/volumes"
"""A path that hollow nodes report and never create."""
ADMINISTRATOR = User(ADMIN.user, groups=ADMIN.groups)
"""The user of the kubeconfig."""
EVERY_ADDRESS = ("", "0.0.0.0", "::")

log = logging.getLogger(__name__)


class ClusterError(Exception):
    """The cluster cannot start; the text says in one line what to do."""


Fill = Callable[[ApiServer], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A cluster that is up."""

    url: str
    kubeconfig: Path | None
    api_server: ApiServer
    handler: RequestHandler
    components: tuple[str, ...]
    nodes_ready: asyncio.Event
    """Set when the nodes that the cluster adds are ready. Until then `/readyz` fails."""
    extra_nodes: tuple[str, ...] = ()
    """Nodes that an earlier start added and this one does not: they have no kubelet, or were deleted."""

    def console_link(self) -> str:
        """A link that logs in the administrator to the console, once."""
        token = self.api_server.console_sessions.new_login(authenticated(ADMINISTRATOR))
        return f"{_reachable(self.url)}/console/login?token={token}"


@asynccontextmanager
async def run_cluster(
    settings: ClusterSettings, clock: Clock, entropy: Entropy, fill: Fill | None = None
) -> AsyncIterator[RunningCluster]:
    """A cluster while the block lasts. `fill` writes into an empty one before its components start.

    Raises `ClusterError`.
    """
    with _cluster_errors(), _keyring(settings, clock) as keys, _local_volumes(settings) as local_volumes:
        async with _open_store(settings.data_directory, settings.store_url, clock) as store:
            if fill is not None:
                await _check_empty(store, settings)
            worker_tokens = new_tokens(settings.control_plane_components()) if settings.processes > 1 else {}
            users = {token: component_user(COMPONENT_NAMES[name]) for name, token in worker_tokens.items()}
            server_settings = Settings(
                keys.token_key(),
                {**settings.tokens(), **users},
                settings.is_anonymous_allowed,
                make_kubelet_tls=lambda: _kubelet_tls(keys),
                disabled_admission_plugins=settings.admission_plugins_off(),
                event_ttl_s=settings.event_ttl_s,
            )
            authority_pem = keys.authority().certificate_pem.decode("ascii")
            control_plane = replace(settings.control_plane, root_ca_pem=authority_pem, local_volumes=local_volumes)
            settings = replace(settings, control_plane=control_plane)
            async with open_api_server(store, clock, entropy.fork("apiserver"), server_settings) as api_server:
                handler = RequestHandler(api_server, settings.limits)
                nodes_ready = asyncio.Event()
                if settings.adds_nodes:
                    api_server.ready_checks["nodes"] = lambda: "" if nodes_ready.is_set() else "nodes are not ready"
                address = advertised_address(settings.host)
                bound = () if settings.host in EVERY_ADDRESS else (settings.host,)
                tls = keys.server_tls([*bound, *((address,) if address else ())])
                if settings.creates_default_accounts() and fill is None:  # a dump has its own
                    await _make_default_accounts(component_client(api_server, API_SERVER))
                async with HttpServer(
                    handler, settings.limits, host=settings.host, port=settings.port, tls=tls
                ) as server:
                    settings = replace(settings, server_url=_reachable(server.url))
                    _write_kubeconfig(settings, keys, server.url)
                    async with TaskGroup("cluster") as group:
                        client = component_client(api_server, API_SERVER)
                        advertised = AdvertisedServer(address, server.port, authority_pem, not settings.store_url)
                        if fill is not None:
                            await publish(client, advertised)
                            await fill(api_server)
                        extra_nodes = await _extra_nodes(client, settings) if fill is None else ()
                        group.start_background(keep_published(client, clock, advertised), name="Service kubernetes")
                        names = [name for name in COMPONENTS if settings.runs(name)]
                        worker = WorkerAccess(handler, settings.limits, worker_tokens) if worker_tokens else None
                        run = _run_components(settings, api_server, clock, entropy, worker, nodes_ready)
                        group.start_background(run, name="components")
                        yield RunningCluster(
                            server.url,
                            settings.kubeconfig,
                            api_server,
                            handler,
                            ("apiserver", *names),
                            nodes_ready,
                            extra_nodes,
                        )


@asynccontextmanager
async def _open_store(directory: Path | None, url: str, clock: Clock) -> AsyncIterator[Store]:
    """An etcd, a file, or memory; open while the block lasts. Raises `StoreError`."""
    if url:
        from mooring.apiserver.storage.foreign_values import read_stored_value
        from mooring.store.etcd.settings import EtcdLimits
        from mooring.store.etcd.store import EtcdStore

        async with await EtcdStore.open(url, clock, EtcdLimits(), read_stored_value) as etcd:
            yield etcd
    elif directory is not None:
        from mooring.store.sqlite.store import SqliteStore

        async with await SqliteStore.open(directory / STORE_FOLDER, clock) as file:
            yield file
    else:
        yield MemoryStore()


async def _check_empty(store: Store, settings: ClusterSettings) -> None:
    if (await store.list(REGISTRY, limit=1)).records:
        place = settings.store_url or settings.data_directory
        raise ClusterError(
            f"{place} already holds a cluster, and a dump can only be cloned into an empty one: "
            "name another place, or use --ephemeral"
        )


async def _make_default_accounts(client: Client) -> None:
    """Create the account `default` of the first namespaces.

    The serviceaccount controller does the same a second later. Until then ServiceAccount would reject every pod.
    """
    for namespace in NAMESPACES:
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        }
        with suppress(AlreadyExistsError):
            await client.create(SERVICE_ACCOUNT, namespace, account)


async def _extra_nodes(client: Client, settings: ClusterSettings) -> tuple[str, ...]:
    """Nodes that an earlier start added. Deletes them, if the settings say so."""
    if not settings.runs("nodes") or not (await client.list(NODE, limit=1)).items:
        return ()
    names = set(settings.kubelet_settings().node_names())
    nodes = [decode_as(Node, raw) for raw in (await client.list(NODE)).items]
    extra = [node.metadata.name for node in nodes if node.metadata.name not in names and _was_added(node)]
    if settings.prunes_nodes:
        for name in extra:
            with suppress(NotFoundError):
                await client.delete(NODE, "", name)
    return tuple(sorted(extra))


def _was_added(node: Node) -> bool:
    return any(node.metadata.annotations.get(name) == value for name, value in ADDED_ANNOTATIONS.items())


async def _run_components(
    settings: ClusterSettings,
    api_server: ApiServer,
    clock: Clock,
    entropy: Entropy,
    worker: WorkerAccess | None,
    nodes_ready: asyncio.Event,
) -> None:
    # The modules import numpy and half of the package: in a thread, while the server already answers.
    here = ("mooring.cluster.control_plane",) if worker is None else ()
    for name in (*here, "mooring.cluster.components"):
        await asyncio.get_running_loop().run_in_executor(None, import_module, name)
    from mooring.cluster.components import run_components

    await run_components(settings, api_server, clock, entropy, worker, nodes_ready)


@contextmanager
def _keyring(settings: ClusterSettings, clock: Clock) -> Iterator[Keyring]:
    if settings.data_directory is None:
        with ephemeral_keyring(clock) as keys:
            yield keys
    else:
        yield Keyring(settings.data_directory / KEYS_FOLDER, clock)


@contextmanager
def _local_volumes(settings: ClusterSettings) -> Iterator[str]:
    """The directory of volumes of the default StorageClass. Simulated nodes create none."""
    if not settings.has_default_storage_class:
        yield ""
    elif settings.data_directory is not None:
        folder = (settings.data_directory / VOLUMES_FOLDER).absolute()
        if settings.runtime == PROCESS:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)  # the directories in it are open to all users of their pod
        yield str(folder)
    elif settings.runtime == PROCESS:
        with temporary_directory("mooring-volumes-") as temporary:
            yield str(temporary)
    else:
        yield SIMULATED_VOLUMES


def _kubelet_tls(keys: Keyring) -> ssl.SSLContext:
    context = unverified_tls()
    keys.show(KUBELET_CLIENT, context)
    return context


def _write_kubeconfig(settings: ClusterSettings, keys: Keyring, url: str) -> None:
    if settings.kubeconfig is None:
        return
    authority = keys.authority().certificate_pem
    # A token that was given identifies the administrator instead of a certificate.
    credential = TokenCredential(settings.token) if settings.token else keys.client(ADMIN)
    document = kubeconfig_document(_reachable(url), authority, "admin", credential)
    write_kubeconfig(settings.kubeconfig, document, may_overwrite=settings.may_overwrite_kubeconfig)


def _reachable(url: str) -> str:
    """A server that listens on every address is reached on loopback from this host."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


@contextmanager
def _cluster_errors() -> Iterator[None]:
    try:
        yield
    except (PortTakenError, KeyringError, KubeconfigFileError, StoreError, UnknownPluginError) as error:
        raise ClusterError(str(error)) from error
