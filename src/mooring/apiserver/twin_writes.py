"""Writes that were made before, for a twin: what those who are inside do over and over again.

Comes in   patches of pods, nodes and leases, new pods and events
Goes out   the object as it is stored; None if it has to go the long way

 1. What is written for a twin is what the registry would write (`twins`): the same text but for names and times.
 2. What the registry looked at besides (the namespace, the service account, limits, classes) is still as it was then.
    What it looks at may not depend on what is exchanged. Where there are quotas, nothing is learnt: they are charged.
 3. Only what succeeded is learnt, and only if the object was still the one that had been read before.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias, cast

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import (
    CORE_EVENT,
    EVENT,
    LEASE,
    NODE,
    POD,
    Kind,
)
from mooring.apiserver.call import Call
from mooring.apiserver.reads import RecordingLookup, are_unchanged, parts_with
from mooring.apiserver.registry.metadata import generated_name
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.twins import Question, Twins, question_of
from mooring.client.errors import StatusError
from mooring.client.local_events import outward
from mooring.client.local_form import stored_form, with_revision
from mooring.client.promise import JsonObject, PatchForm
from mooring.kit.entropy import Entropy
from mooring.store.promise import MUST_NOT_EXIST, Record, Store, WriteConflict

PATCHED = frozenset({POD, NODE, LEASE})
MERGING = frozenset({PatchForm.MERGE, PatchForm.STRATEGIC})
CREATED = frozenset({POD, EVENT, CORE_EVENT})
NAMES_AROUND_MAX = 8
UID_LENGTH = 36

_encode = msgspec.json.Encoder().encode
_NODE_NAME = re.compile(rb'"nodeName":"([^"\\]+)"')
_LABELS = re.compile(rb'"labels":\{([^}]*)\}')
_OWNERS = re.compile(rb'"ownerReferences":\[([^\]]*)\]')
_GENERATE_NAME = re.compile(rb'"generateName":"([^"\\]+)"')
_GIVEN = re.compile(rb'"((?=[a-z.-]*\d)[a-z0-9.]{1,28}-[a-z0-9.-]{1,28})"|"pod-template-hash":"([a-z0-9]{8,10})"')
"""Names that somebody made up, with a digit: a word of the API or an amount never looks like that."""
_TOKEN_VOLUME = re.compile(rb'"(kube-api-access-[a-z0-9]{5})"')
_NOBODY = b"\x03"
"""In place of a name that is not there. No JSON holds such a character."""

LongWay = Callable[[Parts, JsonObject], Awaitable[Document]]
"""Has the registry do it, with these parts and this body."""


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
        wanted = _part(patch, "metadata").get("resourceVersion")
        if record is None or wanted not in (None, str(record.revision)):
            return None
        if wanted is not None:  # this very state: what is written then does not depend on its number
            patch = {**patch, "metadata": _without_revision(_part(patch, "metadata"))}
        question = _question_of_patch(call, record.value, patch, form)
        template = self._twins.find(question)
        if template is None or not await are_unchanged(self._store, template.reads):
            return await self._learn_patch(call, patch, record, question, long_way)
        value = template.filled(question)
        if value == record.value:
            return Stored(value, record.revision)
        try:
            return Stored(value, await self._store.put(record.key, value, if_revision=record.revision))
        except WriteConflict:
            return None  # the long way refuses a patch that was for another state

    async def create(self, call: Call, body: JsonObject, long_way: LongWay) -> Written | None:
        """The new object. None if it has to be created in the usual way."""
        question = self._question_of_creation(call, body)
        template = self._twins.find(question)
        if template is None or not await are_unchanged(self._store, template.reads):
            return await self._learn_creation(call, body, question, long_way)
        metadata = _part(body, "metadata")
        name = str(metadata.get("name") or generated_name(str(metadata.get("generateName")), self._entropy))
        fresh = [self._entropy.uuid().encode(), f"kube-api-access-{self._entropy.suffix()}".encode()]
        value = template.filled(question, fresh, [name.encode()])
        try:
            key = call.kind.key(call.namespace, name)
            return Stored(value, await self._store.put(key, value, if_revision=MUST_NOT_EXIST))
        except WriteConflict:
            return None

    # ------------------------------------------------------------------------------------------------ learning

    async def _learn_patch(
        self, call: Call, patch: JsonObject, record: Record, question: Question, long_way: LongWay
    ) -> Document | None:
        lookup = RecordingLookup(self._parts.lookup)
        # For this state only, or what is stored in the end might have come of another.
        metadata = {**_part(patch, "metadata"), "resourceVersion": str(record.revision)}
        try:
            document = await long_way(parts_with(self._parts, lookup), {**patch, "metadata": metadata})
        except StatusError:
            return None
        stored = await self._stored(call.kind, call.namespace, document)
        reads = lookup.reads_shared(question.names)
        if stored is not None and reads is not None:
            self._twins.learn(question, stored, reads)
        return document

    async def _learn_creation(self, call: Call, body: JsonObject, question: Question, long_way: LongWay) -> Document:
        lookup = RecordingLookup(self._parts.lookup)
        document = await long_way(parts_with(self._parts, lookup), body)
        stored = await self._stored(call.kind, call.namespace, document)
        name = document["metadata"]["name"].encode()
        reads = lookup.reads_shared((*question.names, name))
        if stored is not None and reads is not None:
            volume = _TOKEN_VOLUME.search(stored)
            fresh = [document["metadata"]["uid"].encode(), volume[1] if volume is not None else _NOBODY]
            self._twins.learn(question, stored, reads, fresh, [name])
        return document

    def _question_of_creation(self, call: Call, body: JsonObject) -> Question:
        encoded, asked = _encode(body), self._asked_last
        context, now = (call.verb, call.kind, call.namespace), call.now.encode()
        if asked is not None and asked[:3] == (context, now, encoded):
            return asked[3]  # one who creates replicas sends the same again and again
        names = _names_in_event(body) if call.kind is not POD else _names_around(encoded)
        question = question_of(context, (encoded,), names, now)
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
    node_name = _NODE_NAME.search(value) if call.kind is POD else None
    names = (call.name.encode(), node_name[1] if node_name is not None else _NOBODY)
    around = _names_around(value, names) if call.kind is POD else ()
    context = (call.verb, call.kind, call.subresource, form)
    return question_of(context, (value, _encode(patch)), (*names, *around), call.now.encode())


def _names_around(text: bytes, known: Sequence[bytes] = ()) -> Sequence[bytes]:
    """The names by which an object belongs to others: of its set, and in its labels. The same everywhere in a set."""
    found: dict[bytes, None] = {}
    for part in (_GENERATE_NAME.search(text), _LABELS.search(text), _OWNERS.search(text)):
        for name, hashed in _GIVEN.findall(part[0]) if part is not None else ():
            found[name or hashed] = None
    return [name for name in found if name not in known and len(name) != UID_LENGTH and not _is_manager(name, text)][
        :NAMES_AROUND_MAX
    ]


def _is_manager(name: bytes, text: bytes) -> bool:
    """Whether somebody of that name has written to the object. Managers have an order."""
    return b'"manager":"%b"' % name in text


def _names_in_event(event: JsonObject) -> tuple[bytes, ...]:
    """What an event tells: that is never judged."""
    regarding = _part(event, "regarding") or _part(event, "involvedObject")
    told = (
        _part(event, "metadata").get("name"),
        regarding.get("name"),
        regarding.get("resourceVersion"),
        event.get("note") or event.get("message"),
    )
    return tuple(_encode(text)[1:-1] if text else _NOBODY for text in told)


def _without_revision(metadata: JsonObject) -> JsonObject:
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}


def _part(body: JsonObject, field: str) -> JsonObject:
    part = body.get(field)
    return cast(JsonObject, part) if isinstance(part, dict) else {}
