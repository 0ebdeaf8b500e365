"""Assembles an API server from a store and settings.

Input: a store, a clock, entropy, keys, tokens. Output: a `Desk` that answers requests, with its followers running.

The order is: bootstrap the store, start the followers with its contents, then answer.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ec

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.access.authentication import Authenticator
from mooring.apiserver.access.authorization import AuthorizerChain
from mooring.apiserver.access.default_roles import node_rules
from mooring.apiserver.access.device_guard import DeviceGuard
from mooring.apiserver.access.guard import RoleGuard
from mooring.apiserver.access.node_rules import NodeAuthorizer, everything_is_related
from mooring.apiserver.access.rbac import RoleAuthorizer
from mooring.apiserver.access.service_account_tokens import ServiceAccountTokens
from mooring.apiserver.access.signed_tokens import TokenSigner
from mooring.apiserver.access.token_file import FixedTokens
from mooring.apiserver.access.users import User
from mooring.apiserver.admission.chain import Chain
from mooring.apiserver.admission.table import admission_plugins
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.apply.struct_shape import struct_shape
from mooring.apiserver.bootstrap import bootstrap
from mooring.apiserver.call import Call
from mooring.apiserver.custom.establishing import Establisher
from mooring.apiserver.custom.kinds import CustomKinds
from mooring.apiserver.desk import Desk
from mooring.apiserver.event_expiry import EventExpiry
from mooring.apiserver.followers import follow
from mooring.apiserver.kinds.service.allocation import ServiceAllocator
from mooring.apiserver.kubelets.logs import KubeletLogs
from mooring.apiserver.registry.lookup import StoreLookup
from mooring.apiserver.registry.own_status import OwnStatus
from mooring.apiserver.registry.parts import NOTHING_RESERVED, Parts, Reservation
from mooring.apiserver.registry.reading import Reader
from mooring.apiserver.registry.shelf import Shelf, document_of
from mooring.apiserver.resources import Resource, ResourceTable, built_in_resources
from mooring.apiserver.storage.storage import Storage
from mooring.client.http.tls import unverified_tls
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.store.interface import EMPTY_REVISION, Store, WriteConflict

_ROLES = (kinds.CLUSTER_ROLE, kinds.ROLE, kinds.CLUSTER_ROLE_BINDING, kinds.ROLE_BINDING)


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be chosen about a server."""

    token_key: ec.EllipticCurvePrivateKey
    """Signs the tokens of service accounts."""
    fixed_tokens: Mapping[str, User] = field(default_factory=dict)
    is_anonymous_allowed: bool = False
    bookmark_s: float = 60.0
    make_kubelet_tls: Callable[[], ssl.SSLContext] = unverified_tls
    """How kubelets elsewhere are asked for logs, and with which certificate."""
    disabled_admission_plugins: frozenset[str] = frozenset()
    """As kube-apiserver's `--disable-admission-plugins`."""
    event_ttl_s: float = 0.0
    """As kube-apiserver's `--event-ttl`; 0: events are never deleted."""


