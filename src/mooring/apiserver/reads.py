"""What a write looked at besides its own object, and whether that is still as it was.

Comes in   the look-ups of admission while the registry carries out a write
Goes out   the revisions that it saw; and later, whether they are the same

What was worked out for one write holds for another that looks at the same and finds it unchanged: `twin_writes` and
`repeats` rely on it.

 1. Only kinds that say the same to every object of a namespace may be looked at (`SHARED`).
 2. Quotas are charged with each object: where there is one, nothing holds for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mooring.api.document import Document
from mooring.api.kinds import (
    LIMIT_RANGE,
    NAMESPACE,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
    SERVICE_ACCOUNT,
    Kind,
)
from mooring.apiserver.admission.promise import Lookup
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.twins import Reads
from mooring.store.interface import Store

SHARED = frozenset({NAMESPACE, SERVICE_ACCOUNT, LIMIT_RANGE, RESOURCE_QUOTA, PRIORITY_CLASS, RUNTIME_CLASS})


class RecordingLookup:
    """Looks objects up, and remembers what was looked at."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._reads: dict[str, tuple[int, ...]] = {}
        self._names: list[bytes] = []
        self._is_shared = True

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        found = await self._lookup.get(kind, namespace, name)
        self._reads[kind.key(namespace, name)] = _revisions([found] if found is not None else [])
        self._names += [namespace.encode(), name.encode()]
        self._is_shared = self._is_shared and kind in SHARED
        return found

    async def list(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        found = await self._lookup.list(kind, namespace)
        self._reads[kind.keys_prefix(namespace)] = _revisions(found)
        self._names.append(namespace.encode())
        self._is_shared = self._is_shared and kind in SHARED and not (found and kind is RESOURCE_QUOTA)
        return found

    def reads_shared(self, names: Sequence[bytes] = ()) -> Reads | None:
        """What was looked at; None if others look at something else: by one of these names, too."""
        if not self._is_shared or any(name in names for name in self._names):
            return None
        return tuple(self._reads.items())


def parts_with(parts: Parts, lookup: Lookup) -> Parts:
    """The same parts, but for where other objects are looked up."""
    return replace(parts, lookup=lookup, admission=parts.admission.looking_through(lookup))


async def are_unchanged(store: Store, reads: Reads) -> bool:
    for key, revisions in reads:
        if key.endswith("/"):
            now = tuple([record.revision for record in (await store.list(key)).records])
        else:
            record = await store.get(key)
            now = (record.revision,) if record is not None else ()
        if now != revisions:
            return False
    return True


def _revisions(documents: Sequence[Document]) -> tuple[int, ...]:
    return tuple(int(document["metadata"]["resourceVersion"]) for document in documents)
