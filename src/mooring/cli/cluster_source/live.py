"""Reads a cluster from its API server: every kind that scheduling looks at, as views.

1. Only lists are requested, in pages that are decoded straight into views. Nothing is written.
2. Nodes are listed first and alone: a server that cannot be reached fails once, with one error.
3. A kind that the user may not list (403) is not supplied, see `coverage`; without nodes or pods there is no answer. A
   kind that the server does not have (404) is supplied and empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import force_setattr

from mooring.api.decode import decode_as
from mooring.api.errors import DecodeError
from mooring.api.kinds import NODE, kind_of_view
from mooring.api.views.devices import ResourceClaimTemplate
from mooring.api.views.meta import ApiObject, ObjectWithRaw
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import PriorityClass
from mooring.cli.cluster_source.cluster_input import Supplied
from mooring.cli.errors import InputError, input_error
from mooring.cli.terminal import ProgressBar
from mooring.client.errors import ClientError, ExpiredError, ForbiddenError, NotFoundError
from mooring.client.http.client import PAGE_SIZE, HttpClient, HttpLimits, collection_path
from mooring.client.http.connection import Connection
from mooring.client.http.dial import TlsError
from mooring.client.http.list_watch import HttpItems
from mooring.client.interface import Listing
from mooring.client.kubeconfig.entries import KubeconfigError
from mooring.client.kubeconfig.load import default_files, is_in_cluster, load_connection, searched_files
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.kit.tasks import errors_in, run_bounded
from mooring.scheduler.event_handlers import WATCHED

LISTS_AT_ONCE = 4
_NODES_PATH = collection_path(NODE, "")
REQUEST_S_MAX = 30.0

KINDS_READ: tuple[type[ApiObject], ...] = (Node, Pod, *WATCHED, PriorityClass, ResourceClaimTemplate)
"""Every kind that `mooring explain` reads, nodes first."""


@dataclass(slots=True)
class LiveCluster:
    """What an API server holds."""

    server: str
    namespace: str
    """The namespace of the kubeconfig's context."""
    objects: list[ApiObject] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)

    @property
    def supplied(self) -> Supplied:
        return Supplied(frozenset(self.kinds), frozenset(self.denied))


def connect(
    kubeconfig: str,
    context: str,
    clock: Clock,
    environment: Mapping[str, str] | None = None,
    *,
    file_option: str = "",
) -> Connection:
    """The API server of a kubeconfig: the named file, else those of $KUBECONFIG, else ~/.kube/config, else that of the
    pod that this runs in. Raises `InputError`, which advises `file_option`, the option of the command that takes a
    dump."""
    variables = os.environ if environment is None else environment
    if not kubeconfig:
        files = default_files(variables)
        if not any(Path(file).exists() for file in files) and not is_in_cluster(variables):
            raise _no_kubeconfig(variables, file_option)
    try:
        return load_connection(clock, kubeconfig=kubeconfig, context=context, environment=variables)
    except (KubeconfigError, TlsError) as error:
        raise input_error(str(error)) from None


def _no_kubeconfig(variables: Mapping[str, str], file_option: str) -> InputError:
    advice = "name one with --kubeconfig" + (f", or a dump with {file_option} FILE" if file_option else "")
    return input_error(f"found no kubeconfig ({searched_files(variables)}); {advice}")


def read_cluster(
    connection: Connection, clock: Clock, entropy: Entropy, *, workloads: Iterable[type[ApiObject]] = ()
) -> LiveCluster:
    """Everything that scheduling reads, and these kinds of workloads. Raises `InputError`."""
    cluster = LiveCluster(connection.server, connection.namespace)
    whole = frozenset(workloads)
    try:
        with ProgressBar(f"reading {connection.server}", 0, clock) as progress:
            run_real(_ClusterReader(cluster, connection, clock, entropy, progress, whole).read())
    except (ClientError, DecodeError, TlsError) as error:
        raise _failed(cluster, error) from None
    except ExceptionGroup as group:  # one of several lists
        first = next(errors_in(group))
        if not isinstance(first, ClientError | DecodeError):
            raise
        raise _failed(cluster, first) from None
    return cluster


def _failed(cluster: LiveCluster, error: Exception) -> InputError:
    text = str(error).removeprefix(f"GET {cluster.server}{_NODES_PATH}: ")
    return input_error(f"cannot read the cluster at {cluster.server}: {text}")


class _ClusterReader:
    """Lists one kind after the other into a `LiveCluster`."""

    def __init__(
        self,
        cluster: LiveCluster,
        connection: Connection,
        clock: Clock,
        entropy: Entropy,
        progress: ProgressBar,
        whole: frozenset[type[ApiObject]],
    ) -> None:
        limits = HttpLimits(in_flight_max=LISTS_AT_ONCE, request_s_max=REQUEST_S_MAX)
        self._client = HttpClient(connection, clock, entropy, limits=limits, component="explain")
        self._cluster = cluster
        self._meter = progress
        self._whole = whole | {ResourceClaimTemplate}
        """Kinds whose views keep the bytes of the object: pods and claims are made from them."""

    async def read(self) -> None:
        first, *others = dict.fromkeys((*KINDS_READ, *self._whole))
        async with self._client:
            await self._read_kind(first)
            await run_bounded(self._read_kind, others, limit=LISTS_AT_ONCE, name="lists")

    async def _read_kind(self, kind: type[ApiObject]) -> None:
        try:
            views = await self._list(kind)
        except ForbiddenError:
            if kind in (Node, Pod):
                raise
            self._cluster.denied.add(kind.kind)
            return
        except NotFoundError:
            if kind in (Node, Pod):
                raise
            views = []
        self._cluster.kinds.add(kind.kind)
        self._cluster.objects += views

    async def _list(self, kind: type[ApiObject]) -> list[ApiObject]:
        row = kind_of_view(kind)
        page = await self._client.list(row, limit=PAGE_SIZE)
        views = self._decoded(kind, page)
        self._meter.expect(len(views) + (page.remaining or 0))
        self._meter.advance(len(views))
        try:
            while page.continue_token:
                page = await self._client.list(row, limit=PAGE_SIZE, continue_token=page.continue_token)
                more = self._decoded(kind, page)
                views += more
                self._meter.advance(len(more))
        except ExpiredError:  # the list took longer than the server keeps its history
            return self._decoded(kind, await self._client.list(row))
        return views

    def _decoded(self, kind: type[ApiObject], page: Listing) -> list[ApiObject]:
        views: list[ApiObject] = []
        parts = page.items.parts(kind) if isinstance(page.items, HttpItems) else iter([page.items])
        for part in parts:
            for item in part:
                view = decode_as(kind, item) if isinstance(item, bytes) else item
                if isinstance(view, ObjectWithRaw) and kind not in self._whole:
                    force_setattr(view, "raw", b"")  # the bytes are several times as large as the view
                views.append(view)
        return views
