"""The interface of admission plugins, what they share, and the chain that runs them in order.

Input: an `Attempt`, an operation on an object that is not yet carried out. Output: the object changed in place
(`admit`), nothing (`check`), or a `StatusError`.

1. All `admit` methods run before validation, in the order of the table; all `check` methods after it.
2. `admit` may change `obj`; `check` changes nothing. Neither changes `old`.
3. A lookup sees every write that was acknowledged before the request arrived.
4. A plugin rejects with 403 (`refused`), and copies a part with `own_part` or `own_items` before it changes the part,
   because it may be shared with the stored object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.errors import forbidden
from mooring.client.errors import ForbiddenError, StatusCause


class Lookup(Protocol):
    """Reads other objects. The results are shared and must not be changed."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None: ...

    async def labels(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        """The labels of an object; None if it does not exist. Cheaper than `get`, because nothing else is decoded."""
        ...

    async def list(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        """All objects of a kind in a namespace, or in all of them."""
        ...


class QuotaStatusWriter(Protocol):
    """Writes the usage of quotas: the only write of admission."""

    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        """Write the usage into the status of a quota. False if the quota has changed since it was read."""
        ...


@dataclass(slots=True)
class Attempt:
    """An operation on an object of `call.kind`, through `call.subresource` if it is not empty."""

    operation: Operation
    call: Call
    obj: Document | None
    """The new object; None for a deletion. For a subresource with a body of its own (Binding, Eviction, Scale), that
    body."""
    old: Document | None
    """The stored object; None for a creation."""
    body_kind: str = ""
    """The kind of `obj` if it is another one than `call.kind`."""


class Admission:
    """An admission plugin that admits everything. Plugins inherit from it and override methods."""

    name = ""

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        """Whether the plugin applies; called once for each kind, subresource and operation."""
        raise AssertionError(f"{type(self).__name__} does not override `handles`")

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        """Change the object, or reject it."""

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        """Reject the object, or not."""


_NAMELESS = "Unknown"


def refused(attempt: Attempt, why: str, causes: Sequence[StatusCause] = ()) -> ForbiddenError:
    """The error of a rejected attempt."""
    error = forbidden(attempt.call.kind, name_of(attempt), why)
    error.causes = tuple(causes)
    return error


def name_of(attempt: Attempt) -> str:
    """The name of the object of an attempt, for messages."""
    if attempt.call.name:
        return attempt.call.name
    metadata = (attempt.obj or {}).get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or _NAMELESS


def own_part(document: Document, field: str) -> Document:
    """A map in a document, replaced by a copy that may be changed; an empty one if there was none."""
    part: Document = dict(document.get(field) or {})
    document[field] = part
    return part


def own_items(document: Document, field: str) -> list[Document]:
    """A list of maps in a document, replaced by copies that may be changed."""
    items: list[Document] = [dict(item) for item in document[field]]
    document[field] = items
    return items


class AdmissionChain:
    """Runs the plugins."""

    def __init__(self, mutating: Sequence[Admission], validating: Sequence[Admission], lookup: Lookup) -> None:
        self._mutating = tuple(mutating)
        self._validating = tuple(validating)
        self._lookup = lookup
        self._handlers: dict[tuple[Kind, str, Operation], tuple[tuple[Admission, ...], tuple[Admission, ...]]] = {}

    async def admit(self, attempt: Attempt) -> None:
        for plugin in self._handling(attempt)[0]:
            await plugin.admit(attempt, self._lookup)

    async def check(self, attempt: Attempt) -> None:
        for plugin in self._handling(attempt)[1]:
            await plugin.check(attempt, self._lookup)

    async def check_deletion(self, attempt: Attempt) -> None:
        """Run all plugins for a deletion, which has no object to change."""
        await self.admit(attempt)
        await self.check(attempt)

    def _handling(self, attempt: Attempt) -> tuple[tuple[Admission, ...], tuple[Admission, ...]]:
        key = (attempt.call.kind, attempt.call.subresource, attempt.operation)
        found = self._handlers.get(key)
        if found is None:
            found = self._handlers[key] = (
                tuple(plugin for plugin in self._mutating if plugin.handles(*key)),
                tuple(plugin for plugin in self._validating if plugin.handles(*key)),
            )
        return found
