"""The API server without HTTP: its parts, and the decoding of request bodies.

Input: a store and the configuration. Output: `ApiServer`, which the handlers and the loopback client call.

1. `http.handler` serves it to the network, `loopback` to components in the same process.
2. `assembly` builds it once. Only `resources` changes afterwards, with the CustomResourceDefinitions.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from functools import partial

from mooring.api.document import Document
from mooring.api.kinds import SERVICE_ACCOUNT, Kind
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.access.authentication import Authenticator
from mooring.apiserver.access.authorization import Attributes, Authorizer
from mooring.apiserver.access.node_authorizer import NodeGraph
from mooring.apiserver.access.service_account_tokens import Lookup as Peek
from mooring.apiserver.access.service_account_tokens import ServiceAccountTokens, requested_token
from mooring.apiserver.admission.interface import Attempt, Lookup
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.update import write_first_managed_fields
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.discovery import PLAN, VIRTUAL_KINDS, Discovery
from mooring.apiserver.errors import not_found
from mooring.apiserver.openapi.documents import OpenApi
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.patches import ReadDocument
from mooring.apiserver.registry.pod_log import Logs, RemoteLogs
from mooring.apiserver.registry.reading import ObjectReader
from mooring.apiserver.registry.spec_cache import SpecCache, split_body
from mooring.apiserver.registry.update import ReadBody
from mooring.apiserver.resources import DecodedDocument, Resource, ResourceTable
from mooring.apiserver.storage.storage import Storage
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.wire.decode import (
    NOTHING_KNOWN,
    DecodedBody,
    canonical_object,
    decode_body,
    patched_strategically,
)
from mooring.apiserver.wire.examine import apply_field_validation
from mooring.apiserver.wire.identity import TypeMeta
from mooring.apiserver.wire.media import BodyForm, body_form
from mooring.client.errors import BadRequestError
from mooring.client.interface import PatchForm
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.serving.console import ConsoleSessions
from mooring.serving.endpoints import Check
from mooring.serving.pages import PageRequest, PageResponse, masked
from mooring.serving.server import Page
from mooring.serving.users import User
from mooring.store.interface import Store

PLAN_PAGE = "/plan"
"""The page of the scheduler that answers plans."""
_EVICTION_VERSIONS = ("policy/v1beta1",)


@dataclass(slots=True)
class ApiServer:
    """The parts of an API server."""

    store: Store
    storage: Storage
    clock: Clock
    entropy: Entropy
    resources: ResourceTable
    context: RegistryContext
    reader: ObjectReader
    lookup: Lookup
    authenticator: Authenticator
    authorizer: Authorizer
    node_graph: NodeGraph
    account_tokens: ServiceAccountTokens
    peek: Peek
    """An object by plural, namespace and name, from the memory of this process, without waiting."""
    kubelets: RemoteLogs
    ready_checks: dict[str, Check] = field(default_factory=dict)
    """The checks of `/readyz` besides `ping`."""
    discovery: Discovery = field(init=False)
    openapi: OpenApi = field(init=False)
    console_sessions: ConsoleSessions = field(init=False)

    def __post_init__(self) -> None:
        self.console_sessions = ConsoleSessions(self.clock)
        self.discovery = Discovery(self.resources, self._virtual_kinds)
        self.openapi = OpenApi(self.resources, self.discovery)

    component_pages: dict[str, Page] = field(default_factory=dict)
    """Pages of the components of this cluster by path, for clients that may request the path. The text of /metrics is
    appended to the server's own."""

    logs: Logs | None = None
    """The source of container logs of nodes of this process; None if there are no such nodes."""

    def _virtual_kinds(self) -> tuple[Kind, ...]:
        return (*VIRTUAL_KINDS, PLAN) if PLAN_PAGE in self.component_pages else VIRTUAL_KINDS

    async def component_page(self, page: Page, requested: PageRequest, user: User) -> PageResponse:
        """The response of a component, with the names masked that the user may not read."""
        may_read = partial(self.may_list_pods, user)
        answer = page(replace(requested, may_read=may_read))
        response = await answer if inspect.isawaitable(answer) else answer
        return await masked(requested, response, may_read, self.clock)

    async def may_list_pods(self, user: User, namespace: str) -> bool:
        attributes = Attributes(user, "list", namespace, api_version="v1", resource="pods")
        return self.authorizer.authorize(attributes).is_allowed

    # ------------------------------------------------------------------------------------------------- bodies

    def body_reader(self, resource: Resource, call: Call, data: bytes, content_type: str) -> ReadBody:
        """A body as a canonical, defaulted document; a fresh one each time. Raises `StatusError`."""

        def read() -> Document:
            if resource.read_body is not None:
                return resource.read_body(data, content_type, call)
            strategy = resource.strategies.get(call.subresource, resource.strategy)
            if strategy.specs is not None and body_form(content_type) is BodyForm.JSON:
                return self._read_with_cache(resource, strategy, strategy.specs, call, data, content_type)
            decoded = self._decode(resource, call, data, content_type)
            apply_field_validation(decoded.strict_errors, call)
            strategy.default(decoded.document)
            return decoded.document

        return read

    def _read_with_cache(
        self, resource: Resource, strategy: Strategy, specs: SpecCache, call: Call, data: bytes, content_type: str
    ) -> Document:
        """The same with the spec cache. The rest of a body with a known spec is decoded without the spec."""
        body, validation = split_body(data), call.field_validation
        spec = specs.defaulted_spec(body.spec, validation) if body is not None else None
        if body is not None and spec is not None:
            try:
                decoded = self._decode(resource, call, body.rest, content_type)
            except BadRequestError:
                pass  # decoding the whole body raises the error with the message for the whole body
            else:
                apply_field_validation(decoded.strict_errors, call)
                decoded.document["spec"] = spec
                strategy.default_rest(decoded.document)
                return decoded.document
        decoded = self._decode(resource, call, data, content_type)
        apply_field_validation(decoded.strict_errors, call)
        strategy.default_spec(decoded.document["spec"])
        if body is not None and not decoded.strict_errors:
            specs.put_defaulted(body.spec, validation, decoded.document["spec"])
        strategy.default_rest(decoded.document)
        return decoded.document

    def _decode(self, resource: Resource, call: Call, data: bytes, content_type: str) -> DecodedBody:
        assert resource.struct is not None, f"{resource.kind} has neither a schema nor a reader"
        return decode_body(data, content_type, resource.kind, resource.struct, call.field_validation)

    def document_reader(self, resource: Resource, form: PatchForm) -> ReadDocument:
        """How the result of a patch is read."""
        if resource.read_document is not None:
            read_custom = resource.read_document
            return lambda plain, _: read_custom(plain)
        struct, kind, shares_parts = resource.struct, resource.kind, resource.strategy.shares_parts
        assert struct is not None, f"{kind} has neither a schema nor a reader"
        is_read_from_maps = form in (PatchForm.STRATEGIC, PatchForm.APPLY)
        read_by_kind = patched_strategically if is_read_from_maps else canonical_object

        def read(plain: Document, old: Document | None) -> DecodedDocument:
            known = _shared(old) if old is not None and shares_parts else NOTHING_KNOWN
            decoded = read_by_kind(struct, plain, kind, known)
            return DecodedDocument(decoded.document, tuple(decoded.strict_errors))

        return read

    async def read_other(self, call: Call, data: bytes, content_type: str, api_version: str, kind: str) -> Document:
        """A body of a kind that is not stored: Binding, Eviction, TokenRequest, a review."""
        struct = struct_of_kind(api_version, kind)
        assert struct is not None, f"{kind} has no schema"
        also = _EVICTION_VERSIONS if kind == "Eviction" else ()
        named, validation = TypeMeta(api_version, kind), call.field_validation
        decoded = await self.context.worker.run(
            len(data), decode_body, data, content_type, named, struct, validation, also
        )
        apply_field_validation(decoded.strict_errors, call)
        return decoded.document

    def other_document_reader(self, api_version: str, kind: str) -> ReadDocument:
        """How a patched document of such a kind is read."""
        struct = struct_of_kind(api_version, kind)
        assert struct is not None, f"{kind} has no schema"
        named = TypeMeta(api_version, kind)

        def read(plain: Document, _: Document | None) -> DecodedDocument:
            decoded = canonical_object(struct, plain, named)
            return DecodedDocument(decoded.document, tuple(decoded.strict_errors))

        return read


