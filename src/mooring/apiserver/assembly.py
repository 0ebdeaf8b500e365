"""Assembles an API server from a store and settings.

Input: a store, a clock, entropy, keys, tokens. Output: an `ApiServer` that answers requests, and its followers.

The order is: bootstrap the store, start the followers with its contents, then answer.

1. A follower knows all objects of a kind: roles and bindings, CustomResourceDefinitions, services, objects of nodes.
   `deliver_objects` delivers the objects first, then every change in the order of the store.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric import ec

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.access.admin_access import AdminAccessCheck
from mooring.apiserver.access.authentication import Authenticator, FixedTokens
from mooring.apiserver.access.authorization import AuthorizerChain
from mooring.apiserver.access.default_roles import node_rules
from mooring.apiserver.access.escalation import EscalationCheck
from mooring.apiserver.access.node_authorizer import GRAPH_KINDS, NodeAuthorizer, NodeGraph
from mooring.apiserver.access.rbac import RoleAuthorizer, read_role_or_binding
from mooring.apiserver.access.service_account_tokens import ServiceAccountTokens, TokenSigner
from mooring.apiserver.admission.interface import AdmissionChain
from mooring.apiserver.admission.table import admission_plugins
from mooring.apiserver.bootstrap import bootstrap
from mooring.apiserver.call import Call
from mooring.apiserver.custom.definition_controller import CustomKinds, DefinitionController
from mooring.apiserver.event_expiry import EventExpiry
from mooring.apiserver.kinds.service.allocation import ServiceAllocator
from mooring.apiserver.registry.context import NOTHING_RESERVED, RegistryContext, Reservation
from mooring.apiserver.registry.object_storage import ObjectStorage, ServerStatusWriter, StoreLookup, document_of
from mooring.apiserver.registry.pod_log import KubeletLogs
from mooring.apiserver.registry.reading import ObjectReader
from mooring.apiserver.resources import Resource, ResourceTable, built_in_resources
from mooring.apiserver.server import ApiServer
from mooring.apiserver.storage.storage import Storage
from mooring.apiserver.worker import WorkerThread
from mooring.client.http.dial import unverified_tls
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.serving.users import User
from mooring.store.interface import EMPTY_REVISION, RevisionGone, Store, WriteConflict


class ChangeHandler(Protocol):
    """Receives the objects of a kind. `put` may return what must be awaited before the next object."""

    def put(self, kind: Kind, document: Document) -> Awaitable[None] | None: ...

    def remove(self, kind: Kind, document: Document) -> None: ...


async def deliver_objects(
    store: Store, kinds: tuple[Kind, ...], handler: ChangeHandler, group: TaskGroup, worker: WorkerThread
) -> None:
    """Deliver all objects of these kinds to a follower, then changes in the background."""
    for kind in kinds:
        delivered: dict[str, Document] = {}
        revision = await _deliver_state(store, kind, handler, delivered, worker)
        changes = _deliver_changes(store, kind, handler, delivered, revision, worker)
        group.start_background(changes, name=f"follow {kind.plural}")


async def _deliver_state(
    store: Store, kind: Kind, handler: ChangeHandler, delivered: dict[str, Document], worker: WorkerThread
) -> int:
    """Deliver the difference between the store and `delivered`, and update `delivered`. Returns the revision."""
    page = await store.list(kind.key_prefix)
    found: dict[str, Document] = {}
    for record in page.records:
        document = await worker.run(len(record.value), document_of, kind, record.value, record.revision)
        found[record.key] = document
        if (taken := handler.put(kind, document)) is not None:
            await taken
    for key, document in delivered.items():
        if key not in found:
            handler.remove(kind, document)
    delivered.clear()
    delivered.update(found)
    return page.revision


async def _deliver_changes(
    store: Store,
    kind: Kind,
    handler: ChangeHandler,
    delivered: dict[str, Document],
    revision: int,
    worker: WorkerThread,
) -> None:
    since = revision
    while True:
        try:
            async with store.watch(kind.key_prefix, since=since) as watch:
                while True:
                    for change in await watch.next_batch():
                        since = change.revision
                        if change.value is None:
                            gone = delivered.pop(change.key, None)
                            if gone is not None:
                                handler.remove(kind, gone)
                            continue
                        document = await worker.run(len(change.value), document_of, kind, change.value, change.revision)
                        delivered[change.key] = document
                        if (taken := handler.put(kind, document)) is not None:
                            await taken
        except RevisionGone:
            since = await _deliver_state(store, kind, handler, delivered, worker)


RULE_BYTES = 50
"""The least size of a rule or a subject."""

_ROLES = (kinds.CLUSTER_ROLE, kinds.ROLE, kinds.CLUSTER_ROLE_BINDING, kinds.ROLE_BINDING)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server."""

    token_key: ec.EllipticCurvePrivateKey
    """Signs the tokens of service accounts."""
    fixed_tokens: Mapping[str, User] = field(default_factory=dict)
    is_anonymous_allowed: bool = False
    bookmark_s: float = 60.0
    make_kubelet_tls: Callable[[], ssl.SSLContext] = unverified_tls
    """The connection to kubelets of other processes, for logs."""
    disabled_admission_plugins: frozenset[str] = frozenset()
    """As kube-apiserver's `--disable-admission-plugins`."""
    event_ttl_s: float = 0.0
    """As kube-apiserver's `--event-ttl`; 0: events are never deleted."""


