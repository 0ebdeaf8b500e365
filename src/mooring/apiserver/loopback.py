"""The loopback client: the client interface for components in the process of the API server, without HTTP.

1. Requests are neither authenticated nor authorized. The user's name is stored as the manager of the fields it writes.
2. Reads go to storage. Every write goes through the registry: decode, default, admit, validate, store.
3. Failures of the store are `StatusError`s, as over HTTP: components do not depend on the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import LEASE, POD, SERVICE_ACCOUNT, Kind
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.errors import STORE_ERRORS
from mooring.apiserver.registry import batches, patches
from mooring.apiserver.registry import create as creating
from mooring.apiserver.registry import delete as deleting
from mooring.apiserver.registry.binding import bind
from mooring.apiserver.registry.eviction import evict
from mooring.apiserver.registry.update import Changed, put
from mooring.apiserver.server import ApiServer, issue_token
from mooring.apiserver.storage.stored_form import stored_form, with_revision
from mooring.apiserver.wire.media import JSON
from mooring.client.batch_writes import StatusPatch, Written, named
from mooring.client.errors import ClientError
from mooring.client.interface import EVERYTHING, Deletion, JsonObject, Listing, PatchForm, Selection, Watch
from mooring.kit.clock import format_rfc3339
from mooring.serving.users import User

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


class LoopbackClient:
    """Implements `Client` for one component in the process of the API server."""

    def __init__(self, api_server: ApiServer, user: User, manager: str) -> None:
        self._api_server = api_server
        self._user = user
        self._manager = manager

    # ------------------------------------------------------------------------------------------------ reading

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return await self._api_server.storage.get(kind, namespace, name)

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        return await self._api_server.storage.list(
            kind, selection, limit=limit, continue_token=continue_token, revision=revision
        )

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        return self._api_server.storage.watch(kind, selection, since=since, bookmarks=bookmarks)

    # ------------------------------------------------------------------------------------------------ writing

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        with STORE_ERRORS:
            created = await self._created(self._call("create", kind, namespace), body)
            if not is_answer_wanted:
                return b""
            return _answer(kind, created)

    async def dry_run_create(self, kind: Kind, namespace: str, body: JsonObject) -> Document:
        """The object that `create` would store. Nothing is stored."""
        with STORE_ERRORS:
            call = self._call("create", kind, namespace)
            call.is_dry_run = True
            return (await self._created(call, body)).document

    async def _created(self, call: Call, body: JsonObject) -> creating.Created:
        resource = self._api_server.resources.of_kind(call.kind)
        data = _encode(body)
        call.size_bytes = len(data)
        read = self._api_server.body_reader(resource, call, data, JSON)
        obj = await self._api_server.context.run(resource.strategy, call, read)
        return await creating.create(self._api_server.context, resource, call, obj)

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        with STORE_ERRORS:
            resource = self._api_server.resources.of_kind(kind)
            call = self._call("update", kind, namespace, name, subresource)
            data = _encode(body)
            call.size_bytes = len(data)
            read = self._api_server.body_reader(resource, call, data, JSON)
            changed = await put(self._api_server.context, resource, call, read)
            return _answer(kind, changed)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        with STORE_ERRORS:
            resource = self._api_server.resources.of_kind(kind)
            call = self._call("patch", kind, namespace, name, subresource)
            read = self._api_server.document_reader(resource, form)
            changed = await patches.patch(self._api_server.context, resource, call, patches.Patch(form, patch), read)
            return _answer(kind, changed)

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        with STORE_ERRORS:
            resource = self._api_server.resources.of_kind(kind)
            call = self._call("delete", kind, namespace, name)
            await deleting.delete(self._api_server.context, resource, call, _delete_options(deletion))

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        with STORE_ERRORS:
            call = self._call("create", POD, namespace, name, "binding")
            metadata = {"name": name, "namespace": namespace}
            if uid:
                metadata["uid"] = uid
            target = {"kind": "Node", "name": node_name}
            await bind(self._api_server.context, call, {"metadata": metadata, "target": target})

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Evict a pod. `TooManyRequestsError` if a disruption budget forbids it."""
        with STORE_ERRORS:
            call = self._call("create", POD, namespace, name, "eviction")
            metadata = {"name": name, "namespace": namespace}
            body = {"metadata": metadata, "deleteOptions": {"preconditions": {"uid": uid}}}
            await evict(self._api_server.context, call, body)

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        with STORE_ERRORS:
            call = self._call("create", SERVICE_ACCOUNT, namespace, name, "token")
            return _encode(await issue_token(self._api_server, call, cast(Document, _decode(_encode(request)))))

    # ---------------------------------------------------------------------------------------------- batch writes

    async def create_many(
        self, kind: Kind, namespace: str, template: JsonObject, names: Sequence[str]
    ) -> Sequence[bytes | ClientError]:
        resource, size_bytes = self._api_server.resources.of_kind(kind), len(_encode(template))

        def new_call(namespace: str, name: str) -> Call:
            call = self._call("create", kind, namespace)
            call.size_bytes = size_bytes
            return call

        def read(name: str, call: Call) -> Document:
            return self._api_server.body_reader(resource, call, _encode(named(template, name)), JSON)()

        outcomes = await batches.create_many(self._api_server.context, resource, new_call, namespace, names, read)
        return [_outcome(kind, outcome) for outcome in outcomes]

    async def patch_status_many(
        self, kind: Kind, patches: Sequence[StatusPatch], written: Written
    ) -> Sequence[bytes | ClientError]:
        resource = self._api_server.resources.of_kind(kind)
        new_call = partial(self._call, "patch", kind, subresource="status")
        read = self._api_server.document_reader(resource, PatchForm.STRATEGIC)

        def answer(index: int, changed: Changed) -> bytes:
            answer = _answer(kind, changed)
            written(index, answer)
            return answer

        return await batches.patch_status_many(self._api_server.context, resource, new_call, patches, read, answer)

    async def renew_leases(
        self, namespace: str, names: Sequence[str], renew_time_s: float
    ) -> Sequence[bytes | ClientError]:
        resource = self._api_server.resources.of_kind(LEASE)
        new_call = partial(self._call, "patch", LEASE)
        outcomes = await batches.renew_leases(
            self._api_server.context, resource, new_call, namespace, names, renew_time_s
        )
        return [_outcome(LEASE, outcome) for outcome in outcomes]

    # --------------------------------------------------------------------------------------------------- parts

    def _call(self, verb: str, kind: Kind, namespace: str, name: str = "", subresource: str = "") -> Call:
        now_s = self._api_server.clock.wall_s()
        return Call(
            verb=verb,
            kind=kind,
            user=self._user,
            now_s=now_s,
            now=format_rfc3339(int(now_s)),
            namespace=namespace if kind.is_namespaced else "",
            name=name,
            subresource=subresource,
            field_manager=self._manager,
            field_validation=FieldValidation.IGNORE,
        )


def _answer(kind: Kind, done: creating.Created | Changed) -> bytes:
    """An object in the form in which it is read and watched."""
    answer = done.answer
    if answer is not None:
        return answer
    metadata = dict(done.document["metadata"])
    revision = int(metadata.pop("resourceVersion"))
    return with_revision(stored_form(kind, done.document, metadata), revision)


def _outcome(kind: Kind, done: creating.Created | Changed | ClientError) -> bytes | ClientError:
    return done if isinstance(done, ClientError) else _answer(kind, done)


def _delete_options(deletion: Deletion | None) -> deleting.DeleteOptions:
    if deletion is None:
        return deleting.DeleteOptions()
    return deleting.DeleteOptions(
        grace_s=deletion.grace_s,
        uid=deletion.uid or None,
        revision=deletion.revision or None,
        propagation=deletion.propagation.value if deletion.propagation is not None else None,
    )
