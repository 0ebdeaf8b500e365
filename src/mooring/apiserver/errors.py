"""Errors of the API server, with the texts of kube-apiserver v1.36, and errors of the store as HTTP errors."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from mooring.api.field_errors import NO_PATH, quoted
from mooring.api.kinds import CORE_EVENT, EVENT, Kind
from mooring.apiserver.validation.fields import FieldError, FieldErrorType, Verbatim, aggregated, invalid
from mooring.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusCause,
    StatusError,
    TooManyRequestsError,
)
from mooring.store.interface import (
    OutcomeUnknown,
    RevisionAhead,
    RevisionGone,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreUnreachable,
    ValueTooLarge,
    WriteRefused,
)

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter."
)
_AHEAD_RETRY_S = 1.0


def not_found(kind: Kind, name: str) -> NotFoundError:
    return NotFoundError(f"{kind.resource} {quoted(name)} not found", details=_details(kind, name))


def already_exists(kind: Kind, name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"{kind.resource} {quoted(name)} already exists", details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str = MODIFIED, *, subresource: str = "") -> ConflictError:
    below = f"/{subresource}" if subresource else ""
    return ConflictError(
        f'Operation cannot be fulfilled on {kind.resource}{below} "{name}": {why}',
        details=_details(kind, name, f"{kind.plural}{below}"),
    )


def other_uid(kind: Kind, key: str, name: str, expected: str, found: object) -> ConflictError:
    """The object has another uid: the expected one was deleted, and another was created with its name."""
    failed = f"Precondition failed: UID in precondition: {expected}, UID in object meta: {found}"
    return conflict(
        kind,
        name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {failed}",
    )


def other_uid_in_deletion(kind: Kind, name: str, expected: str, found: object) -> ConflictError:
    return _deletion_conflict(
        kind,
        name,
        f"the UID in the precondition ({expected}) does not match the UID in record ({found}). "
        "The object might have been deleted and then recreated",
    )


def other_revision_in_deletion(kind: Kind, name: str, expected: str, found: int) -> ConflictError:
    return _deletion_conflict(
        kind,
        name,
        f"the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record ({found}). "
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


def other_namespace() -> BadRequestError:
    return BadRequestError("the namespace of the provided object does not match the namespace sent on the request")


def list_gone(error: RevisionGone, *, is_continued: bool) -> ExpiredError:
    return ExpiredError(_CONTINUE_EXPIRED if is_continued else f"too old resource version: {error.requested}")


def watch_gone(error: RevisionGone) -> ExpiredError:
    return ExpiredError(f"too old resource version: {error.requested} ({error.oldest})")


def ahead(error: RevisionAhead, *, is_exact: bool = False) -> StatusError:
    """`is_exact`: the client requested exactly this revision, and gets no time for a retry."""
    return ServerError(
        f"Timeout: Too large resource version: {error.requested}, current: {error.current}",
        code=504,
        reason="Timeout",
        causes=[StatusCause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after_s=None if is_exact else _AHEAD_RETRY_S,
    )


def _details(kind: Kind, name: str, kind_name: str = "") -> dict[str, str]:
    details = {"name": name, "kind": kind_name or kind.plural}
    return {**details, "group": kind.group} if kind.group else details


STORE_RETRY_S = 1.0


FIELD_ERRORS_LISTED_MAX = 1_000
"""Field errors in one response; the message says how many more there are. A large object can have 100,000."""


def invalid_object(kind_name: str, group: str, name: str, errors: Sequence[FieldError]) -> InvalidError:
    """422, with all field errors. `kind_name` is the kind, in a few places the resource."""
    full = f"{kind_name}.{group}" if group else kind_name
    if len(errors) > FIELD_ERRORS_LISTED_MAX:
        more = f"{len(errors) - FIELD_ERRORS_LISTED_MAX} more errors are not listed"
        errors = [*errors[:FIELD_ERRORS_LISTED_MAX], FieldError(FieldErrorType.INVALID, NO_PATH, more)]
    details = {"name": name, "group": group, "kind": kind_name}
    return InvalidError(
        f"{full} {quoted(name)} is invalid: {aggregated(errors)}",
        causes=[StatusCause(error.kind.reason, error.body, error.field) for error in errors],
        details={field: value for field, value in details.items() if value},
    )


def invalid_kind(kind: Kind, name: str, errors: Sequence[FieldError]) -> InvalidError:
    # Both event APIs share their rules, which speak of core events.
    group = "" if kind is EVENT else kind.group
    return invalid_object(kind.kind, group, name, errors)


def revision_required(kind: Kind, name: str) -> InvalidError:
    """The error for a PUT without a resourceVersion, for kinds that require one."""
    error = invalid("metadata.resourceVersion", Verbatim("0"), "must be specified for an update")
    return invalid_object(kind.plural, kind.group, name, [error])


def forbidden(kind: Kind, name: str, why: str) -> ForbiddenError:
    named = f'{kind.resource} "{name}"' if name else kind.resource
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return ForbiddenError(
        f"{named} is forbidden: {why}", details={field: value for field, value in details.items() if value}
    )


def internal(text: str) -> ServerError:
    return ServerError(f"Internal error occurred: {text}", causes=[StatusCause("", text, "")])


def plain_error(text: str) -> ServerError:
    """An error that kube-apiserver did not foresee: its text, with nothing around it."""
    return ServerError(text, reason="")


def uid_mismatch_on_create(kind: Kind, name: str, uid: object) -> ConflictError:
    why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    return conflict(kind, name, why)


def no_such_thing() -> NotFoundError:
    return NotFoundError("the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    return StatusError(
        "the server does not allow this method on the requested resource",
        code=405,
        reason="MethodNotAllowed",
        details={},
    )


def method_not_supported(kind: Kind, verb: str) -> StatusError:
    """As `method_not_allowed`, for custom kinds, whose message differs."""
    return StatusError(
        f'{verb} is not supported on resources of kind "{kind.resource}"',
        code=405,
        reason="MethodNotAllowed",
        details={"group": kind.group, "kind": kind.plural},
    )


def store_error_status(error: StoreError) -> StatusError:
    """The status that a client gets for an error of the store."""
    match error:
        case ValueTooLarge():
            return StatusError(f"Request entity too large: {error}", code=413, reason="RequestEntityTooLarge")
        case StoreBusy():
            return TooManyRequestsError(str(error), retry_after_s=STORE_RETRY_S)
        case StoreClosed() | StoreUnreachable():
            return ServerError(str(error), code=503, reason="ServiceUnavailable", retry_after_s=STORE_RETRY_S)
        case OutcomeUnknown():
            return ServerError(f"Timeout: {error}", code=504, reason="Timeout")
        case WriteRefused():
            return ServerError(str(error), code=507, reason="InsufficientStorage")
        case _:
            return ServerError(f"Internal error occurred: {error}")


class _StoreErrors:
    """Converts errors of the store to errors of a client."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, StoreError):
            raise store_error_status(error) from error


STORE_ERRORS = _StoreErrors()
