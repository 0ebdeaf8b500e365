"""Resources that are not stored: reviews, and bindings.

Input: a POST to such a resource. Output: its reply.

1. A review has managedFields, as every created object.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.schema.tables import struct_of_kind
from mooring.apiserver.access import reviews
from mooring.apiserver.access.users import NODES_GROUP, User
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.struct_shape import struct_shape
from mooring.apiserver.apply.update import stamp
from mooring.apiserver.call import Call
from mooring.apiserver.discovery import REVIEWS
from mooring.apiserver.http.address import Address
from mooring.apiserver.http.objects import with_write_options
from mooring.apiserver.http.reply import Reply, json_reply, success_status, with_warnings
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.registry.binding import BINDING, bind
from mooring.apiserver.registry.errors import method_not_allowed
from mooring.apiserver.server import ApiServer
from mooring.kit.clock import format_rfc3339

Answer = Callable[[Address, Incoming, User], Awaitable[Reply]]

_BY_ADDRESS = {(kind.api_version, kind.plural): kind for kind in REVIEWS}


class VirtualResources:
    """Answers for what is never stored."""

    def __init__(self, api_server: ApiServer) -> None:
        self._api_server = api_server

    def answering(self, address: Address) -> Answer | None:
        """Who answers at an address; None if something is stored there."""
        if address.name:
            return None
        if (address.api_version, address.resource) == ("v1", "bindings"):
            return self._bind
        return self._review if (address.api_version, address.resource) in _BY_ADDRESS else None

    async def _bind(self, address: Address, incoming: Incoming, user: User) -> Reply:
        if incoming.method != "POST" or not address.namespace:
            raise method_not_allowed()
        call = self._call(BINDING, address, incoming, user)
        body = await self._api_server.read_other(call, await incoming.body(), incoming.content_type, "v1", "Binding")
        await bind(self._api_server.parts, call, body)
        return with_warnings(json_reply(201, success_status(201)), call.warnings)

    async def _review(self, address: Address, incoming: Incoming, user: User) -> Reply:
        kind = _BY_ADDRESS[address.api_version, address.resource]
        if incoming.method != "POST" or kind.is_namespaced != bool(address.namespace):
            raise method_not_allowed()
        call = self._call(kind, address, incoming, user)
        data = await incoming.body()
        review = await self._api_server.read_other(call, data, incoming.content_type, kind.api_version, kind.kind)
        await self._api_server.parts.worker.run(len(data), _stamp, kind, review, call)
        if NODES_GROUP in (review.get("spec") or {}).get("groups", ()) or NODES_GROUP in user.groups:
            await self._api_server.node_graph.wait_filled()
        return with_warnings(json_reply(201, self._reviewed(kind, review, address, user)), call.warnings)

    def _reviewed(self, kind: Kind, review: Document, address: Address, user: User) -> Document:
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
                return reviews.local_subject_access_review(review, address.namespace, authorizer)

    def _call(self, kind: Kind, address: Address, incoming: Incoming, user: User) -> Call:
        now_s = self._api_server.clock.wall_s()
        call = Call("create", kind, user, now_s, format_rfc3339(int(now_s)), address.namespace)
        return with_write_options(call, incoming, "CreateOptions")


def _stamp(kind: Kind, review: Document, call: Call) -> None:
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None, f"{kind} has no schema"
    writer = manager_id(call.field_manager, UPDATE, kind.api_version, "")
    stamp(struct_shape(struct, kind.api_version, kind.kind), None, review, writer, call.now, ())
