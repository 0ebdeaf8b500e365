"""Update an object: replaced by a PUT, or changed by a patch, in whole or through a subresource.

Input: a call, and a function from the stored object to the new one.
Output: the object as it is stored now; or a `StatusError`.

 1. `make` may be called again, on the object of a concurrent write.
 2. A request that names a resourceVersion is for that state only: another one is a conflict.
 3. A terminating object is deleted when its last finalizer is removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.kinds import REGISTRY
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.apply.typed import is_same
from mooring.apiserver.apply.update import keep_unchanged_times
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.errors import conflict, invalid_kind, not_found, other_uid, plain_error, revision_required
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.create import create_admitted
from mooring.apiserver.registry.metadata import drop_duplicate_owners, ensure_name, ensure_namespace, keep_system_fields
from mooring.apiserver.registry.object_storage import WRITE_TRIES_MAX, StoredObject, WriteResult, check_document_size
from mooring.apiserver.resources import Resource
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.metadata import (
    name_is_path_segment,
    validate_object_meta,
    validate_object_meta_update,
)
from mooring.apiserver.wire.canonical import forget_empty_lists
from mooring.client.errors import AlreadyExistsError
from mooring.store.interface import WriteConflict

Make = Callable[[Document | None], Awaitable[Document]]
"""From the stored object (None: there is none) to the new object, with its managed fields."""


class Changed(NamedTuple):
    """The object after a change, and whether it is a new one."""

    document: Document
    is_created: bool = False
    written: WriteResult | None = None
    """None if nothing was stored, or a new object."""

    @property
    def answer(self) -> bytes | None:
        return self.written.answer if self.written is not None else None


async def change(
    context: RegistryContext,
    resource: Resource,
    call: Call,
    make: Make,
    *,
    may_create: bool = False,
    uid: str = "",
    found: StoredObject | None = None,
) -> Changed:
    """Change an object through the strategy of the call's subresource, or of the object itself.

    `found` is the object as the caller has just read it, for the first attempt.
    """
    kind = resource.kind
    strategy = resource.strategies[call.subresource] if call.subresource else resource.strategy
    may_create = may_create or strategy.allows_create_on_update
    for _ in range(WRITE_TRIES_MAX):
        found = found or await context.object_storage.find(kind, call.namespace, call.name)
        if found is None and not may_create:
            raise not_found(kind, call.name)
        if found is not None:
            call.size_bytes = max(call.size_bytes, len(found.value))
        have = found.document["metadata"]["uid"] if found is not None else ""
        if uid and uid != have:
            key = kind.key(call.namespace, call.name)
            # A dry run does not reach the store, which adds the prefix of its keys.
            key = f"/{key.removeprefix(REGISTRY)}" if call.is_dry_run else key
            raise other_uid(kind, key, call.name, uid, have)
        obj = await make(found.document if found is not None else None)
        try:
            if found is None:
                return Changed(await _created(context, resource, call, obj), is_created=True)
            return await _replaced(context, resource, strategy, call, found, obj)
        except _WrittenMeanwhile:
            found = None
    raise conflict(kind, call.name)


class _WrittenMeanwhile(Exception):
    """Another request wrote first."""


async def _created(context: RegistryContext, resource: Resource, call: Call, obj: Document) -> Document:
    await context.admission.admit(Attempt(Operation.CREATE, call, obj, None))
    drop_duplicate_owners(obj["metadata"], call, is_after_admission=True)
    try:
        return (await create_admitted(context, resource, call, obj)).document
    except AlreadyExistsError:
        raise _WrittenMeanwhile from None


async def _replaced(
    context: RegistryContext, resource: Resource, strategy: Strategy, call: Call, found: StoredObject, obj: Document
) -> Changed:
    old, metadata = found.document, obj["metadata"]
    await context.admission.admit(Attempt(Operation.UPDATE, call, obj, old))
    drop_duplicate_owners(metadata, call, is_after_admission=True)
    _check_revision(resource, strategy, call, metadata, found)
    reservation = await context.reserve(resource, call, obj, old)
    try:
        await context.run(strategy, call, _prepare, resource, strategy, call, obj, old)
        await context.admission.check(Attempt(Operation.UPDATE, call, obj, old))
        result = await _written(context, resource, call, found, obj)
        reservation.keep()
    except WriteConflict:
        raise _WrittenMeanwhile from None  # a request with a resourceVersion gets a conflict in the next attempt
    finally:
        reservation.close()
    return result


def _check_revision(
    resource: Resource, strategy: Strategy, call: Call, metadata: Document, found: StoredObject
) -> None:
    given = metadata.get("resourceVersion", "")
    if given in ("", "0"):
        if not strategy.allows_unconditional_update:
            raise revision_required(resource.kind, call.name)
        metadata["resourceVersion"] = str(found.revision)
    elif not (given.isascii() and given.isdecimal()):
        raise plain_error(f"strconv.ParseUint: parsing {quoted(given)}: invalid syntax")
    elif given != str(found.revision):
        raise conflict(resource.kind, call.name)


def _prepare(resource: Resource, strategy: Strategy, call: Call, obj: Document, old: Document) -> None:
    kind, metadata, old_metadata = resource.kind, obj["metadata"], old["metadata"]
    ensure_namespace(kind, metadata, call.namespace)
    if "generation" in old_metadata:
        metadata["generation"] = old_metadata["generation"]
    else:
        metadata.pop("generation", None)
    strategy.prepare_for_update(obj, old, call)
    metadata = obj["metadata"]
    keep_system_fields(metadata, old_metadata)
    errors = validate_object_meta(metadata, kind.is_namespaced, name_is_path_segment, "metadata", old_metadata)
    errors += validate_object_meta_update(metadata, old_metadata, "metadata")
    errors += strategy.validate_update(obj, old, call)
    if errors:
        raise invalid_kind(kind, call.name, errors)
    for text in strategy.warnings_on_update(obj, old, call):
        call.warn(text)
    strategy.canonicalize(obj)
    if resource.struct is not None:
        forget_empty_lists(resource.struct, obj)
    keep_unchanged_times(obj, old)


async def _written(
    context: RegistryContext, resource: Resource, call: Call, found: StoredObject, obj: Document
) -> Changed:
    """The object after the write; the stored one if nothing changed."""
    kind, old, metadata = resource.kind, found.document, obj["metadata"]
    if _is_finished(old["metadata"], metadata) and not resource.strategy.is_held(obj):
        if not call.is_dry_run:
            await context.object_storage.delete(kind, call.namespace, call.name, if_revision=found.revision)
        return Changed(obj)
    metadata["resourceVersion"] = str(found.revision)
    if await context.run(resource.strategy, call, _is_unchanged, obj, old):
        return Changed(old)
    if call.is_dry_run:
        return Changed(obj)
    written = await context.object_storage.replace(kind, obj, if_revision=found.revision)
    metadata["resourceVersion"] = str(written.revision)
    return Changed(obj, written=written)


def _is_unchanged(obj: Document, old: Document) -> bool:
    return obj == old and is_same(obj, old)  # in Python True equals 1


def _is_finished(old: Document, new: Document) -> bool:
    return (
        bool(old.get("deletionTimestamp")) and not old.get("deletionGracePeriodSeconds") and not new.get("finalizers")
    )


# --- PUT ------------------------------------------------------------------------------------------------------


ReadBody = Callable[[], Document]
"""The body as a document, a fresh one each time."""


async def put(context: RegistryContext, resource: Resource, call: Call, read_body: ReadBody) -> Changed:
    """Replace an object, in whole or through a subresource."""
    strategy = resource.strategies[call.subresource] if call.subresource else resource.strategy
    found = await context.object_storage.find(resource.kind, call.namespace, call.name)
    first: Document | None = await context.run(strategy, call, read_body)
    assert first is not None
    uid = first["metadata"].get("uid", "")
    _check(resource, call, first)

    async def make(old: Document | None) -> Document:
        nonlocal first
        new, first = first, None
        if new is None:
            new = await context.run(strategy, call, read_body)
            _check(resource, call, new)
        await context.run(strategy, call, stamp, old, new)
        return new

    def stamp(old: Document | None, new: Document) -> None:
        check_document_size(new, call)
        context.stamp(resource, strategy, call, old, new)

    return await change(context, resource, call, make, uid=uid, found=found)


def _check(resource: Resource, call: Call, obj: Document) -> None:
    metadata = obj["metadata"]
    ensure_namespace(resource.kind, metadata, call.namespace)
    ensure_name(metadata, call)
    drop_duplicate_owners(metadata, call, is_after_admission=False)