def _shared(old: Document) -> Document:
    """The parts of an object that a patched object may share with it. Metadata is changed in place and is copied."""
    return {**old, "metadata": dict(old["metadata"])}


async def issue_token(api_server: ApiServer, call: Call, request: Document) -> Document:
    """Admit a TokenRequest and answer it with a token of an existing service account. Raises `StatusError`s."""
    await api_server.context.admission.admit(Attempt(Operation.CREATE, call, request, None, body_kind="TokenRequest"))
    account = await api_server.lookup.get(SERVICE_ACCOUNT, call.namespace, call.name)
    if account is None:
        raise not_found(SERVICE_ACCOUNT, call.name)
    issued = requested_token(request, account, api_server.account_tokens, api_server.peek, api_server.clock)
    _stamp_token_request(issued, request, call)
    return issued


def _stamp_token_request(answer: Document, request: Document, call: Call) -> None:
    """The requester manages the fields of its request, with the default lifetime."""
    requested = {"expirationSeconds": answer["spec"]["expirationSeconds"]}
    requested |= {name: value for name, value in (request.get("spec") or {}).items() if value}
    stamped: Document = {**answer, "metadata": {}, "spec": requested}
    del stamped["status"]
    writer = manager_id(call.field_manager, UPDATE, answer["apiVersion"], call.subresource)
    write_first_managed_fields(stamped, writer, call.now)
    answer["metadata"]["managedFields"] = stamped["metadata"]["managedFields"]
