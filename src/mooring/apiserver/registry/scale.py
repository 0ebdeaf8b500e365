"""Update the Scale of an object: only its replicas change.

Input: a Scale, or a patch of one.
Output: the Scale of the object as it is stored now.

 1. The object is changed through its own strategy, on the condition that the Scale names.
 2. The writer of a Scale becomes the manager of the replicas, through the subresource `scale`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

from mooring.api.document import Document
from mooring.api.schema.types import struct_named
from mooring.apiserver.apply.kind_schema import kind_schema_of_struct
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.patch import apply_as
from mooring.apiserver.apply.update import SCALE_VERSION, parent_entries, scale_entries, write_managed_fields
from mooring.apiserver.call import Call
from mooring.apiserver.errors import invalid_object, other_uid
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.metadata import ensure_name, ensure_namespace
from mooring.apiserver.registry.patches import Patch, ReadDocument, patched_plain, read_patched
from mooring.apiserver.registry.update import change
from mooring.apiserver.resources import Resource
from mooring.client.interface import PatchForm


async def put_scale(context: RegistryContext, resource: Resource, call: Call, scale: Document) -> Document:
    """Scale an object by a whole Scale. The name in the Scale is checked before the object is read."""
    ensure_namespace(resource.kind, scale["metadata"], call.namespace)
    ensure_name(scale["metadata"], call)
    return await _scale(context, resource, call, lambda _: deepcopy(scale), None)


async def patch_scale(
    context: RegistryContext, resource: Resource, call: Call, requested: Patch, read: ReadDocument
) -> Document:
    """Scale an object by a patch of its Scale."""

    def make(have: Document) -> Document:
        if requested.form is PatchForm.APPLY:
            assert isinstance(requested.content, dict), "a body of server-side apply is checked when it is read"
            applied = apply_as(
                kind_schema_of_struct(struct_named("autoscaling", "Scale"), SCALE_VERSION, "Scale"),
                have,
                requested.content,
                manager=call.field_manager,
                api_version=SCALE_VERSION,
                kind="Scale",
                subresource=call.subresource,
                now=call.now,
                ignored=(),
                is_forced=call.is_forced,
            )
            return read(applied, None).document
        return read_patched(requested, patched_plain(requested, have, SCALE_VERSION, "Scale"), call, read)

    return await _scale(context, resource, call, make, requested)


async def _scale(
    context: RegistryContext,
    resource: Resource,
    call: Call,
    make_scale: Callable[[Document], Document],
    requested: Patch | None,
) -> Document:
    rules = resource.scale
    assert rules is not None, f"{resource.kind} has no scale"
    by_version = {resource.kind.api_version: rules.replicas_path}

    async def make(old: Document | None) -> Document:
        assert old is not None, "a scale never creates its object"
        have = rules.scale_of(resource.kind, old)
        managed = old["metadata"].get("managedFields") or []
        have["metadata"]["managedFields"] = scale_entries(managed, by_version)
        scale = make_scale(have)
        metadata = scale["metadata"]
        ensure_namespace(resource.kind, metadata, call.namespace)
        ensure_name(metadata, call)
        _check_uid(resource, call, scale, old)
        if requested is None or requested.form is not PatchForm.APPLY:
            writer = manager_id(call.field_manager, UPDATE, SCALE_VERSION, call.subresource)
            kind_schema = kind_schema_of_struct(struct_named("autoscaling", "Scale"), SCALE_VERSION, "Scale")
            write_managed_fields(kind_schema, have, scale, writer, call.now, (("status",),))
        errors = rules.validate(scale)
        if errors:
            raise invalid_object("Scale", "autoscaling", call.name, errors)
        new = rules.scaled(old, scale)
        entries = parent_entries(managed, metadata.get("managedFields") or [], resource.kind.api_version, by_version)
        if entries:
            new["metadata"]["managedFields"] = entries
        else:
            new["metadata"].pop("managedFields", None)
        return new

    through_object = replace(call, subresource="")
    changed = await change(context, resource, through_object, make)
    call.warnings[:] = through_object.warnings
    return rules.scale_of(resource.kind, changed.document)


def _check_uid(resource: Resource, call: Call, scale: Document, old: Document) -> None:
    requested, have = scale["metadata"].get("uid", ""), old["metadata"]["uid"]
    if requested and requested != have:
        raise other_uid(resource.kind, resource.kind.key(call.namespace, call.name), call.name, requested, have)
