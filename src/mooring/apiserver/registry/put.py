"""Replace an object by the one in the body (PUT).

Input: a call, and a function that reads the body again for each attempt.
Output: the object as it is stored now, and whether it is a new one.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.registry.metadata import drop_duplicate_owners, ensure_name, ensure_namespace
from mooring.apiserver.registry.object_storage import check_document_size
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.registry.update import Changed, change
from mooring.apiserver.resources import Resource

ReadBody = Callable[[], Document]
"""The body as a document, a fresh one each time."""


async def put(parts: Parts, resource: Resource, call: Call, read_body: ReadBody) -> Changed:
    """Replace an object, in whole or through a subresource."""
    strategy = resource.strategies[call.subresource] if call.subresource else resource.strategy
    found = await parts.object_storage.find(resource.kind, call.namespace, call.name)
    first: Document | None = await parts.run(strategy, call, read_body)
    assert first is not None
    uid = first["metadata"].get("uid", "")
    _check(resource, call, first)

    async def make(old: Document | None) -> Document:
        nonlocal first
        new, first = first, None
        if new is None:
            new = await parts.run(strategy, call, read_body)
            _check(resource, call, new)
        await parts.run(strategy, call, stamp, old, new)
        return new

    def stamp(old: Document | None, new: Document) -> None:
        check_document_size(new, call)
        parts.stamp(resource, strategy, call, old, new)

    return await change(parts, resource, call, make, uid=uid, found=found)


def _check(resource: Resource, call: Call, obj: Document) -> None:
    metadata = obj["metadata"]
    ensure_namespace(resource.kind, metadata, call.namespace)
    ensure_name(metadata, call)
    drop_duplicate_owners(metadata, call, is_after_admission=False)
