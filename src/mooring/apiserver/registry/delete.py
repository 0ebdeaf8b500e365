"""Delete an object: at once, after a grace period, or when the last finalizer is removed.

Input: a call and DeleteOptions. Output: the object before the deletion or as it is stored now, or a Status; or a
`StatusError`.

   deleted       no grace period and no finalizers: removed from the store
   terminating   a grace period or finalizers: gets a deletionTimestamp, and is removed later
   unchanged     it is terminating already, and the request changes nothing

 1. A grace period can only be shortened.
 2. Finalizers of the garbage collector are set when the deletion begins, and not changed afterwards.
 3. The first deletion of a namespace or of a CustomResourceDefinition marks it as terminating. It is deleted when its
    contents are (`controllers.namespace`, `custom.establishing`). While `spec.finalizers` of a namespace has entries,
    further deletions change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from mooring.api.well_known import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.custom.naming import condition, with_condition
from mooring.apiserver.errors import (
    conflict,
    invalid_object,
    not_found,
    other_revision_in_deletion,
    other_uid_in_deletion,
)
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.object_storage import WRITE_TRIES_MAX, StoredObject
from mooring.apiserver.resources import Resource
from mooring.apiserver.strategy import DefaultPropagation
from mooring.apiserver.validation.fields import FieldError, invalid, not_supported
from mooring.kit.clock import format_rfc3339, parse_rfc3339
from mooring.store.interface import WriteConflict

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_DEFINITION_PENDING = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How an object is to be deleted, read from a body or a query."""

    grace_s: int | None = None
    uid: str | None = None
    revision: str | None = None
    orphans: bool | None = None
    propagation: str | None = None


class Deleted(NamedTuple):
    """The response, and whether the object is removed from the store."""

    document: Document
    is_gone: bool


async def delete(context: RegistryContext, resource: Resource, call: Call, options: DeleteOptions) -> Deleted:
    """Delete one object, or mark it as terminating."""
    kind = resource.kind
    if options.grace_s is not None and options.grace_s < 0:
        options = replace(options, grace_s=1)
    is_propagation_said = options.orphans is not None or options.propagation is not None
    for text in resource.strategy.warnings_on_delete(is_propagation_said=is_propagation_said):
        call.warn(text)
    for _ in range(WRITE_TRIES_MAX):
        found = await context.object_storage.find(kind, call.namespace, call.name)
        if found is None:
            raise not_found(kind, call.name)
        try:
            if kind is NAMESPACE:
                namespace = await _mark_namespace(context, resource, call, found, options)
                if namespace is not None:
                    return Deleted(namespace, False)
            if kind is CUSTOM_RESOURCE_DEFINITION and "deletionTimestamp" not in found.document["metadata"]:
                _check_marked_preconditions(resource, call, found, options)
                return Deleted(await mark_definition(context, resource, call, found), False)
            return await _deleted(context, resource, call, found, options)
        except WriteConflict as error:
            if error.current is None and not call.is_dry_run:
                # Another request has finished the deletion.
                return _answer(resource, found.document, is_gone=True)
    raise conflict(kind, call.name)


async def _deleted(
    context: RegistryContext, resource: Resource, call: Call, found: StoredObject, options: DeleteOptions
) -> Deleted:
    kind, obj, metadata = resource.kind, found.document, found.document["metadata"]
    _check_preconditions(resource, call, found, options)
    await context.admission.check_deletion(Attempt(Operation.DELETE, call, None, obj))
    ending = _ending(resource, call, obj, options)
    if ending is _PENDING:
        return _answer(resource, obj, is_gone=False)
    changed: Document = {**obj, "metadata": dict(metadata)}
    is_graceful = ending is not None
    if ending is not None:
        _mark_ending(changed["metadata"], ending)
    finalizers = _finalizers(resource, metadata, options)
    _set_finalizers(changed["metadata"], finalizers)
    if finalizers and not is_graceful:
        _mark_deleting(changed["metadata"], call)
    stays = bool(finalizers) or (ending is not None and ending.grace_s > 0)
    revision = found.revision
    if stays or (is_graceful and changed != obj):
        if not call.is_dry_run and changed != obj:
            revision = await context.object_storage.put(kind, changed, if_revision=revision)
            changed["metadata"]["resourceVersion"] = str(revision)
        if stays:
            return Deleted(changed, False)
    if call.is_dry_run:
        return _answer(resource, changed if is_graceful else obj, is_gone=True)
    gone_at = await context.object_storage.delete(kind, call.namespace, call.name, if_revision=revision)
    answered = changed if is_graceful else obj
    if is_graceful or resource.returns_deleted:
        answered["metadata"]["resourceVersion"] = str(gone_at)
    await context.released(resource, answered)
    return _answer(resource, answered, is_gone=True)


