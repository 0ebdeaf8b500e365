"""Resources that are not stored: reviews, bindings, and plans.

Input: a POST to such a resource. Output: its reply.

1. A review has managedFields, as every created object. It has no table: a client that takes nothing else gets 406.
2. A plan is answered by the scheduler's page /plan: `spec` is its request, `status` its result. The pods of a plan are
   defaulted, admitted and validated as if they were created; quotas and existing names do not matter.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import replace

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, Kind
from mooring.api.schema.types import struct_named
from mooring.apiserver.access import reviews
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.update import write_first_managed_fields
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.discovery import PLAN, REVIEWS
from mooring.apiserver.errors import forbidden, invalid_kind, method_not_allowed
from mooring.apiserver.http.objects import with_write_options
from mooring.apiserver.http.rendering import Reply, created_status, json_reply, with_warnings
from mooring.apiserver.http.request import IncomingRequest, RequestInfo
from mooring.apiserver.registry.binding import BINDING, bind
from mooring.apiserver.resources import Resource
from mooring.apiserver.server import PLAN_PAGE, ApiServer
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.wire.canonical import canonical
from mooring.apiserver.wire.media import negotiate
from mooring.client.errors import InvalidError, ServerError, StatusCause, StatusError
from mooring.kit.clock import format_rfc3339
from mooring.serving.pages import PageRequest, PageResponse
from mooring.serving.users import NODES_GROUP, User

ADMITTED_AT_ONCE = 50
"""Pods of a plan that are admitted before other requests get a turn."""

Answer = Callable[[RequestInfo, IncomingRequest, User], Awaitable[Reply]]

_BY_ADDRESS = {(kind.api_version, kind.plural): kind for kind in REVIEWS}


class VirtualResources:
    """Serves the resources that are not stored."""

    def __init__(self, api_server: ApiServer) -> None:
        self._api_server = api_server

    def answering(self, info: RequestInfo) -> Answer | None:
        """The virtual resource at an address; None for a stored resource."""
        if info.name:
            return None
        if (info.api_version, info.resource) == ("v1", "bindings"):
            return self._bind
        if (info.api_version, info.resource) == (PLAN.api_version, PLAN.plural):
            return self._plan if PLAN in self._api_server.discovery.virtual_kinds() else None
        return self._review if (info.api_version, info.resource) in _BY_ADDRESS else None

    async def _bind(self, info: RequestInfo, incoming: IncomingRequest, user: User) -> Reply:
        if incoming.method != "POST" or not info.namespace:
            raise method_not_allowed()
        call = self._call(BINDING, info, incoming, user)
        body = await self._api_server.read_other(call, await incoming.body(), incoming.content_type, "v1", "Binding")
        await bind(self._api_server.context, call, body)
        return with_warnings(json_reply(201, created_status()), call.warnings)

    async def _plan(self, info: RequestInfo, incoming: IncomingRequest, user: User) -> Reply:
        if incoming.method != "POST" or info.namespace:
            raise method_not_allowed()
        call = self._call(PLAN, info, incoming, user)
        data = await incoming.body()
        plan = await self._api_server.read_other(call, data, incoming.content_type, PLAN.api_version, PLAN.kind)
        worker = self._api_server.context.worker
        request = await worker.run(len(data), _plan_request, plan)
        nodes = [node_type["node"] for node_type in request.get("nodeTypes") or () if node_type.get("node")]
        await worker.run(len(data), _default_all, self._resource(NODE).strategy, nodes)
        await self._check_namespaces(request.get("pods") or [], plan, user)
        await self._admit_pods(request.get("pods") or [], call, len(data))
        await worker.run(len(data), _stamp, PLAN, plan, call)
        page = self._api_server.component_pages[PLAN_PAGE]
        requested = PageRequest("POST", PLAN_PAGE, {}, body=await worker.run(len(data), msgspec.json.encode, request))
        with incoming.ends_with_client():
            response = await self._api_server.component_page(page, requested, user)
        if response.code != 200:
            raise _plan_error(plan, response)
        plan["status"] = await worker.run(len(response.body), _plan_status, response.body)
        return with_warnings(json_reply(201, plan), call.warnings)

    async def _check_namespaces(self, pods: list[Document], plan: Document, user: User) -> None:
        """Admission errors would reveal the contents of a namespace: service accounts, limits."""
        for namespace in sorted({(pod.get("metadata") or {}).get("namespace") or "default" for pod in pods}):
            if not await self._api_server.may_list_pods(user, namespace):
                raise forbidden(PLAN, _name_of(plan), f'you cannot list pods in the namespace "{namespace}"')

    async def _admit_pods(self, pods: list[Document], call: Call, size_bytes: int) -> None:
        context, strategy = self._api_server.context, self._resource(POD).strategy
        calls: list[Call] = []
        for pod in pods:
            metadata = pod.setdefault("metadata", {})
            namespace = metadata["namespace"] = metadata.get("namespace") or "default"
            name = metadata.get("name", "")
            calls.append(replace(call, kind=POD, namespace=namespace, name=name, is_dry_run=True, prior_errors=[]))
        await context.worker.run(size_bytes, _default_all, strategy, pods)
        for number, (pod, pod_call) in enumerate(zip(pods, calls, strict=True)):
            if number % ADMITTED_AT_ONCE == 0:
                await self._api_server.clock.wait(0)  # admission plugins need not wait
            await context.admission.admit(Attempt(Operation.CREATE, pod_call, pod, None))
        await context.worker.run(size_bytes, _validate_all, strategy, pods, calls)

    def _resource(self, kind: Kind) -> Resource:
        resource = self._api_server.resources.find(kind.api_version, kind.plural)
        assert resource is not None, f"{kind.plural} are always served"
        return resource

    async def _review(self, info: RequestInfo, incoming: IncomingRequest, user: User) -> Reply:
        kind = _BY_ADDRESS[info.api_version, info.resource]
        if incoming.method != "POST" or kind.is_namespaced != bool(info.namespace):
            raise method_not_allowed()
        negotiate(incoming.header(b"accept"), has_table=False)
        call = self._call(kind, info, incoming, user)
        data = await incoming.body()
        review = await self._api_server.read_other(call, data, incoming.content_type, kind.api_version, kind.kind)
        await self._api_server.context.worker.run(len(data), _stamp, kind, review, call)
        if NODES_GROUP in (review.get("spec") or {}).get("groups", ()) or NODES_GROUP in user.groups:
            await self._api_server.node_graph.wait_filled()
        return with_warnings(json_reply(201, self._reviewed(kind, review, info, user)), call.warnings)

    def _reviewed(self, kind: Kind, review: Document, info: RequestInfo, user: User) -> Document:
        authorizer = self._api_server.authorizer
        match kind.kind:
            case "TokenReview":
                return reviews.token_review(review, self._api_server.authenticator)
            case "SelfSubjectReview":
                return reviews.self_subject_review(user, self._api_server.clock)
            case "SubjectAccessReview":
                return reviews.subject_access_review(review, authorizer)
            case "SelfSubjectAccessReview":
                return reviews.self_subject_access_review(review, user, authorizer)
            case "SelfSubjectRulesReview":
                return reviews.self_subject_rules_review(review, user, authorizer)
            case _:
                return reviews.local_subject_access_review(review, info.namespace, authorizer)

    def _call(self, kind: Kind, info: RequestInfo, incoming: IncomingRequest, user: User) -> Call:
        now_s = self._api_server.clock.wall_s()
        call = Call("create", kind, user, now_s, format_rfc3339(int(now_s)), info.namespace)
        return with_write_options(call, incoming, "CreateOptions")


def _stamp(kind: Kind, review: Document, call: Call) -> None:
    write_first_managed_fields(review, manager_id(call.field_manager, UPDATE, kind.api_version, ""), call.now)


# --- plans --------------------------------------------------------------------------------------------------------


def _plan_request(plan: Document) -> Document:
    """A copy of the spec with pods that may be changed."""
    request: Document = deepcopy(plan.get("spec") or {})
    for pod in request.get("pods") or ():
        pod |= {"apiVersion": POD.api_version, "kind": POD.kind}
    return request


def _plan_status(body: bytes) -> Document:
    """The result without its empty fields, as in other objects."""
    dropped: list[str] = []
    status = canonical(struct_named("mooring", "PlanStatus"), msgspec.json.decode(body), dropped)
    assert not dropped, f"the schema of Plan lacks {dropped}"
    return status


def _default_all(strategy: Strategy, objects: list[Document]) -> None:
    for obj in objects:
        strategy.default(obj)


def _validate_all(strategy: Strategy, pods: list[Document], calls: list[Call]) -> None:
    for pod, call in zip(pods, calls, strict=True):
        strategy.prepare_for_create(pod, call)
        errors = strategy.validate_create(pod, call).errors
        if errors:
            raise invalid_kind(POD, call.name, errors)


def _name_of(plan: Document) -> str:
    name: str = (plan.get("metadata") or {}).get("name") or ""
    return name


def _plan_error(plan: Document, response: PageResponse) -> StatusError:
    text = response.body.decode(errors="replace").strip()
    if response.code == 403:
        return forbidden(PLAN, _name_of(plan), text.removeprefix("forbidden: "))
    if response.code != 422:
        return ServerError(text, code=response.code, reason="ServiceUnavailable" if response.code == 503 else None)
    name = _name_of(plan)
    cause = StatusCause("FieldValueInvalid", text, "spec")
    details = {"name": name, "group": PLAN.group, "kind": PLAN.kind}
    return InvalidError(f'{PLAN.kind}.{PLAN.group} "{name}" is invalid: spec: {text}', causes=[cause], details=details)
