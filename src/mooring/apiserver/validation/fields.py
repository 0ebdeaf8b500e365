"""Field errors: what is wrong with a field of an object, in the words of kube-apiserver.

Input: the path of a field, its value, and what is wrong with it. Output: a field error, one cause of a 422 response.

1. A field error is a value, not an exception: validation collects all of them.
2. Paths are plain texts (`spec.containers[0].image`, `metadata.labels`, `data[key]`), extended with f-strings.
3. Values print as in Go: texts quoted, numbers and booleans plain, everything else as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from mooring.api.field_errors import NO_PATH, quoted


class FaultKind(Enum):
    """The reason of a cause; `words` is how its message begins."""

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

    def __init__(self, reason: str, words: str) -> None:
        self.reason = reason
        self.words = words


_VALUELESS = frozenset(
    {FaultKind.REQUIRED, FaultKind.FORBIDDEN, FaultKind.TOO_LONG, FaultKind.TOO_SHORT, FaultKind.INTERNAL}
)


class _NoValue:
    """The value of a fault that tells none."""


NO_VALUE = _NoValue()


class Verbatim(str):
    """A value whose Go print is known and is no JSON (`0x0`): it is printed as it stands."""


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong with one field."""

    kind: FaultKind
    field: str
    detail: str = ""
    value: object = NO_VALUE

    @property
    def body(self) -> str:
        """The fault without its field."""
        text = self.kind.words
        if self.kind not in _VALUELESS and self.value is not NO_VALUE:
            text = f"{text}: {go_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def message(self) -> str:
        return f"{self.field or NO_PATH}: {self.body}"


def not_found(field: str, value: object) -> Fault:
    return Fault(FaultKind.NOT_FOUND, field, "", value)


def required(field: str, detail: str = "") -> Fault:
    return Fault(FaultKind.REQUIRED, field, detail)


def duplicate(field: str, value: object) -> Fault:
    return Fault(FaultKind.DUPLICATE, field, "", value)


def invalid(field: str, value: object, detail: str) -> Fault:
    return Fault(FaultKind.INVALID, field, detail, value)


def type_invalid(field: str, value: object, detail: str) -> Fault:
    return Fault(FaultKind.TYPE_INVALID, field, detail, value)


def not_supported(field: str, value: object, supported: Iterable[str]) -> Fault:
    """Kubernetes lists sorted choices almost everywhere: sort them before you come here."""
    choices = ", ".join(quoted(choice) for choice in supported)
    return Fault(FaultKind.NOT_SUPPORTED, field, f"supported values: {choices}" if choices else "", value)


def forbidden(field: str, detail: str) -> Fault:
    return Fault(FaultKind.FORBIDDEN, field, detail)


def too_long(field: str, length_max: int, unit: str = "byte") -> Fault:
    """`unit` is `byte` or `character`."""
    return Fault(FaultKind.TOO_LONG, field, f"may not be more than {length_max} {unit}{'' if length_max == 1 else 's'}")


def too_short(field: str, length_min: int, unit: str = "character") -> Fault:
    return Fault(FaultKind.TOO_SHORT, field, f"must be at least {length_min} {unit}{'' if length_min == 1 else 's'}")


def too_many(field: str, count: int, count_max: int) -> Fault:
    plural = "" if count_max == 1 else "s"
    return Fault(FaultKind.TOO_MANY, field, f"must have at most {count_max} item{plural}", count)


def too_few(field: str, count: int, count_min: int) -> Fault:
    plural = "" if count_min == 1 else "s"
    return Fault(FaultKind.TOO_FEW, field, f"must have at least {count_min} item{plural}", count)


def internal(field: str, detail: str) -> Fault:
    return Fault(FaultKind.INTERNAL, field, detail)


def aggregated(faults: Sequence[Fault]) -> str:
    """All faults in one text, each told once."""
    messages = list(dict.fromkeys(fault.message for fault in faults))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


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


def go_json(value: object, *, is_sorted: bool = False) -> str:
    """JSON as Go writes it: `<`, `>` and `&` escaped; keys in order if it is no struct."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=is_sorted)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