def _set_finalizers(metadata: Document, finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _check_preconditions(resource: Resource, call: Call, found: StoredObject, options: DeleteOptions) -> None:
    metadata = found.document["metadata"]
    if options.uid is not None and options.uid != metadata["uid"]:
        raise other_uid_in_deletion(resource.kind, call.name, options.uid, metadata["uid"])
    if options.revision is not None and options.revision != str(found.revision):
        raise other_revision_in_deletion(resource.kind, call.name, options.revision, found.revision)


# --- grace ------------------------------------------------------------------------------------------------------


class _GracePeriod(NamedTuple):
    """The grace period of the object, and when it ends."""

    grace_s: int
    at_s: float
    is_first: bool


_PENDING = _GracePeriod(-1, 0.0, False)
"""The object is terminating already, and the request does not change that."""


def _ending(resource: Resource, call: Call, obj: Document, options: DeleteOptions) -> _GracePeriod | None:
    """The grace period of a kind with graceful deletion; None for other kinds."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata:
        given_s = resource.strategy.graceful_s(obj, options.grace_s, call)
        return None if given_s is None else _GracePeriod(given_s, call.now_s + given_s, True)
    left_s = metadata.get("deletionGracePeriodSeconds")
    if not left_s:
        return None
    left_s = 1 if left_s < 0 else left_s
    if options.grace_s is None or options.grace_s >= left_s:
        return _PENDING
    began_s = parse_rfc3339(metadata["deletionTimestamp"]) - left_s
    at_s, grace_s = began_s + options.grace_s, options.grace_s
    if at_s < call.now_s:
        at_s, grace_s = call.now_s, min(1, grace_s)
    return _GracePeriod(grace_s, at_s, False)


def _mark_ending(metadata: Document, ending: _GracePeriod) -> None:
    metadata["deletionTimestamp"] = format_rfc3339(int(ending.at_s))
    metadata["deletionGracePeriodSeconds"] = ending.grace_s
    if ending.is_first and metadata.get("generation"):
        metadata["generation"] += 1


def _mark_deleting(metadata: Document, call: Call) -> None:
    """For kinds without a grace period that wait for finalizers."""
    if "deletionTimestamp" not in metadata:
        if metadata.get("generation"):
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = call.now
    metadata["deletionGracePeriodSeconds"] = 0


# --- dependents -------------------------------------------------------------------------------------------------


def _finalizers(resource: Resource, metadata: Document, options: DeleteOptions) -> list[str]:
    """The finalizers that the object waits for from now on."""
    have: list[str] = metadata.get("finalizers") or []
    if resource.strategy.dependents is DefaultPropagation.UNSUPPORTED:
        return have
    finalizers = [name for name in have if name not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    collector = _collector_finalizer(resource, have, options)
    return [*finalizers, collector] if collector else finalizers


def _collector_finalizer(resource: Resource, have: list[str], options: DeleteOptions) -> str:
    if options.orphans is not None:
        return ORPHAN_FINALIZER if options.orphans else ""
    match options.propagation:
        case "Orphan":
            return ORPHAN_FINALIZER
        case "Foreground":
            return FOREGROUND_FINALIZER
        case "Background":
            return ""
    for name in have:
        if name in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER):
            return name
    return ORPHAN_FINALIZER if resource.strategy.dependents is DefaultPropagation.ORPHAN else ""


# --- answers ----------------------------------------------------------------------------------------------------


def _answer(resource: Resource, obj: Document, *, is_gone: bool) -> Deleted:
    if resource.returns_deleted:
        return Deleted(obj, is_gone)
    kind, metadata = resource.kind, obj["metadata"]
    details = {"name": metadata["name"], "group": kind.group, "kind": kind.plural, "uid": metadata["uid"]}
    status: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {field: value for field, value in details.items() if value},
    }
    return Deleted(status, is_gone)


# --- namespaces and definitions: marked first, deleted when they are empty -----------------------------------------


async def _mark_namespace(
    context: RegistryContext, resource: Resource, call: Call, found: StoredObject, options: DeleteOptions
) -> Document | None:
    """The terminating namespace; None if it has no finalizers left and can be deleted."""
    namespace, metadata = found.document, found.document["metadata"]
    _check_marked_preconditions(resource, call, found, options)
    if "deletionTimestamp" in metadata:
        return namespace if namespace["spec"].get("finalizers") else None
    await context.admission.check_deletion(Attempt(Operation.DELETE, call, None, namespace))
    changed: Document = {
        **namespace,
        "metadata": {**metadata, "deletionTimestamp": call.now},
        "status": {**namespace.get("status", {}), "phase": "Terminating"},
    }
    _set_finalizers(changed["metadata"], _finalizers(resource, metadata, options))
    if not call.is_dry_run:
        written = await context.object_storage.put(resource.kind, changed, if_revision=found.revision)
        changed["metadata"]["resourceVersion"] = str(written)
    return changed


def _check_marked_preconditions(resource: Resource, call: Call, found: StoredObject, options: DeleteOptions) -> None:
    """Check the preconditions of a deletion. The messages differ for kinds that are marked as terminating first."""
    metadata, uid, revision = found.document["metadata"], options.uid, options.revision
    if uid is not None and uid != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        raise conflict(resource.kind, call.name, why)
    if revision is not None and revision != str(found.revision):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {revision}, "
            f"ResourceVersion in object meta: {found.revision}"
        )
        raise conflict(resource.kind, call.name, why)


async def mark_definition(context: RegistryContext, resource: Resource, call: Call, found: StoredObject) -> Document:
    """The terminating definition."""
    definition, metadata = found.document, found.document["metadata"]
    await context.admission.check(Attempt(Operation.DELETE, call, None, definition))
    finalizers = list(metadata.get("finalizers") or ())
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    pending = condition("Terminating", is_met=True, reason="InstanceDeletionPending", message=_DEFINITION_PENDING)
    changed: Document = {
        **definition,
        "metadata": {**metadata, "deletionTimestamp": call.now, "finalizers": finalizers},
        "status": with_condition(definition.get("status") or {}, pending, call.now),
    }
    if not call.is_dry_run:
        written = await context.object_storage.put(resource.kind, changed, if_revision=found.revision)
        changed["metadata"]["resourceVersion"] = str(written)
    return changed


# --- options --------------------------------------------------------------------------------------------------


META_GROUP = "meta.k8s.io"

_PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")


def checked_delete_options(document: Document) -> tuple[DeleteOptions, bool]:
    """Delete options from a document, and whether they are a dry run. Raises `InvalidError`."""
    check_delete_options(document)
    return delete_options(document), bool(document.get("dryRun"))


def check_delete_options(document: Document) -> None:
    """Raises `InvalidError` for invalid options."""
    orphans, propagation = document.get("orphanDependents"), document.get("propagationPolicy")
    errors: list[FieldError] = []
    if orphans is not None and propagation is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", propagation, detail))
    if propagation is not None and propagation not in _PROPAGATION_POLICIES:
        errors.append(not_supported("propagationPolicy", propagation, (*_PROPAGATION_POLICIES, "nil")))
    errors += validate_dry_run(document.get("dryRun") or [])
    if errors:
        raise invalid_object("DeleteOptions", META_GROUP, "", errors)


def delete_options(document: Document) -> DeleteOptions:
    """The options as they are, unchecked."""
    conditions = document.get("preconditions") or {}
    return DeleteOptions(
        grace_s=document.get("gracePeriodSeconds"),
        uid=conditions.get("uid"),
        revision=conditions.get("resourceVersion"),
        orphans=document.get("orphanDependents"),
        propagation=document.get("propagationPolicy"),
    )


def validate_dry_run(dry_runs: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in dry_runs):
        return []
    return [not_supported("dryRun", list(dry_runs), ("All",))]
