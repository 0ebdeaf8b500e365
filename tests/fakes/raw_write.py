"""Create and update objects for the fake client: what an API server adds, preserves and rejects.

Input: a body or a patch, the stored object, and time and uid from the caller. Output: the new object, or a
`StatusError`.

 1. The server owns uid, generation and the timestamps of creation and deletion. Values of a client are ignored, except
    that a wrong uid means another object.
 2. The status of a kind with a status subresource changes only through it, and through it only the status and
    annotations change: that is how a Deployment gets its revision.
 3. `generation` counts the changes of everything but metadata and status.
 4. An object that is being deleted is removed with its last finalizer.

Nothing is defaulted, admitted or validated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mooring.api.kinds import Kind
from mooring.api.patching import PatchError, apply_json_patch, apply_merge_patch, apply_strategic_patch
from mooring.apiserver.storage.errors import (
    conflict,
    invalid,
    no_such_subresource,
    other_name,
    other_namespace,
    other_uid,
)
from mooring.apiserver.storage.stored_form import PlainObject
from mooring.client.errors import BadRequestError, InvalidError, ServerError, StatusError
from mooring.client.interface import JsonObject, PatchForm

STATUS = "status"

# Set by the server and kept by it: an update can neither change nor remove them.
_SYSTEM_FIELDS = (
    "name",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_OF_THE_SYSTEM = frozenset(_SYSTEM_FIELDS)
_NOT_WANTED = frozenset({"kind", "apiVersion", "metadata", STATUS})


def new_metadata(kind: Kind, namespace: str, body: JsonObject, *, uid: str, now: str) -> PlainObject:
    """The metadata of an object that is to be created; `name` is still missing if only a generateName is given."""
    given = metadata_of(body)
    if kind.is_namespaced and not namespace:
        raise BadRequestError("an empty namespace may not be set during creation")
    if kind.is_namespaced and given.get("namespace", namespace) not in (namespace, ""):
        raise other_namespace()
    if given.pop("resourceVersion", ""):
        raise BadRequestError("resourceVersion should not be set on objects to be created")
    name = given.get("name") or ""
    base = name or given.get("generateName")
    if not base:
        raise invalid(
            kind, "", "metadata.name", "Required value: name or generateName is required", reason="FieldValueRequired"
        )
    if "/" in str(base):
        # It would become a folder of the store, and its objects those of another namespace.
        raise invalid(kind, str(base), "metadata.name", f"Invalid value: \"{base}\": may not contain '/'")
    metadata: PlainObject = {"name": name}
    if kind.is_namespaced:
        metadata["namespace"] = namespace
    metadata["uid"] = uid
    if kind.has_generation:
        metadata["generation"] = 1
    metadata["creationTimestamp"] = now
    for field, value in given.items():
        if field not in _OF_THE_SYSTEM:
            metadata[field] = value
    return metadata


def check_kind(kind: Kind, body: JsonObject) -> None:
    """A body need not say what it is, but what it says must be right."""
    api_version, named = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
    if api_version != kind.api_version:
        raise BadRequestError(
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        )
    if named != kind.kind:
        raise BadRequestError(f"the kind in the data ({named}) does not match the expected kind ({kind.kind})")


def updated(
    kind: Kind, current: PlainObject, revision: int, body: JsonObject, *, key: str, subresource: str
) -> PlainObject:
    """The object after an update. Raises `ConflictError` if `body` was made from another state or object."""
    check_kind(kind, body)
    given, have = metadata_of(body), metadata_of(current)
    name = cast(str, have["name"])
    if given.get("name", name) != name:
        raise other_name(given.get("name"), name)
    if given.get("namespace") and given.get("namespace") != have.get("namespace"):
        raise other_namespace()
    if given.get("uid", have["uid"]) not in (have["uid"], ""):
        raise other_uid(kind, key, name, cast(str, given["uid"]), have["uid"])
    if given.get("resourceVersion") not in (None, "", str(revision)):
        raise conflict(kind, name)
    return _merged(kind, current, body, given, subresource)


def patched(
    kind: Kind, current: PlainObject, revision: int, patch: object, form: PatchForm, *, subresource: str
) -> PlainObject:
    """The object after a patch. A patch that names a resourceVersion applies to that one only."""
    have = metadata_of(current)
    name = cast(str, have["name"])
    # Patches may test and name the resourceVersion, so it must be there to be seen.
    result = _applied(kind, {**current, "metadata": {**have, "resourceVersion": str(revision)}}, patch, form)
    given = result.get("metadata")
    if not isinstance(given, dict):
        raise invalid(kind, name, "metadata", "Invalid value: must be an object")
    check_kind(kind, result)
    if given.get("name") != name:
        raise other_name(given.get("name"), name)
    if given.get("namespace") != have.get("namespace"):
        raise other_namespace()
    if given.get("uid") != have["uid"]:
        raise invalid(kind, name, "metadata.uid", f'Invalid value: "{given.get("uid")}": field is immutable')
    if given.get("resourceVersion") not in (None, "", str(revision)):
        raise conflict(kind, name)
    return _merged(kind, current, result, dict(given), subresource)


def is_finished(current: PlainObject, result: PlainObject) -> bool:
    """Whether the object only waited for the finalizers that `result` has no more."""
    have, new = metadata_of(current), metadata_of(result)
    return (
        bool(have.get("deletionTimestamp")) and not have.get("deletionGracePeriodSeconds") and not new.get("finalizers")
    )


def _merged(
    kind: Kind, current: PlainObject, body: Mapping[str, object], given: PlainObject, subresource: str
) -> PlainObject:
    if subresource == STATUS and kind.has_status:
        return _with_status_of(body, current, given)
    if subresource:
        raise no_such_subresource()
    result: PlainObject = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": None}
    result.update((field, value) for field, value in body.items() if field not in _NOT_WANTED)
    result["metadata"] = _kept_metadata(metadata_of(current), given)
    source = current if kind.has_status else body
    if STATUS in source:
        result[STATUS] = source[STATUS]
    if kind.has_generation and _is_otherwise_wanted(current, result):
        metadata = cast(PlainObject, result["metadata"])
        metadata["generation"] = cast(int, metadata.get("generation", 0)) + 1
    return result


def _with_status_of(body: Mapping[str, object], current: PlainObject, given: PlainObject) -> PlainObject:
    result = dict(current)
    have = metadata_of(current)
    annotations = given.get("annotations")
    if annotations and annotations != have.get("annotations"):
        result["metadata"] = {**have, "annotations": annotations}
    if STATUS in body:
        result[STATUS] = body[STATUS]
    else:
        result.pop(STATUS, None)
    return result


def _kept_metadata(have: PlainObject, given: PlainObject) -> PlainObject:
    metadata: PlainObject = {field: have[field] for field in _SYSTEM_FIELDS if field in have}
    for field, value in given.items():
        if field not in _SYSTEM_FIELDS and field != "resourceVersion":
            metadata[field] = value
    return metadata


def _is_otherwise_wanted(current: PlainObject, result: PlainObject) -> bool:
    # A field that is absent and one that is null are the same to Kubernetes.
    fields = dict.fromkeys((*current, *result))
    return any(current.get(field) != result.get(field) for field in fields if field not in _NOT_WANTED)


def _applied(kind: Kind, current: PlainObject, patch: object, form: PatchForm) -> PlainObject:
    try:
        match form:
            case PatchForm.JSON:
                return apply_json_patch(current, patch)
            case PatchForm.MERGE:
                return apply_merge_patch(current, patch)
            case PatchForm.STRATEGIC:
                return apply_strategic_patch(current, patch, kind.api_version, kind.kind)
            case PatchForm.APPLY:
                raise StatusError(
                    "server-side apply is not served in the process: send a merge, strategic or JSON patch",
                    code=415,
                    reason="UnsupportedMediaType",
                )
    except PatchError as error:
        raise _refused(error) from None


def _refused(error: PatchError) -> StatusError:
    match error.code:
        case 400:
            return BadRequestError(error.status_message)
        case 422:
            return InvalidError(error.status_message)
        case _:
            return ServerError(error.status_message)


def metadata_of(plain: Mapping[str, object]) -> PlainObject:
    """The metadata of an object, as a copy to be changed; empty if there is none."""
    metadata = plain.get("metadata")
    if isinstance(metadata, dict):  # as nearly always, and told at once: whether something is a Mapping is not
        return metadata.copy()
    return dict(metadata) if isinstance(metadata, Mapping) else {}
