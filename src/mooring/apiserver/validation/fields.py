"""Field errors: what is wrong with a field of an object, as kube-apiserver reports it.

Input: the path of a field, its value, and what is wrong with it. Output: a field error, one cause of a 422 response.

1. A field error is a value, not an exception: validation collects all of them.
2. Paths are plain texts (`spec.containers[0].image`, `metadata.labels`, `data[key]`), extended with f-strings.
3. Values print as in Go: texts quoted, numbers and booleans plain, everything else as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from mooring.api import field_errors
from mooring.api.field_errors import NO_PATH, go_json, quoted


class FieldErrorType(Enum):
    """The reason of a cause; `prefix` is how its message begins."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_SHORT = ("FieldValueTooShort", "Too short")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TOO_FEW = ("FieldValueTooFew", "Too few")
    INTERNAL = ("InternalError", "Internal error")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")

    def __init__(self, reason: str, prefix: str) -> None:
        self.reason = reason
        self.prefix = prefix


_VALUELESS = frozenset(
    {
        FieldErrorType.REQUIRED,
        FieldErrorType.FORBIDDEN,
        FieldErrorType.TOO_LONG,
        FieldErrorType.TOO_SHORT,
        FieldErrorType.INTERNAL,
    }
)


class _NoValue:
    """The value of an error that has none."""


NO_VALUE = _NoValue()


class Verbatim(str):
    """A value that prints as is, because Go prints it in a form that is no JSON (`0x0`)."""


class FieldError(msgspec.Struct, frozen=True):
    """One error of one field."""

    kind: FieldErrorType
    field: str
    detail: str = ""
    value: object = NO_VALUE

    @property
    def body(self) -> str:
        """The error without its field."""
        text = self.kind.prefix
        if self.kind not in _VALUELESS and self.value is not NO_VALUE:
            text = f"{text}: {go_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def message(self) -> str:
        return f"{self.field or NO_PATH}: {self.body}"


def not_found(field: str, value: object) -> FieldError:
    return FieldError(FieldErrorType.NOT_FOUND, field, "", value)


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(FieldErrorType.REQUIRED, field, detail)


def duplicate(field: str, value: object) -> FieldError:
    return FieldError(FieldErrorType.DUPLICATE, field, "", value)


def first_positions(values: Iterable[str]) -> dict[str, int]:
    """Where each value occurs for the first time: any other position is a duplicate."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        first.setdefault(value, index)
    return first


def invalid(field: str, value: object, detail: str) -> FieldError:
    return FieldError(FieldErrorType.INVALID, field, detail, value)


def type_invalid(field: str, value: object, detail: str) -> FieldError:
    return FieldError(FieldErrorType.TYPE_INVALID, field, detail, value)


def not_supported(field: str, value: object, supported: Iterable[str]) -> FieldError:
    """Callers sort `supported`, as Kubernetes does almost everywhere."""
    choices = ", ".join(quoted(choice) for choice in supported)
    return FieldError(FieldErrorType.NOT_SUPPORTED, field, f"supported values: {choices}" if choices else "", value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(FieldErrorType.FORBIDDEN, field, detail)


def too_long(field: str, bytes_max: int) -> FieldError:
    plural = "" if bytes_max == 1 else "s"
    return FieldError(FieldErrorType.TOO_LONG, field, f"may not be more than {bytes_max} byte{plural}")


def too_many(field: str, count: int, count_max: int) -> FieldError:
    plural = "" if count_max == 1 else "s"
    return FieldError(FieldErrorType.TOO_MANY, field, f"must have at most {count_max} item{plural}", count)


def too_few(field: str, count: int, count_min: int) -> FieldError:
    plural = "" if count_min == 1 else "s"
    return FieldError(FieldErrorType.TOO_FEW, field, f"must have at least {count_min} item{plural}", count)


def internal(field: str, detail: str) -> FieldError:
    return FieldError(FieldErrorType.INTERNAL, field, detail)


def aggregated(errors: Sequence[FieldError]) -> str:
    """All errors in one text, without duplicates."""
    return field_errors.aggregated(error.message for error in errors)


def go_value(value: object) -> str:
    """A value as Kubernetes prints it in a message."""
    match value:
        case Verbatim():
            return str(value)
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        case _:
            return go_json(value)
