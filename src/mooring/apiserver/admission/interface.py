"""The interface of admission plugins.

Input: an `Attempt`, an operation on an object that is not yet carried out. Output: the object changed in place
(`admit`), nothing (`check`), or a `StatusError`.

1. All `admit` methods run before validation, in the order of the table; all `check` methods after it.
2. `admit` may change `obj`; `check` changes nothing. Neither changes `old`.
3. A lookup sees every write that was acknowledged before the request arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call, Operation


class Lookup(Protocol):
    """Reads other objects. The results are shared and must not be changed."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None: ...

    async def labels(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        """The labels of an object; None if it does not exist. Cheaper than `get`, because nothing else is decoded."""
        ...

    async def list(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        """All objects of a kind in a namespace, or in all of them."""
        ...


class QuotaLedger(Protocol):
    """Where usage is charged: the one thing that admission writes."""

    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        """Make this the usage that a quota's status tells; False if the quota is not as it was read any more."""
        ...


@dataclass(slots=True)
class Attempt:
    """An operation on an object of `call.kind`, through `call.subresource` if it is not empty."""

    operation: Operation
    call: Call
    obj: Document | None
    """The wanted object; None for a deletion. For a subresource with a body of its own (Binding,
    Eviction, Scale), that body."""
    old: Document | None
    """The object as it is; None for a creation."""
    body_kind: str = ""
    """The kind of `obj` if it is another one than `call.kind`."""


class Admission:
    """A plugin that lets everything pass. Others inherit from it and override what they look at."""

    name = ""

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        """Whether it has anything to say; asked once for each kind, subresource and operation."""
        raise AssertionError(f"{type(self).__name__} does not say what it handles")

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        """Change the object, or refuse it."""

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        """Refuse the object, or not."""
