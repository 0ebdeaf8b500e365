"""Errors of the registry, with the texts of kube-apiserver v1.36, and errors of the store as HTTP errors.

Errors that storage raises, too, are in `mooring.apiserver.storage.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.field_errors import NO_PATH, quoted
from mooring.api.kinds import EVENT, Kind
from mooring.apiserver.validation.fields import FieldError, FieldErrorType, Verbatim, aggregated, invalid
from mooring.client.errors import (
    BadRequestError,
    Cause,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusError,
    TooManyRequestsError,
)
from mooring.store.interface import (
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreUnreachable,
    ValueTooLarge,
    WriteRefused,
)

STORE_RETRY_S = 1.0
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


FIELD_ERRORS_LISTED_MAX = 1_000
"""Field errors in one response; the message says how many more there are. A large object can have 100,000."""


def invalid_object(called: str, group: str, name: str, errors: Sequence[FieldError]) -> InvalidError:
    """422, with all field errors. `called` is the kind, in rare places the resource."""
    full = f"{called}.{group}" if group else called
    if len(errors) > FIELD_ERRORS_LISTED_MAX:
        more = f"{len(errors) - FIELD_ERRORS_LISTED_MAX} more errors are not listed"
        errors = [*errors[:FIELD_ERRORS_LISTED_MAX], FieldError(FieldErrorType.INVALID, NO_PATH, more)]
    details = {"name": name, "group": group, "kind": called}
    return InvalidError(
        f"{full} {quoted(name)} is invalid: {aggregated(errors)}",
        causes=[Cause(error.kind.reason, error.body, error.field) for error in errors],
        details={field: value for field, value in details.items() if value},
    )


def invalid_kind(kind: Kind, name: str, errors: Sequence[FieldError]) -> InvalidError:
    # Both event APIs share their rules, which speak of core events.
    group = "" if kind is EVENT else kind.group
    return invalid_object(kind.kind, group, name, errors)


def revision_required(kind: Kind, name: str) -> InvalidError:
    """A kind that is only replaced by those who know what they replace."""
    error = invalid("metadata.resourceVersion", Verbatim("0"), "must be specified for an update")
    return invalid_object(kind.plural, kind.group, name, [error])


def forbidden(kind: Kind, name: str, why: str) -> ForbiddenError:
    named = f'{kind.resource} "{name}"' if name else kind.resource
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return ForbiddenError(
        f"{named} is forbidden: {why}", details={field: value for field, value in details.items() if value}
    )


def internal(text: str) -> ServerError:
    return ServerError(f"Internal error occurred: {text}", causes=[Cause("", text, "")])


def plain_error(text: str) -> ServerError:
    """An error that kube-apiserver did not foresee: its text, with nothing around it."""
    return ServerError(text, reason="")


def uid_mismatch_on_create(kind: Kind, name: str, uid: object) -> ConflictError:
    why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    return ConflictError(
        f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}', details=_details(kind, name)
    )


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
    """The same for kinds that users define, in other words."""
    return StatusError(
        f'{verb} is not supported on resources of kind "{kind.resource}"',
        code=405,
        reason="MethodNotAllowed",
        details={"group": kind.group, "kind": kind.plural},
    )


def other_namespace() -> BadRequestError:
    return BadRequestError("the namespace of the provided object does not match the namespace sent on the request")


def _details(kind: Kind, name: str) -> dict[str, str]:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {field: value for field, value in details.items() if value}


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
