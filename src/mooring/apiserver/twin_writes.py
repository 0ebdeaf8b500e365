"""Writes that were made before, for a twin: what those who are inside do over and over again.

Comes in   patches of pods, nodes and leases, new statuses of workloads, new pods, their sets and events
Goes out   the object as it is stored; None if it has to go the long way

 1. What is written for a twin is what the registry would write (`twins`): the same text but for names and times.
 2. What the registry looked at besides (the namespace, the service account, limits, classes) is still as it was then.
    What it looks at may not depend on what is exchanged. Where there are quotas, nothing is learnt: they are charged.
 3. Only what succeeded is learnt, and only if the object was still the one that had been read before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple, TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import (
    CORE_EVENT,
    DEPLOYMENT,
    EVENT,
    LEASE,
    NODE,
    POD,
    REPLICA_SET,
    Kind,
)
from mooring.apiserver.call import Call
from mooring.apiserver.reads import RecordingLookup, are_unchanged, parts_with
from mooring.apiserver.registry.metadata import generated_name
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.registry.update import Changed
from mooring.apiserver.twin_names import (
    NOBODY,
    names_in_creation,
    names_in_patched,
    names_in_replaced,
    token_volume_in,
)
from mooring.apiserver.twins import Question, Twins, question_of
from mooring.client.errors import StatusError
from mooring.client.interface import JsonObject, PatchForm
from mooring.client.local_events import outward
from mooring.client.local_form import part_of, stored_form, with_revision
from mooring.kit.entropy import Entropy
from mooring.store.interface import MUST_NOT_EXIST, Record, Store, WriteConflict

PATCHED = frozenset({POD, NODE, LEASE})
MERGING = frozenset({PatchForm.MERGE, PatchForm.STRATEGIC})
CREATED = frozenset({POD, REPLICA_SET, EVENT, CORE_EVENT})
REPLACED = frozenset({DEPLOYMENT, REPLICA_SET})
"""Of these the status: a whole object is sent, of which hardly anything else is new."""

_STATUS = b',"status":{'

_encode = msgspec.json.Encoder().encode

LongWay = Callable[[Parts, JsonObject], Awaitable[Document]]
"""Has the registry do it, with these parts and this body."""
Replace = Callable[[Parts], Awaitable[Changed]]
"""The same for a whole object, which names its state."""


class Stored(NamedTuple):
    """An object in its stored form."""

    value: bytes
    revision: int


Written: TypeAlias = Document | Stored
"""An object that was written, as a document or as it is stored."""


class TwinWrites:
    """Of one who is inside."""

    def __init__(self, store: Store, parts: Parts, entropy: Entropy) -> None:
        self._store = store
        self._parts = parts
        self._entropy = entropy
        self._twins = Twins()
        self._asked_last: tuple[Hashable, bytes, bytes, Question] | None = None

    async def patch(self, call: Call, patch: JsonObject, form: PatchForm, long_way: LongWay) -> Written | None:
        """The object after the patch. None if it has to be patched in the usual way."""
        record = await self._store.get(call.kind.key(call.namespace, call.name))
        wanted = part_of(patch, "metadata").get("resourceVersion")
        if record is None or wanted not in (None, str(record.revision)):
            return None
        if wanted is not None:  # this very state: what is written then does not depend on its number
            patch = {**patch, "metadata": _without_revision(part_of(patch, "metadata"))}
        question = _question_of_patch(call, record.value, patch, form)
        template = self._twins.find(question)
        if template is None or not await are_unchanged(self._store, template.reads):
            return await self._learn_patch(call, patch, record, question, long_way)
        return await self._put(record, template.filled(question))

    async def replace(self, call: Call, body: JsonObject, encoded: bytes, long_way: Replace) -> Stored | Changed | None:
        """The object with its new status. None if it has to be replaced in the usual way."""
        record = await self._store.get(call.kind.key(call.namespace, call.name))
        if record is None or part_of(body, "metadata").get("resourceVersion") != str(record.revision):
            return None
        question = _question_of_replacement(call, record, encoded)
        if question is None:
            return None
        template = self._twins.find(question)
        if template is None or not await are_unchanged(self._store, template.reads):
            return await self._learn_replacement(call, question, long_way)
        return await self._put(record, template.filled(question))

    async def create(self, call: Call, body: JsonObject, long_way: LongWay) -> Written | None:
        """The new object. None if it has to be created in the usual way."""
        question = self._question_of_creation(call, body)
        template = self._twins.find(question)
        if template is None or not await are_unchanged(self._store, template.reads):
            return await self._learn_creation(call, body, question, long_way)
        metadata = part_of(body, "metadata")
        name = str(metadata.get("name") or generated_name(str(metadata.get("generateName")), self._entropy))
        volume = f"kube-api-access-{self._entropy.suffix()}".encode() if call.kind is POD else NOBODY
        value = template.filled(question, (self._entropy.uuid().encode(), volume), (name.encode(),))
        try:
            key = call.kind.key(call.namespace, name)
            return Stored(value, await self._store.put(key, value, if_revision=MUST_NOT_EXIST))
        except WriteConflict:
            return None

    async def _put(self, record: Record, value: bytes) -> Stored | None:
        if value == record.value:
            return Stored(value, record.revision)
        try:
            return Stored(value, await self._store.put(record.key, value, if_revision=record.revision))
        except WriteConflict:
            return None  # the long way refuses what was for another state

    # ------------------------------------------------------------------------------------------------ learning

    async def _learn_patch(
        self, call: Call, patch: JsonObject, record: Record, question: Question, long_way: LongWay
    ) -> Document | None:
        lookup = RecordingLookup(self._parts.lookup)
        # For this state only, or what is stored in the end might have come of another.
        metadata = {**part_of(patch, "metadata"), "resourceVersion": str(record.revision)}
        try:
            document = await long_way(parts_with(self._parts, lookup), {**patch, "metadata": metadata})
        except StatusError:
            return None
        await self._learn(call, document, question, lookup)
        return document

    async def _learn_replacement(self, call: Call, question: Question, long_way: Replace) -> Changed:
        lookup = RecordingLookup(self._parts.lookup)
        changed = await long_way(parts_with(self._parts, lookup))
        await self._learn(call, changed.document, question, lookup)
        return changed

    async def _learn_creation(self, call: Call, body: JsonObject, question: Question, long_way: LongWay) -> Document:
        lookup = RecordingLookup(self._parts.lookup)
        document = await long_way(parts_with(self._parts, lookup), body)
        await self._learn(call, document, question, lookup, is_new=True)
        return document

    async def _learn(
        self, call: Call, document: Document, question: Question, lookup: RecordingLookup, *, is_new: bool = False
    ) -> None:
        stored, metadata = await self._stored(call.kind, call.namespace, document), document["metadata"]
        new_names = (metadata["name"].encode(),) if is_new else ()
        names = (*question.names, *new_names)
        reads = lookup.reads_shared(names)
        # An object that is called like its writer has no twins: in what is stored, nobody could tell the two apart.
        if stored is None or reads is None or call.field_manager.encode() in names:
            return
        fresh = (metadata["uid"].encode(), token_volume_in(stored) or NOBODY) if is_new else ()
        self._twins.learn(question, stored, reads, fresh, new_names)

    def _question_of_creation(self, call: Call, body: JsonObject) -> Question:
        encoded, asked = _encode(body), self._asked_last
        context, now = (call.verb, call.kind, call.namespace), call.now.encode()
        if asked is not None and asked[:3] == (context, now, encoded):
            return asked[3]  # one who creates replicas sends the same again and again
        question = question_of(context, (encoded,), names_in_creation(call.kind, body, encoded), now)
        if call.kind is POD:
            self._asked_last = (context, now, encoded, question)
        return question

    async def _stored(self, kind: Kind, namespace: str, document: Document) -> bytes | None:
        """How a document was stored; None if somebody has changed it already, or if it is gone."""
        record = await self._store.get(kind.key(namespace, document["metadata"]["name"]))
        is_this_one = record is not None and str(record.revision) == document["metadata"]["resourceVersion"]
        return record.value if record is not None and is_this_one else None


def answer_of(kind: Kind, written: Written) -> bytes:
    """What was written, in the very form in which it is read and watched."""
    if isinstance(written, Stored):
        return outward(kind, written.value, written.revision)
    metadata = dict(written["metadata"])
    revision = int(metadata.pop("resourceVersion"))
    return with_revision(stored_form(kind, written, metadata), revision)


def _question_of_patch(call: Call, value: bytes, patch: JsonObject, form: PatchForm) -> Question:
    context = (call.verb, call.kind, call.subresource, form)
    names = names_in_patched(call.kind, call.name.encode(), value)
    return question_of(context, (value, _encode(patch)), names, call.now.encode())


def _question_of_replacement(call: Call, record: Record, encoded: bytes) -> Question | None:
    """Of a body that was read, changed and sent back; None if it looks otherwise."""
    value, revision = record.value, b'"metadata":{"resourceVersion":"%d",' % record.revision
    wanted = encoded.replace(revision, b'"metadata":{', 1)
    if len(wanted) == len(encoded):
        return None
    status_at = value.rfind(_STATUS)
    if status_at > 0 and wanted.startswith(value[:status_at]):
        wanted = wanted[status_at:]  # what stands before it is as it is stored
    names = names_in_replaced(call.kind, call.name.encode(), value, wanted)
    if names is None:
        return None
    return question_of((call.verb, call.kind, call.subresource), (value, wanted), names, call.now.encode())


def _without_revision(metadata: JsonObject) -> JsonObject:
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}
