"""Repeats: the same body sent again, byte for byte, as those send it who make the replicas of a set.

Comes in   the body of a new object whose name the server makes up; the long way to create it
Goes out   what clients get; the same as the long way, but for the name, the uid and the time

What the registry makes of a body depends on the body, on who sends it, and on the few objects that admission looks at.
Of all that is stored only the name, the uid and the time are new each time. So what was stored for one body is kept
with holes in those places, and filled in for the next.

 1. A body is known by all of its bytes, the namespace, the manager of the fields and what becomes of strange fields.
 2. What admission looked at is still as it was (`reads`); where there are quotas, nothing is kept.
 3. Only what was stored without a word of warning is kept, and only if the body itself says nothing of what goes into
    the holes: then they stand just where the server put them.
 4. A body that comes for the first time is only noted: most never come again. What is kept of the second is not
    believed before it has foretold what the registry stored for the third: if anything else is new each time, it
    never is.
 5. A name that is taken, by chance, goes the long way.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.kinds import Kind
from mooring.api.memory import Marks, Memory
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.reads import RecordingLookup, are_unchanged, parts_with
from mooring.apiserver.registry.create import Created
from mooring.apiserver.registry.metadata import generated_name
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.twins import Reads
from mooring.client.local_form import with_revision
from mooring.store.interface import MUST_NOT_EXIST, Store, WriteConflict

REPEATS_KEPT_MAX = 256
NOTED_MAX = 4096
"""Marks of bodies, a few dozen bytes each."""
BODY_BYTES_MAX = 64 * 1024
"""A longer body is read each time: so all that is kept stays below a few dozen megabytes."""

LongWay = Callable[[Parts], Awaitable[Created]]
"""Has the registry create it, with these parts."""
Question: TypeAlias = tuple[Kind, str, str, FieldValidation, bytes]
Values: TypeAlias = tuple[bytes, bytes, bytes]
"""The time, the name and the uid."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What became of a body, with holes."""

    prefix: str
    """What the name begins with."""
    texts: tuple[bytes, ...]
    holes: tuple[int, ...]
    """Which of the values stands between two texts."""
    reads: Reads
    is_proven: bool

    def filled(self, values: Values) -> bytes:
        pieces = [b""] * (2 * len(self.texts) - 1)
        pieces[::2] = self.texts
        pieces[1::2] = [values[hole] for hole in self.holes]
        return b"".join(pieces)


class Repeats:
    """Remembers what became of bodies."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._known: Memory[Question, _Known] = Memory(REPEATS_KEPT_MAX)
        self._noted = Marks(NOTED_MAX)

    async def create(self, call: Call, data: bytes, long_way: LongWay) -> Created | bytes:
        """Create an object from its body: what the registry says, or what clients get if it was not asked."""
        if call.is_dry_run or len(data) > BODY_BYTES_MAX:
            return await long_way(self._parts)
        question = (call.kind, call.namespace, call.field_manager, call.field_validation, data)
        known = self._known.get(question)
        if known is None and self._noted.is_new(question):
            return await long_way(self._parts)
        if known is None or not known.is_proven or not await are_unchanged(self._store, known.reads):
            return await self._learn(question, call, known, long_way)
        name, uid = generated_name(known.prefix, self._parts.entropy), self._parts.entropy.uuid()
        value = known.filled((call.now.encode(), name.encode(), uid.encode()))
        try:
            revision = await self._store.put(call.kind.key(call.namespace, name), value, if_revision=MUST_NOT_EXIST)
        except WriteConflict:
            return await long_way(self._parts)
        return with_revision(value, revision)

    async def _learn(self, question: Question, call: Call, known: _Known | None, long_way: LongWay) -> Created:
        lookup = RecordingLookup(self._parts.lookup)
        created = await long_way(parts_with(self._parts, lookup))
        metadata, reads = created.document["metadata"], lookup.reads_shared()
        values = (call.now.encode(), metadata["name"].encode(), metadata["uid"].encode())
        if reads is None or call.warnings or not metadata.get("generateName") or _are_said(values, question[-1]):
            return created
        record = await self._store.get(call.kind.key(call.namespace, metadata["name"]))
        if record is not None and str(record.revision) == metadata["resourceVersion"]:
            is_foretold = known is not None and known.reads == reads and known.filled(values) == record.value
            self._known.keep(question, _with_holes(record.value, values, metadata["generateName"], reads, is_foretold))
        return created


def _are_said(values: Values, body: bytes) -> bool:
    return any(value in body for value in values)


def _with_holes(stored: bytes, values: Values, prefix: str, reads: Reads, is_proven: bool) -> _Known:
    pieces = re.split(b'(?<=")(' + b"|".join(map(re.escape, values)) + b')(?=")', stored)
    return _Known(prefix, tuple(pieces[::2]), tuple(map(values.index, pieces[1::2])), reads, is_proven)