@asynccontextmanager
async def open_desk(store: Store, clock: Clock, entropy: Entropy, settings: Settings) -> AsyncIterator[Desk]:
    """A desk that answers while the block lasts. Raises `UnknownPluginError`."""
    shelf, lookup = Shelf(store), StoreLookup(store)
    is_new = await store.revision() == EMPTY_REVISION
    await bootstrap(shelf, clock, entropy.fork("bootstrap"))
    if is_new:
        # Nobody can have seen the revisions before this one, and a client that claims to has seen another cluster.
        await store.compact(await store.revision())
    roles = RoleAuthorizer()
    resources = ResourceTable(built_in_resources())
    tokens = ServiceAccountTokens(TokenSigner(settings.token_key), clock, entropy.fork("tokens"), _Peek(store).find)
    authenticator = Authenticator(
        clock,
        FixedTokens(settings.fixed_tokens),
        tokens,
        is_anonymous_allowed=settings.is_anonymous_allowed,
    )
    authorizer = AuthorizerChain(NodeAuthorizer(node_rules(), everything_is_related), roles)
    services = _Services(ServiceAllocator(await lookup.list(kinds.SERVICE), entropy.fork("services")), shelf)
    shapes = Shapes()
    ledger = OwnStatus(shelf, resources, shapes.of)
    plugins = admission_plugins(ledger, clock, entropy.fork("admission"), settings.disabled_admission_plugins)
    guards = (RoleGuard(roles, authorizer), DeviceGuard(authorizer))
    parts = Parts(
        shelf=shelf,
        resources=resources,
        lookup=lookup,
        admission=Chain([*plugins.mutating, *guards], plugins.validating, lookup),
        entropy=entropy.fork("registry"),
        shape_of=shapes.of,
        reserve=services.reserve,
        released=services.released,
    )
    storage = Storage(store, bookmark_s=settings.bookmark_s)
    desk = Desk(
        store=store,
        clock=clock,
        entropy=entropy,
        resources=resources,
        parts=parts,
        storage=storage,
        reader=Reader(storage),
        lookup=lookup,
        authenticator=authenticator,
        authorizer=authorizer,
        account_tokens=tokens,
        peek=_Peek(store).find,
        kubelets=(kubelets := KubeletLogs(settings.make_kubelet_tls)),
    )
    async with kubelets, TaskGroup("apiserver") as group:
        await follow(store, _ROLES, _RoleFollower(roles), group)
        establisher = Establisher(parts, desk.reader, ledger, clock)
        await follow(store, (kinds.CUSTOM_RESOURCE_DEFINITION,), CustomKinds(resources), group)
        await follow(store, (kinds.CUSTOM_RESOURCE_DEFINITION,), establisher, group)
        group.start_background(establisher.run(), name="establish custom kinds")
        if settings.event_ttl_s:
            expiry = EventExpiry(store, clock, settings.event_ttl_s)
            group.start_background(expiry.run(), name="delete expired events")
        yield desk


class Shapes:
    """How the fields of each kind are merged, made when first asked for."""

    def __init__(self) -> None:
        self._known: dict[Kind, Shape] = {}

    def of(self, resource: Resource) -> Shape:
        if resource.shape is not None:
            return resource.shape
        kind = resource.kind
        found = self._known.get(kind)
        if found is None:
            assert resource.struct is not None, f"{kind} has neither a schema nor a shape"
            found = self._known[kind] = struct_shape(resource.struct, kind.api_version, kind.kind)
        return found


class _RoleFollower:
    def __init__(self, roles: RoleAuthorizer) -> None:
        self._roles = roles

    def put(self, kind: Kind, document: Document) -> None:
        metadata = document["metadata"]
        self._roles.put(kind.plural, metadata.get("namespace", ""), metadata["name"], document)

    def remove(self, kind: Kind, document: Document) -> None:
        metadata = document["metadata"]
        self._roles.remove(kind.plural, metadata.get("namespace", ""), metadata["name"])


_PEEKED = {kind.plural: kind for kind in (kinds.SERVICE_ACCOUNT, kinds.POD, kinds.SECRET, kinds.NODE)}


class _Peek:
    """Looks objects up for tokens, which cannot wait."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, resource: str, namespace: str, name: str) -> Document | None:
        kind = _PEEKED[resource]
        record = self._store.peek(kind.key(namespace, name))
        return None if record is None else document_of(kind, record.value, record.revision)


class _Services:
    """Gives services their addresses and ports, and takes their endpoints away with them; other kinds have neither."""

    def __init__(self, allocator: ServiceAllocator, shelf: Shelf) -> None:
        self._allocator = allocator
        self._shelf = shelf

    async def reserve(self, resource: Resource, call: Call, obj: Document, old: Document | None) -> Reservation:
        if resource.kind is not kinds.SERVICE or call.subresource:
            return NOTHING_RESERVED
        return self._allocator.reserve(obj, old, is_dry_run=call.is_dry_run)

    async def released(self, resource: Resource, obj: Document) -> None:
        if resource.kind is not kinds.SERVICE:
            return
        self._allocator.release(obj)
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        endpoints = await self._shelf.find(kinds.ENDPOINTS, namespace, name)
        if endpoints is not None:
            with suppress(WriteConflict):
                await self._shelf.delete(kinds.ENDPOINTS, namespace, name, if_revision=endpoints.revision)
