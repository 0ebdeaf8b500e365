"""The way in for those who are in the process already: the client promise, kept by the desk without HTTP.

Comes in   requests of the scheduler, the controllers and the kubelets of this process
Goes out   what any client would get: everything is defaulted, admitted, validated and stamped

 1. Whoever is inside is trusted: he is neither authenticated nor asked whether he may. He has a name all the same,
    which stands in the fields that he manages.
 2. Reading goes straight to the store, as bytes, shared with all watches.
 3. What was written for one replica is written for the next without being worked out again (`twin_writes`), and a lease
    is renewed as it was renewed before (`renewals`).
"""

from __future__ import annotations

from typing import cast

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import LEASE, POD, SERVICE_ACCOUNT, Kind
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.desk import Desk
from mooring.apiserver.registry import create as creating
from mooring.apiserver.registry import delete as deleting
from mooring.apiserver.registry import patches, put
from mooring.apiserver.registry.binding import bind
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.registry.shelf import Stored as Found
from mooring.apiserver.registry.update import Changed
from mooring.apiserver.renewals import Renewals
from mooring.apiserver.resources import Resource
from mooring.apiserver.tokens import issue_token
from mooring.apiserver.twin_writes import CREATED, MERGING, PATCHED, REPLACED, Stored, TwinWrites, Written, answer_of
from mooring.apiserver.wire.decode import canonical_object
from mooring.apiserver.wire.examine import DecodingError
from mooring.client.errors import BadRequestError
from mooring.client.interface import (
    EVERYTHING,
    Deletion,
    JsonObject,
    Listing,
    PatchForm,
    Selection,
    Watch,
)
from mooring.client.local import LocalClient
from mooring.kit.clock import format_rfc3339

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


class InsideClient:
    """Keeps the client promise for one part of Mooring in the process of the API server."""

    def __init__(self, desk: Desk, client: LocalClient, user: User, manager: str) -> None:
        self._desk = desk
        self._client = client
        self._user = user
        self._manager = manager
        self._twins = TwinWrites(desk.store, desk.parts, desk.entropy.fork(f"twins of {manager}"))
        self._renewals = Renewals(desk.store)

    # ------------------------------------------------------------------------------------------------ reading

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return await self._client.get(kind, namespace, name)

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        return await self._client.list(kind, selection, limit=limit, continue_token=continue_token, revision=revision)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        return self._client.watch(kind, selection, since=since, bookmarks=bookmarks)

    # ------------------------------------------------------------------------------------------------ writing

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        resource = self._desk.resources.of_kind(kind)
        call = self._call("create", kind, namespace)

        async def create(parts: Parts, body: JsonObject) -> Document:
            encoded = _encode(body)
            obj = self._desk.cast(resource, call, encoded)
            if obj is None:
                obj = self._read(resource, encoded)
                resource.strategy.default(obj)
            return (await creating.create(parts, resource, call, obj)).document

        written = await self._twins.create(call, body, create) if kind in CREATED else None
        if written is None:
            written = await create(self._desk.parts, body)
        return answer_of(kind, written) if is_answer_wanted else b""

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        resource = self._desk.resources.of_kind(kind)
        call = self._call("update", kind, namespace, name, subresource)
        strategy = resource.strategies.get(subresource, resource.strategy)

        encoded = _encode(body)

        def read(found: Found | None) -> Document:
            obj = self._desk.read_beside(resource, call, encoded, found) if found is not None else None
            if obj is None:
                obj = self._read(resource, encoded)
                strategy.default(obj)
            return obj

        async def replace(parts: Parts) -> Changed:
            return await put.put(parts, resource, call, read)

        written: Stored | Changed | None = None
        if kind in REPLACED and subresource == "status":
            written = await self._twins.replace(call, body, encoded, replace)
        if written is None:
            written = await replace(self._desk.parts)
        if isinstance(written, Stored):
            return answer_of(kind, written)
        return written.answer or answer_of(kind, written.document)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        call = self._call("patch", kind, namespace, name, subresource)
        is_renewal = kind is LEASE and form is PatchForm.MERGE
        renewed = await self._renewals.renew(call, patch) if is_renewal else None
        if renewed is not None:
            return answer_of(kind, renewed)
        resource = self._desk.resources.of_kind(kind)
        reader = self._desk.document_reader(resource, form)

        async def change(parts: Parts, patch: object) -> Document:
            return (await patches.patch(parts, resource, call, patches.Patch(form, patch), reader)).document

        written: Written | None = None
        if kind in PATCHED and form in MERGING and isinstance(patch, dict):
            written = await self._twins.patch(call, patch, form, change)
        if written is None:
            written = await change(self._desk.parts, patch)
        if is_renewal:
            await self._renewals.note(call, patch, written)
        return answer_of(kind, written)

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        resource = self._desk.resources.of_kind(kind)
        call = self._call("delete", kind, namespace, name)
        await deleting.delete(self._desk.parts, resource, call, _delete_options(deletion))

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        call = self._call("create", POD, namespace, name, "binding")
        metadata = {"name": name, "namespace": namespace}
        if uid:
            metadata["uid"] = uid
        target = {"kind": "Node", "name": node_name}
        await bind(self._desk.parts, call, {"metadata": metadata, "target": target})

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        call = self._call("create", SERVICE_ACCOUNT, namespace, name, "token")
        issued = await issue_token(self._desk, call, cast(Document, _decode(_encode(request))))
        return _encode(issued.document)

    # --------------------------------------------------------------------------------------------------- parts

    def _call(self, verb: str, kind: Kind, namespace: str, name: str = "", subresource: str = "") -> Call:
        now_s = self._desk.clock.wall_s()
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

    def _read(self, resource: Resource, body: bytes) -> Document:
        """A body as a document of its own: what comes in is never changed, and what nobody knows is dropped."""
        plain = cast(Document, _decode(body))
        if resource.struct is None:
            assert resource.read_document is not None, f"{resource.kind} has neither a schema nor a reader"
            return resource.read_document(plain).document
        try:
            return canonical_object(resource.struct, plain, resource.kind).document
        except DecodingError as error:
            raise BadRequestError(str(error)) from None


def _delete_options(deletion: Deletion | None) -> deleting.DeleteOptions:
    if deletion is None:
        return deleting.DeleteOptions()
    return deleting.DeleteOptions(
        grace_s=deletion.grace_s,
        uid=deletion.uid or None,
        revision=deletion.revision or None,
        propagation=deletion.propagation.value if deletion.propagation is not None else None,
    )
