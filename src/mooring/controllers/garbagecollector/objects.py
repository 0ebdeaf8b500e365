"""What the garbage collector asks of the API: metadata, deletions, references taken away.

Comes in   identities of the ownership graph
Goes out   requests; `UnknownKind` for a kind that is not served, `StrayReference` for one that can never be right,
           or a `ClientError`

 1. Only metadata is read; what is written is a patch of metadata.
 2. A deletion names the uid and the resourceVersion that were looked at: an object that got another owner meanwhile is
    not deleted. If only something else changed, it is deleted all the same: an object that changes all the time must
    not live for ever.
 3. References are taken away by a strategic merge patch, which cannot overwrite others; custom kinds know none, so
    there it is a merge patch of the whole list with its resourceVersion.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.views.meta import ApiObject, ObjectMeta
from mooring.client.errors import ConflictError, NotFoundError, StatusError
from mooring.client.interface import Client, Deletion, PatchForm, Propagation
from mooring.controllers.garbagecollector.graph import Identity
from mooring.controllers.served_kinds import ServedKinds
from mooring.kit.clock import Clock

FINALIZER_TRIES_MAX = 4
FINALIZER_RETRY_S = 0.01
FINALIZER_RETRY_FACTOR = 5.0
UNSUPPORTED_MEDIA_TYPE = 415

_decode = msgspec.json.Decoder(dict[str, object]).decode


class UnknownKind(Exception):
    """A kind that is not served, or not yet."""


class StrayReference(Exception):
    """An object of the cluster names an owner in a namespace: nobody can say in which."""


class GarbageObjects:
    """Asks for one collector."""

    def __init__(self, client: Client, clock: Clock, kinds: ServedKinds) -> None:
        self._client = client
        self._clock = clock
        self._kinds = kinds

    def place(self, identity: Identity) -> tuple[Kind, str, str]:
        """Kind, namespace and name, as requests need them. Raises `UnknownKind`, `StrayReference`."""
        kind = self._kinds.find(identity.api_version, identity.kind)
        if kind is None:
            raise UnknownKind(f"unable to get REST mapping for {identity.api_version}/{identity.kind}.")
        if not kind.is_namespaced:
            return kind, "", identity.name
        if not identity.namespace:
            raise StrayReference(f"{identity} is in a namespace, and whoever refers to it is not")
        return kind, identity.namespace, identity.name

    async def metadata(self, identity: Identity) -> ObjectMeta:
        return decode_as(ApiObject, await self._client.get(*self.place(identity))).metadata

    async def delete(self, identity: Identity, seen: ObjectMeta, propagation: Propagation) -> None:
        place = self.place(identity)
        deletion = Deletion(uid=identity.uid, revision=seen.resource_version, propagation=propagation)
        try:
            await self._client.delete(*place, deletion)
        except ConflictError:
            now = await self.metadata(identity)
            if now.uid != identity.uid or now.owner_references != seen.owner_references:
                raise
            await self._client.delete(*place, Deletion(uid=identity.uid, propagation=propagation))

    async def remove_owners(self, identity: Identity, owner_uids: Collection[str]) -> None:
        """Take the references to these owners away. No reference to them is no error."""
        removed = [{"$patch": "delete", "uid": uid} for uid in owner_uids]
        if await self._patched(identity, removed):
            return
        metadata, references = await self._references(identity)
        left = [reference for reference in references if reference.get("uid") not in owner_uids]
        await self._replace_references(identity, metadata, left)

    async def unblock_owners(self, identity: Identity) -> None:
        """Let its owners go without waiting for it."""
        metadata, references = await self._references(identity)
        blocking = [
            {**reference, "blockOwnerDeletion": False}
            for reference in references
            if reference.get("blockOwnerDeletion")
        ]
        if not await self._patched(identity, blocking):
            unblocked = [{**reference, "blockOwnerDeletion": False} for reference in references]
            await self._replace_references(identity, metadata, unblocked)

    async def remove_finalizer(self, identity: Identity, finalizer: str) -> None:
        """Raises `ConflictError` if somebody was faster again and again."""
        place = self.place(identity)
        retry_s = FINALIZER_RETRY_S
        for left in reversed(range(FINALIZER_TRIES_MAX)):
            try:
                metadata = await self.metadata(identity)
                if finalizer not in metadata.finalizers:
                    return
                kept = [each for each in metadata.finalizers if each != finalizer]
                patch = {"metadata": {"resourceVersion": metadata.resource_version, "finalizers": kept or None}}
                await self._client.patch(*place, patch, form=PatchForm.MERGE)
                return
            except NotFoundError:
                return
            except ConflictError:
                if not left:
                    raise
            await self._clock.wait(retry_s)
            retry_s *= FINALIZER_RETRY_FACTOR

    async def _patched(self, identity: Identity, references: list[Document]) -> bool:
        """Whether the kind takes strategic merge patches."""
        kind, namespace, name = self.place(identity)
        if not self._kinds.is_built_in(kind):
            return False
        patch = {"metadata": {"uid": identity.uid, "ownerReferences": references}}
        try:
            await self._client.patch(kind, namespace, name, patch, form=PatchForm.STRATEGIC)
        except StatusError as error:
            if error.code != UNSUPPORTED_MEDIA_TYPE:
                raise
            return False
        return True

    async def _references(self, identity: Identity) -> tuple[Document, list[Document]]:
        document: Document = _decode(await self._client.get(*self.place(identity)))
        metadata: Document = document["metadata"]
        return metadata, metadata.get("ownerReferences") or []

    async def _replace_references(self, identity: Identity, metadata: Document, references: list[Document]) -> None:
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": references or None}}
        await self._client.patch(*self.place(identity), patch, form=PatchForm.MERGE)
