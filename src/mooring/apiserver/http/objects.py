"""Verbs on objects and their subresources: from a request to a reply.

Input: an authenticated and authorized request. Output: a `Reply`; `watches` serves watches.

1. `wire` decodes bodies by their kind; the registry gets documents.
2. Stored bytes are sent as they are, unless the client asks for a table, for metadata or for YAML.
3. `exec`, `attach`, `portforward` and `proxy` need a connection to a container or node, which this server does not
   make: they are rejected with a message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.schema.types import struct_named, struct_of_kind
from mooring.apiserver.apply.update import SCALE_VERSION
from mooring.apiserver.call import Call
from mooring.apiserver.errors import no_such_thing, not_found
from mooring.apiserver.http.rendering import TEXT, Rendering, Reply, created_status
from mooring.apiserver.http.request import EXACT, IncomingRequest, Query, RequestInfo, check_list_options
from mooring.apiserver.kinds.scale import SCALE_TABLE
from mooring.apiserver.registry import create as creating
from mooring.apiserver.registry import delete as deleting
from mooring.apiserver.registry import patches, scale
from mooring.apiserver.registry.binding import bind
from mooring.apiserver.registry.delete import checked_delete_options
from mooring.apiserver.registry.eviction import evict
from mooring.apiserver.registry.pod_log import kubelet_address, open_log
from mooring.apiserver.registry.update import Changed, put
from mooring.apiserver.resources import Resource
from mooring.apiserver.server import ApiServer, issue_token
from mooring.apiserver.storage.stored_form import decoded
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.wire.decode import decode_options, read_patch
from mooring.client.errors import BadRequestError, NotFoundError, StatusError
from mooring.client.interface import Listing, PatchForm, Selection

DELETIONS_AT_ONCE = 100
"""Objects of a collection that are deleted before other requests get a turn."""

_PATCH_FORMS = {form.value: form for form in PatchForm}
_SCALE = Kind(SCALE_VERSION, "Scale", "scales")
_SCALES = Resource(_SCALE, Strategy(_SCALE), struct_of_kind(SCALE_VERSION, "Scale"), table=SCALE_TABLE)
"""Scales are never stored, but they are printed."""


class ObjectRequests:
    """Serves the verbs on objects."""

    def __init__(self, api_server: ApiServer) -> None:
        self._api_server = api_server
        self._worker = api_server.context.worker

    # ---------------------------------------------------------------------------------------------- reading

    async def get(self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        incoming.query.check_export()
        revision = incoming.query.text("resourceVersion")
        raw = await self._api_server.reader.get(resource, call.namespace, call.name, revision)
        if call.subresource == "scale":
            assert resource.scale is not None, f"{resource.kind} has no scale"
            shown = resource.scale.shown or resource.scale.scale_of
            return rendering.written(200, _SCALES, shown(resource.kind, cast(Document, decoded(raw))))
        return await self._worker.run(len(raw), rendering.stored, 200, resource, raw)

    async def list(self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        return await self._listed(resource, rendering, await self._listing(resource, call, incoming.query))

    async def _listed(self, resource: Resource, rendering: Rendering, listing: Listing) -> Reply:
        size_bytes = sum(map(len, listing.items))
        return await self._worker.run(size_bytes, rendering.listing, resource, listing)

    async def _listing(self, resource: Resource, call: Call, query: Query) -> Listing:
        options = query.list_options()
        check_list_options(options)
        return await self._api_server.reader.list(
            resource,
            Selection(call.namespace, options.labels, options.fields),
            limit=options.limit,
            continue_token=options.continue_token,
            revision=options.revision,
            is_exact=options.match == EXACT if options.match else None,
        )

    # ---------------------------------------------------------------------------------------------- writing

    async def create(self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "CreateOptions")
        data = await incoming.body()
        call.size_bytes = len(data)
        read = self._api_server.body_reader(resource, call, data, incoming.content_type)
        obj = await self._api_server.context.run(resource.strategy, call, read)
        if not resource.kind.is_namespaced and not call.name:
            call = replace(call, name=obj["metadata"].get("name", ""))
        created = await creating.create(self._api_server.context, resource, call, obj)
        return await self._written(rendering, resource, call, 201, created.document, created.answer)

    async def _written(
        self, rendering: Rendering, resource: Resource, call: Call, code: int, document: Document, answer: bytes | None
    ) -> Reply:
        if answer is not None and rendering.is_plain:
            return rendering.stored(code, resource, answer)
        return await self._worker.run(call.size_bytes, rendering.written, code, resource, document)

    async def update(self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "UpdateOptions")
        if call.subresource == "scale":
            return await self._update_scale(resource, call, incoming, rendering)
        data = await incoming.body()
        call.size_bytes = len(data)
        read = self._api_server.body_reader(resource, call, data, incoming.content_type)
        return await self._changed(rendering, resource, call, await put(self._api_server.context, resource, call, read))

    async def _changed(self, rendering: Rendering, resource: Resource, call: Call, changed: Changed) -> Reply:
        code = 201 if changed.is_created else 200
        return await self._written(rendering, resource, call, code, changed.document, changed.answer)

    async def _update_scale(
        self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering
    ) -> Reply:
        data = await incoming.body()
        sent = await self._api_server.read_other(call, data, incoming.content_type, SCALE_VERSION, "Scale")
        return rendering.written(200, _SCALES, await scale.put_scale(self._api_server.context, resource, call, sent))

    async def patch(self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        form = _PATCH_FORMS.get(incoming.content_type)
        if form is None or (form is PatchForm.STRATEGIC and resource.struct is None):
            raise _unsupported_patch(resource)
        call = with_write_options(call, incoming, "PatchOptions", is_apply=form is PatchForm.APPLY)
        try:
            data = await incoming.body()
            call.size_bytes = len(data)
            requested_patch = await self._worker.run(len(data), read_patch, data, form, call)
        except BadRequestError:
            if form is not PatchForm.APPLY:  # a missing object is reported before errors of the patch
                await self._api_server.reader.get(resource, call.namespace, call.name, "")
            raise
        if call.subresource == "scale":
            read_scale = self._api_server.other_document_reader(SCALE_VERSION, "Scale")
            scaled = await scale.patch_scale(self._api_server.context, resource, call, requested_patch, read_scale)
            return rendering.written(200, _SCALES, scaled)
        read = self._api_server.document_reader(resource, form)
        changed = await patches.patch(self._api_server.context, resource, call, requested_patch, read)
        return await self._changed(rendering, resource, call, changed)

    # ---------------------------------------------------------------------------------------------- deleting

    async def delete(self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        options, is_dry_run = await self._delete_options(incoming)
        call = replace(call, is_dry_run=is_dry_run)
        deleted = await deleting.delete(self._api_server.context, resource, call, options)
        is_accepted = not deleted.is_gone and options.orphans is False
        code = 202 if is_accepted else 200
        if deleted.document.get("kind") == "Status":
            return rendering.document(code, deleted.document)
        return rendering.written(code, resource, deleted.document)

    async def delete_collection(
        self, resource: Resource, call: Call, incoming: IncomingRequest, rendering: Rendering
    ) -> Reply:
        options, is_dry_run = await self._delete_options(incoming)
        call = replace(call, is_dry_run=is_dry_run)
        listing = await self._listing(resource, call, incoming.query)
        for index, raw in enumerate(listing.items):
            if index % DELETIONS_AT_ONCE == 0:
                await self._api_server.clock.wait(0)  # a store in memory never waits
            metadata = cast(Document, decoded(raw))["metadata"]
            deletion = replace(call, name=metadata["name"], namespace=metadata.get("namespace", ""))
            try:
                await deleting.delete(self._api_server.context, resource, deletion, options)
            except NotFoundError:
                continue
        return await self._listed(resource, rendering, listing)

    async def _delete_options(self, incoming: IncomingRequest) -> tuple[deleting.DeleteOptions, bool]:
        data = await incoming.body()
        if data:
            struct = struct_named("meta", "DeleteOptions")
            document = await self._worker.run(len(data), decode_options, data, incoming.content_type, struct)
        else:
            document = incoming.query.delete_options()
        return checked_delete_options(document)


def with_write_options(call: Call, incoming: IncomingRequest, options_kind: str, *, is_apply: bool = False) -> Call:
    """The call with its parameters. It is changed in place, because nothing else refers to it yet."""
    options = incoming.query.write_options(options_kind, is_apply=is_apply)
    call.is_dry_run = options.is_dry_run
    call.field_manager = options.field_manager or incoming.manager
    call.field_validation = options.field_validation
    call.is_forced = options.is_forced
    return call


def _unsupported_patch(resource: Resource) -> StatusError:
    if resource.struct is None:
        accepted = ", ".join(form.value for form in (PatchForm.JSON, PatchForm.MERGE, PatchForm.APPLY))
        return StatusError(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}",
            code=415,
            reason="UnsupportedMediaType",
        )
    return StatusError("415: Unsupported Media Type", code=415, reason="UnsupportedMediaType", details={})


class SubresourceRequests:
    """Serves `binding`, `eviction`, `log` and `token`."""

    def __init__(self, api_server: ApiServer) -> None:
        self._api_server = api_server

    async def answer(
        self, resource: Resource, call: Call, info: RequestInfo, incoming: IncomingRequest, rendering: Rendering
    ) -> Reply:
        kind, subresource = resource.kind, info.subresource
        if kind is kinds.POD and subresource == "binding":
            return await self._bind(call, incoming, rendering)
        if kind is kinds.POD and subresource == "eviction":
            return await self._evict(call, incoming, rendering)
        if kind is kinds.POD and subresource == "log":
            return await self._log(call, incoming)
        if kind is kinds.SERVICE_ACCOUNT and subresource == "token":
            return await self._token(call, incoming, rendering)
        found = await self._api_server.lookup.get(kind, call.namespace, call.name)
        if found is None:
            raise not_found(kind, call.name)
        if kind is kinds.NODE and subresource == "proxy":
            self._check_kubelet(found)
        raise _unreachable(subresource)

    def _check_kubelet(self, node: Document) -> None:
        """Raises `BadRequestError` for a node without a kubelet that accepts connections."""
        host, _ = kubelet_address(node)
        logs = self._api_server.logs
        if logs is not None and logs.has_node(node["metadata"]["name"]):
            raise BadRequestError(f"lookup {host}: no such host")

    async def _bind(self, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "CreateOptions")
        body = await self._api_server.read_other(call, await incoming.body(), incoming.content_type, "v1", "Binding")
        await bind(self._api_server.context, call, body)
        return rendering.document(201, created_status())

    async def _evict(self, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "CreateOptions")
        data = await incoming.body()
        body = await self._api_server.read_other(call, data, incoming.content_type, "policy/v1", "Eviction")
        await evict(self._api_server.context, call, body)
        return rendering.document(201, created_status())

    async def _log(self, call: Call, incoming: IncomingRequest) -> Reply:
        options = incoming.query.log_options()
        lines = await open_log(self._api_server.lookup, call, options, self._api_server.logs, self._api_server.kubelets)
        if lines is None:
            return Reply(204, b"", TEXT)
        return Reply(200, b"", TEXT, stream=lines)

    async def _token(self, call: Call, incoming: IncomingRequest, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "CreateOptions")
        data = await incoming.body()
        body = await self._api_server.read_other(
            call, data, incoming.content_type, "authentication.k8s.io/v1", "TokenRequest"
        )
        return rendering.document(201, await issue_token(self._api_server, call, body))


def _unreachable(subresource: str) -> StatusError:
    if subresource in ("exec", "attach", "portforward", "proxy"):
        return StatusError(
            f"{subresource} is not served: this server cannot connect to containers and nodes",
            code=501,
            reason="NotImplemented",
        )
    return no_such_thing()
