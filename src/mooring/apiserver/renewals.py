"""Renewals: a lease that is renewed just as it was renewed before.

Comes in   patches of leases that say nothing but a new `renewTime`, from those who are inside
Goes out   the lease as it is stored; None if it has to be worked out

The leases of 5,000 nodes are renewed 500 times a second, and nothing else about them ever changes. Two times stand in
other places of the text then: when it was renewed, and when its manager last wrote. Both have always the same length.

 1. What is written is what the registry would write. A lease is known here only after the same manager renewed it in
    the usual way (`twin_writes`), and as long as nobody else has written to it, or to its namespace, since.
 2. The manager's entry was the newest then, and no other one was as new: it is written later now, so the order of the
    entries stays. Where a time stands twice, or the clock does not advance, the usual way is gone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mooring.api.kinds import NAMESPACE
from mooring.apiserver.call import Call
from mooring.apiserver.twin_writes import Stored, Written
from mooring.store.interface import Store, WriteConflict

LEASES_MAX = 100_000

_TIME_LENGTH = len("2026-11-16T12:00:00Z")
_MICRO_TIME_LENGTH = len("2026-11-16T12:00:00.000000Z")
_MICRO_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class _Known(NamedTuple):
    """A lease as it was renewed last, and where its two times stand."""

    revision: int
    namespace_revision: int
    now: str
    written_at: int
    renewed_at: int


class Renewals:
    """Of one manager."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}

    async def renew(self, call: Call, patch: object) -> Stored | None:
        """The lease after the patch. None if it has to be patched in the usual way."""
        key = call.kind.key(call.namespace, call.name)
        known = self._known.get(key)
        renew_time = _renew_time_in(patch)
        if known is None or renew_time is None or call.now <= known.now:
            return None
        record = await self._store.get(key)
        if record is None or record.revision != known.revision:
            return None
        if await self._namespace_revision(call) != known.namespace_revision:
            return None
        _, namespace_revision, _, written_at, renewed_at = known
        between = record.value[written_at + _TIME_LENGTH : renewed_at]
        after = record.value[renewed_at + _MICRO_TIME_LENGTH :]
        value = b"".join((record.value[:written_at], call.now.encode(), between, renew_time.encode(), after))
        try:
            revision = await self._store.put(key, value, if_revision=known.revision)
        except WriteConflict:
            return None  # the usual way looks at what it is now
        self._known[key] = _Known(revision, namespace_revision, call.now, written_at, renewed_at)
        return Stored(value, revision)

    async def note(self, call: Call, patch: object, written: Written | None) -> None:
        """What the usual way made of a patch."""
        key = call.kind.key(call.namespace, call.name)
        self._known.pop(key, None)
        renew_time = _renew_time_in(patch)
        if renew_time is None or not isinstance(written, Stored):
            return
        written_at = _only_place(written.value, b'"time":"', call.now.encode())
        renewed_at = _only_place(written.value, b'"renewTime":"', renew_time.encode())
        namespace_revision = await self._namespace_revision(call)
        if 0 <= written_at < renewed_at and namespace_revision and len(self._known) < LEASES_MAX:
            self._known[key] = _Known(written.revision, namespace_revision, call.now, written_at, renewed_at)

    async def _namespace_revision(self, call: Call) -> int:
        """0 if there is no such namespace. Admission looks at it."""
        record = await self._store.get(NAMESPACE.key("", call.namespace))
        return record.revision if record is not None else 0


def _renew_time_in(patch: object) -> str | None:
    """The new time, if the patch says nothing else."""
    match patch:
        case {"spec": {"renewTime": str(renew_time), **others_in_spec}, **others} if not others and not others_in_spec:
            return renew_time if _MICRO_TIME.fullmatch(renew_time) else None
        case _:
            return None


def _only_place(value: bytes, field: bytes, time: bytes) -> int:
    """Where the time stands as the value of that field; -1 if it stands elsewhere as well, or nowhere."""
    at = value.find(b'%b%b"' % (field, time))
    return at + len(field) if at >= 0 and value.count(time) == 1 else -1