@asynccontextmanager
async def open_api_server(store: Store, clock: Clock, entropy: Entropy, settings: Settings) -> AsyncIterator[ApiServer]:
    """An API server that runs while the block runs. Raises `UnknownPluginError`."""
    worker = WorkerThread()
    object_storage, lookup = ObjectStorage(store, worker), StoreLookup(store)
    is_new = await store.revision() == EMPTY_REVISION
    await bootstrap(object_storage, clock, entropy.fork("bootstrap"))
    if is_new:
        # No client has seen the revisions before this one: a client that names one has seen another cluster.
        await store.compact(await store.revision())
    roles = RoleAuthorizer()
    resources = ResourceTable(built_in_resources())
    peek = partial(_find_token_reference, store)
    tokens = ServiceAccountTokens(TokenSigner(settings.token_key), clock, entropy.fork("tokens"), peek)
    authenticator = Authenticator(
        clock,
        FixedTokens(settings.fixed_tokens),
        tokens,
        is_anonymous_allowed=settings.is_anonymous_allowed,
    )
    node_graph = NodeGraph()
    authorizer = AuthorizerChain(NodeAuthorizer(node_rules(), node_graph.is_related), roles)
    services = _Services(ServiceAllocator(await lookup.list(kinds.SERVICE), entropy.fork("services")), object_storage)
    status_writer = ServerStatusWriter(object_storage, resources)
    disabled = settings.disabled_admission_plugins
    plugins = admission_plugins(status_writer, authorizer, clock, entropy.fork("admission"), disabled)
    guards = (EscalationCheck(roles, authorizer), AdminAccessCheck(authorizer))
    context = RegistryContext(
        object_storage=object_storage,
        resources=resources,
        lookup=lookup,
        admission=AdmissionChain([*plugins.mutating, *guards], plugins.validating, lookup),
        entropy=entropy.fork("registry"),
        reserve=services.reserve,
        released=services.released,
        worker=worker,
    )
    storage = Storage(store, worker, bookmark_s=settings.bookmark_s)
    api_server = ApiServer(
        store=store,
        clock=clock,
        entropy=entropy,
        resources=resources,
        context=context,
        storage=storage,
        reader=ObjectReader(storage),
        lookup=lookup,
        authenticator=authenticator,
        authorizer=authorizer,
        node_graph=node_graph,
        account_tokens=tokens,
        peek=peek,
        kubelets=(kubelets := KubeletLogs(settings.make_kubelet_tls)),
    )
    async with worker, kubelets, TaskGroup("apiserver") as group:
        await deliver_objects(store, _ROLES, _RoleHandler(roles, worker), group, worker)
        establisher = DefinitionController(context, api_server.reader, status_writer, clock)
        await deliver_objects(store, (kinds.CUSTOM_RESOURCE_DEFINITION,), CustomKinds(resources, worker), group, worker)
        await deliver_objects(store, (kinds.CUSTOM_RESOURCE_DEFINITION,), establisher, group, worker)
        group.start_background(establisher.run(), name="establish custom kinds")
        if settings.event_ttl_s:
            expiry = EventExpiry(store, clock, settings.event_ttl_s)
            group.start_background(expiry.run(), name="delete expired events")
        node_graph.fill_with(_GraphFiller(store, node_graph, group, worker).wait)
        yield api_server


class _GraphFiller:
    """Follows the objects of the node graph from the first request for it on."""

    def __init__(self, store: Store, graph: NodeGraph, group: TaskGroup, worker: WorkerThread) -> None:
        self._worker = worker
        self._store = store
        self._graph = graph
        self._group = group
        self._missing = list(GRAPH_KINDS)
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        if not self._missing:
            return
        async with self._lock:
            while self._missing:  # the next attempt continues with the kind that could not be listed
                await deliver_objects(self._store, (self._missing[0],), self._graph, self._group, self._worker)
                del self._missing[0]


class _RoleHandler:
    def __init__(self, roles: RoleAuthorizer, worker: WorkerThread) -> None:
        self._roles = roles
        self._worker = worker

    async def put(self, kind: Kind, document: Document) -> None:
        metadata = document["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        size_bytes = RULE_BYTES * (len(document.get("rules") or ()) + len(document.get("subjects") or ()))
        read = await self._worker.run(size_bytes, read_role_or_binding, kind.plural, namespace, name, document)
        self._roles.put_read(namespace, name, read)

    def remove(self, kind: Kind, document: Document) -> None:
        metadata = document["metadata"]
        self._roles.remove(kind.plural, metadata.get("namespace", ""), metadata["name"])


_TOKEN_REFERENCE_KINDS = {kind.plural: kind for kind in (kinds.SERVICE_ACCOUNT, kinds.POD, kinds.SECRET, kinds.NODE)}


def _find_token_reference(store: Store, resource: str, namespace: str, name: str) -> Document | None:
    """Looks up an object for tokens, which cannot wait."""
    kind = _TOKEN_REFERENCE_KINDS[resource]
    record = store.peek(kind.key(namespace, name))
    return None if record is None else document_of(kind, record.value, record.revision)


class _Services:
    """Allocates addresses and ports of Services, and deletes their Endpoints with them. Other kinds are ignored."""

    def __init__(self, allocator: ServiceAllocator, object_storage: ObjectStorage) -> None:
        self._allocator = allocator
        self._object_storage = object_storage

    async def reserve(self, resource: Resource, call: Call, obj: Document, old: Document | None) -> Reservation:
        if resource.kind is not kinds.SERVICE or call.subresource:
            return NOTHING_RESERVED
        return self._allocator.reserve(obj, old, is_dry_run=call.is_dry_run)

    async def released(self, resource: Resource, obj: Document) -> None:
        if resource.kind is not kinds.SERVICE:
            return
        self._allocator.release(obj)
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        endpoints = await self._object_storage.find(kinds.ENDPOINTS, namespace, name)
        if endpoints is not None:
            with suppress(WriteConflict):
                await self._object_storage.delete(kinds.ENDPOINTS, namespace, name, if_revision=endpoints.revision)
