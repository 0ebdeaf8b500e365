"""The errors of storage and of write preconditions, with the messages of kube-apiserver v1.36."""

from __future__ import annotations

from mooring.api.field_errors import quoted
from mooring.api.kinds import CORE_EVENT, EVENT, Kind
from mooring.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    Cause,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusError,
)
from mooring.store.interface import RevisionAhead, RevisionGone

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter."
)
_AHEAD_RETRY_S = 1.0


def not_found(kind: Kind, name: str) -> NotFoundError:
    return NotFoundError(f"{kind.resource} {quoted(name)} not found", details=_details(kind, name))


def already_exists(kind: Kind, name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"{kind.resource} {quoted(name)} already exists", details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str = _MODIFIED, *, subresource: str = "") -> ConflictError:
    below = f"/{subresource}" if subresource else ""
    return ConflictError(
        f'Operation cannot be fulfilled on {kind.resource}{below} "{name}": {why}',
        details=_details(kind, name, f"{kind.plural}{below}"),
    )


def other_uid(kind: Kind, key: str, name: str, wanted: str, found: object) -> ConflictError:
    """The object of that name is another one: the one that was meant was deleted, and this one created since."""
    failed = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(
        kind,
        name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {failed}",
    )


def other_uid_in_deletion(kind: Kind, name: str, wanted: str, found: object) -> ConflictError:
    return _deletion_conflict(
        kind,
        name,
        f"the UID in the precondition ({wanted}) does not match the UID in record ({found}). "
        "The object might have been deleted and then recreated",
    )


def other_revision_in_deletion(kind: Kind, name: str, wanted: str, found: int) -> ConflictError:
    return _deletion_conflict(
        kind,
        name,
        f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). "
        "The object might have been modified",
    )


def _deletion_conflict(kind: Kind, name: str, why: str) -> ConflictError:
    # Kubernetes names the kind here where it names the resource elsewhere, and events of both groups as core's, which
    # is how it holds them.
    kind = CORE_EVENT if kind is EVENT else kind
    called = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return ConflictError(
        f'Operation cannot be fulfilled on {called} "{name}": {why}', details=_details(kind, name, kind.kind)
    )


def invalid(kind: Kind, name: str, field: str, problem: str, *, reason: str = "FieldValueInvalid") -> InvalidError:
    called = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return InvalidError(
        f'{called} "{name}" is invalid: {field}: {problem}',
        causes=[Cause(reason, problem, field)],
        details=_details(kind, name),
    )


def other_name(found: object, wanted: str) -> BadRequestError:
    return BadRequestError(f"the name of the object ({found}) does not match the name on the URL ({wanted})")


def other_namespace() -> BadRequestError:
    return BadRequestError("the namespace of the provided object does not match the namespace sent on the request")


def no_such_subresource() -> NotFoundError:
    return NotFoundError("the server could not find the requested resource")


def list_gone(error: RevisionGone, *, is_continued: bool) -> ExpiredError:
    return ExpiredError(_CONTINUE_EXPIRED if is_continued else f"too old resource version: {error.wanted}")


def watch_gone(error: RevisionGone) -> ExpiredError:
    return ExpiredError(f"too old resource version: {error.wanted} ({error.oldest})")


def ahead(error: RevisionAhead, *, is_exact: bool = False) -> StatusError:
    """`is_exact`: of a client who wants that very revision, and is not told to come back for it."""
    return ServerError(
        f"Timeout: Too large resource version: {error.wanted}, current: {error.current}",
        code=504,
        reason="Timeout",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after_s=None if is_exact else _AHEAD_RETRY_S,
    )


def _details(kind: Kind, name: str, called: str = "") -> dict[str, str]:
    details = {"name": name, "kind": called or kind.plural}
    return {**details, "group": kind.group} if kind.group else details
