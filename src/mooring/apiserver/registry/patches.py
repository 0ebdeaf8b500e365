"""Apply patches to objects.

Input: a patch in one of four forms, and the object as it is.
Output: the patched object, canonical and defaulted, with its managed fields; or a `StatusError`.

 1. A patch applies to the object as clients see it; the result is decoded like a body.
 2. Server-side apply may create the object; the other forms need one.
 3. What does not fit the kind is an error of the patch (422), not of a body (400).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.field_errors import go_json, go_text
from mooring.api.patching.json_patch import COPIED_BYTES_MAX, PatchError, apply_json_patch, apply_merge_patch
from mooring.api.patching.strategic import apply_strategic_patch
from mooring.apiserver.apply.patch import apply_patch, unreadable
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.errors import invalid_object, not_found, plain_error, uid_mismatch_on_create
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.metadata import ensure_name, ensure_namespace
from mooring.apiserver.registry.object_storage import check_document_size
from mooring.apiserver.registry.update import Changed, change
from mooring.apiserver.resources import DecodedDocument, Resource
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import invalid
from mooring.apiserver.wire.examine import DecodingError
from mooring.apiserver.wire.yaml_text import sorted_keys
from mooring.client.errors import BadRequestError, InvalidError, StatusError
from mooring.client.interface import PatchForm

JSON_PATCH_STEPS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch that was read; `strict_errors` are unknown and repeated fields of its own."""

    form: PatchForm
    content: object
    strict_errors: tuple[str, ...] = ()


ReadDocument = Callable[[Document, Document | None], DecodedDocument]
"""From plain JSON, and the object before the patch if it has parts of it, to a canonical document of the kind. Raises
`DecodingError` with Go's words if it does not fit."""


async def patch(
    context: RegistryContext, resource: Resource, call: Call, requested: Patch, read: ReadDocument
) -> Changed:
    """Patch an object; server-side apply creates it if it is missing."""
    strategy = resource.strategies[call.subresource] if call.subresource else resource.strategy
    if _copies(requested):
        call.size_bytes = max(call.size_bytes, COPIED_BYTES_MAX)

    async def make(old: Document | None) -> Document:
        return await context.run(strategy, call, patched, old)

    def patched(old: Document | None) -> Document:
        if requested.form is PatchForm.APPLY:
            new = _applied(context, resource, strategy, call, requested, old, read)
        else:
            if old is None:  # also of kinds that a PUT may create
                raise not_found(resource.kind, call.name)
            new = _patched(resource, strategy, call, requested, old, read)
        check_document_size(new, call)
        metadata = new["metadata"]
        if old is None and metadata.get("uid"):
            raise uid_mismatch_on_create(resource.kind, call.name, metadata["uid"])
        ensure_namespace(resource.kind, metadata, call.namespace)
        ensure_name(metadata, call)
        if requested.form is not PatchForm.APPLY:
            context.stamp(resource, strategy, call, old, new)
        return new

    may_create = requested.form is PatchForm.APPLY and not call.subresource
    return await change(context, resource, call, make, may_create=may_create)


def _copies(requested: Patch) -> bool:
    """Whether the result may be much larger than the patch and the object."""
    steps = requested.content if requested.form is PatchForm.JSON else None
    return isinstance(steps, list) and any(isinstance(step, dict) and step.get("op") == "copy" for step in steps)


def _applied(
    context: RegistryContext,
    resource: Resource,
    strategy: Strategy,
    call: Call,
    requested: Patch,
    old: Document | None,
    read: ReadDocument,
) -> Document:
    assert isinstance(requested.content, dict), "a body of server-side apply is checked when it is read"
    merged = apply_patch(resource.merge_schema, old, requested.content, call, strategy.ignored_fields)
    try:
        new = read(merged, None).document
    except DecodingError as error:
        raise unreadable(requested.content, resource.kind.api_version, resource.kind.kind, str(error)) from None
    strategy.default(new)
    return new


def _patched(
    resource: Resource, strategy: Strategy, call: Call, requested: Patch, old: Document, read: ReadDocument
) -> Document:
    plain = patched_plain(requested, old, resource.kind.api_version, resource.kind.kind)
    if resource.struct is None:
        plain = sorted_keys(plain)  # without a type, fields have no order of their own
    new = read_patched(requested, plain, call, read, old, is_custom=resource.struct is None)
    strategy.default_update(new, old)
    return new


def patched_plain(requested: Patch, old: Document, api_version: str, kind: str) -> Document:
    """A document after a patch, before it is decoded by its kind."""
    try:
        match requested.form:
            case PatchForm.JSON:
                if isinstance(requested.content, list) and len(requested.content) > JSON_PATCH_STEPS_MAX:
                    raise _too_many_steps(len(requested.content))
                return apply_json_patch(old, requested.content)
            case PatchForm.MERGE:
                return apply_merge_patch(old, requested.content)
            case _:
                return apply_strategic_patch(old, requested.content, api_version, kind)
    except PatchError as error:
        raise _refused(error) from None


def read_patched(
    requested: Patch,
    plain: Document,
    call: Call,
    read: ReadDocument,
    old: Document | None = None,
    *,
    is_custom: bool = False,
) -> Document:
    """The patched object, decoded by its kind. Unknown fields are warnings or errors."""

    def unreadable(detail: str) -> StatusError:
        return invalid_object("", "", "", [invalid("patch", _shown(requested, plain, read, old, is_custom), detail)])

    try:
        reading = read(plain, old)
    except DecodingError as error:
        raise unreadable(str(error)) from None
    strict = (*requested.strict_errors, *reading.strict_errors)
    if strict and call.field_validation is FieldValidation.STRICT:
        raise unreadable(f"strict decoding error: {', '.join(strict)}")
    if call.field_validation is FieldValidation.WARN:
        for text in strict:
            call.warn(text)
    return reading.document


def _shown(requested: Patch, plain: Document, read: ReadDocument, old: Document | None, is_custom: bool) -> str:
    """What a message shows: the strategic patch, or the object in the order of its type; of its keys if it has none."""
    if requested.form is PatchForm.STRATEGIC:
        return go_text(requested.content)
    if old is not None and not is_custom:
        # Defaults are stored behind everything else: reading puts them in their places.
        plain = patched_plain(requested, read(old, None).document, "", "")
    return go_json(plain, is_sorted=is_custom)


def _refused(error: PatchError) -> StatusError:
    match error.code:
        case 400:
            return BadRequestError(error.status_message)
        case 422:
            return InvalidError(error.status_message, details={})
        case _:
            return plain_error(error.status_message)


def _too_many_steps(count: int) -> StatusError:
    return StatusError(
        f"The allowed maximum operations in a JSON patch is {JSON_PATCH_STEPS_MAX}, got {count}",
        code=413,
        reason="RequestEntityTooLarge",
    )
