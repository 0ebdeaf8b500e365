"""Create an object.

Input: a call and a canonical, defaulted document. Output: the stored document with its resourceVersion, or a
`StatusError`.

    create = admit_new, then create_admitted: name, prepare, validate, check, store
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mooring.api.document import Document
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.errors import already_exists, invalid_kind, plain_error
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.metadata import (
    drop_duplicate_owners,
    ensure_namespace,
    fill_system_fields,
    generated_name,
    wipe_system_fields,
)
from mooring.apiserver.registry.object_storage import WriteResult, check_document_size
from mooring.apiserver.resources import Resource
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import FieldError
from mooring.apiserver.validation.metadata import name_is_path_segment, validate_object_meta, validate_object_name
from mooring.apiserver.wire.canonical import forget_empty_lists
from mooring.client.errors import AlreadyExistsError
from mooring.store.interface import WriteConflict

GENERATED_NAME_TRIES_MAX = 8
GENERATED_NAME_RETRY_S = 1.0


class Created(NamedTuple):
    """A new object."""

    document: Document
    written: WriteResult | None
    """None if nothing was stored."""

    @property
    def answer(self) -> bytes | None:
        return self.written.answer if self.written is not None else None


async def create(context: RegistryContext, resource: Resource, call: Call, obj: Document) -> Created:
    """Create an object. `obj` is changed."""
    await admit_new(context, resource, call, obj)
    return await create_admitted(context, resource, call, obj)


async def admit_new(context: RegistryContext, resource: Resource, call: Call, obj: Document) -> None:
    """The first half: managed fields and mutating admission."""
    await context.run(resource.strategy, call, _begin, context, resource, call, obj)
    await context.admission.admit(Attempt(Operation.CREATE, call, obj, None))
    drop_duplicate_owners(obj["metadata"], call, is_after_admission=True)


def _begin(context: RegistryContext, resource: Resource, call: Call, obj: Document) -> None:
    check_document_size(obj, call)
    metadata = obj["metadata"]
    wipe_system_fields(metadata)
    ensure_namespace(resource.kind, metadata, call.namespace)
    drop_duplicate_owners(metadata, call, is_after_admission=False)
    context.stamp(resource, resource.strategy, call, None, obj)


async def create_admitted(context: RegistryContext, resource: Resource, call: Call, obj: Document) -> Created:
    """The second half: name, prepare, validate, check, store."""
    metadata = obj["metadata"]
    if metadata.get("name") or not metadata.get("generateName"):
        return await _create_named(context, resource, call, obj)
    return await _create_with_generated_name(context, resource, call, obj)


async def _create_named(context: RegistryContext, resource: Resource, call: Call, obj: Document) -> Created:
    kind, metadata = resource.kind, obj["metadata"]
    fill_system_fields(metadata, call, context.entropy)
    ensure_namespace(kind, metadata, call.namespace)
    reservation = await context.reserve(resource, call, obj, None)
    try:
        await context.run(resource.strategy, call, _prepare, resource, call, obj)
        await context.admission.check(Attempt(Operation.CREATE, call, obj, None))
        written = await _store(context, resource, call, obj)
        reservation.keep()
    finally:
        reservation.close()
    return Created(obj, written)


def _prepare(resource: Resource, call: Call, obj: Document) -> None:
    """Prepare, validate and normalize. Raises a 422."""
    strategy, metadata = resource.strategy, obj["metadata"]
    strategy.prepare_for_create(obj, call)
    result = strategy.validate_create(obj, call)
    errors = result.errors or _validate_address(strategy, metadata)
    if errors:
        raise invalid_kind(resource.kind, metadata.get("name", ""), errors)
    for text in result.warnings:
        call.warn(text)
    strategy.canonicalize(obj)
    if resource.struct is not None:
        forget_empty_lists(resource.struct, obj)


def _validate_address(strategy: Strategy, metadata: Document) -> Sequence[FieldError]:
    """Errors of the metadata of any object. They follow the errors of the kind's own rules."""
    if strategy.validates_metadata:
        return validate_object_name(metadata, name_is_path_segment, "metadata")
    return validate_object_meta(metadata, strategy.kind.is_namespaced, name_is_path_segment, "metadata")


async def _create_with_generated_name(
    context: RegistryContext, resource: Resource, call: Call, obj: Document
) -> Created:
    prefix = obj["metadata"]["generateName"]
    for tries_left in reversed(range(GENERATED_NAME_TRIES_MAX)):
        attempt = {**obj, "metadata": {**obj["metadata"], "name": generated_name(prefix, context.entropy)}}
        try:
            return await _create_named(context, resource, call, attempt)
        except AlreadyExistsError:
            if not tries_left:
                raise
    raise AssertionError("unreachable: the last try returns or raises")


async def _store(context: RegistryContext, resource: Resource, call: Call, obj: Document) -> WriteResult | None:
    """Store the object. None for a dry run."""
    kind, metadata = resource.kind, obj["metadata"]
    name = metadata["name"]
    existing = None
    if call.is_dry_run:  # preconditions are not checked for what is not stored
        existing = await context.object_storage.find(kind, call.namespace, name)
    else:
        if metadata.pop("resourceVersion", "") not in ("", "0") and call.verb == "create":
            raise plain_error("resourceVersion should not be set on objects to be created")
        try:
            written = await context.object_storage.create(kind, obj)
            metadata["resourceVersion"] = str(written.revision)
            return written
        except WriteConflict:
            existing = await context.object_storage.find(kind, call.namespace, name)
            if existing is None:
                raise already_exists(kind, name) from None
    if existing is not None:
        error = already_exists(kind, name)
        if metadata.get("generateName"):
            error.message += ", the server was not able to generate a unique name for the object"
            error.retry_after_s = GENERATED_NAME_RETRY_S
        if existing.document["metadata"].get("deletionTimestamp"):
            error.message = f"object is being deleted: {error.message}"
        raise error
    return None
