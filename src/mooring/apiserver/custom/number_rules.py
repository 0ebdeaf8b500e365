"""Number rules: bounds, multiples and ranges of the numbers in a custom object.

Comes in   what a schema says of a number; a number
Goes out   what is wrong with it: message, path, and a function that makes the field error

 1. Whole numbers are compared with whole bounds: a bound is cut off first, as Go does.
 2. A bound that a value of the type could not have is an error of the object, too: nobody looks at it before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal

from mooring.api.document import Document
from mooring.api.field_errors import NO_PATH
from mooring.apiserver.validation.fields import FieldError, Verbatim, invalid

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_FLOAT32_MAX = 3.4028235677973366e38
_JSON_INTEGER_MAX = 2.0**53 - 1
_ROUNDING_ERROR_MAX = 1e-9

Found = tuple[str, str, Callable[[str], FieldError]]


class NumberRules:
    """What a schema says about a number."""

    def __init__(self, raw: Document, type_name: str, form: str) -> None:
        self._type = type_name if type_name in ("integer", "number") else ""
        self._format = form if self._type else ""
        self._multiple = raw.get("multipleOf")
        self._minimum, self._is_above = raw.get("minimum"), raw.get("exclusiveMinimum", False)
        self._maximum, self._is_below = raw.get("maximum"), raw.get("exclusiveMaximum", False)

    def findings(self, value: int | float, path: str) -> Iterator[Found]:
        yield from self._out_of_range(value, "Checked", path)
        if self._multiple is not None:
            yield from self._out_of_range(self._multiple, "MultipleOf", path)
            yield from self._no_multiple(value, self._multiple, path)
        if self._minimum is not None:
            yield from self._out_of_range(self._minimum, "Minimum boundary", path)
            bound = _bound(value, self._minimum)
            if value < bound or (self._is_above and value == bound):
                message = "should be greater than" if self._is_above else "should be greater than or equal to"
                yield _wrong(f"{path} in body {message} {number_text(bound)}", path, value)
        if self._maximum is not None:
            yield from self._out_of_range(self._maximum, "Maximum boundary", path)
            bound = _bound(value, self._maximum)
            if value > bound or (self._is_below and value == bound):
                message = "should be less than" if self._is_below else "should be less than or equal to"
                yield _wrong(f"{path} in body {message} {number_text(bound)}", path, value)

    def _out_of_range(self, value: int | float, called: str, path: str) -> Iterator[Found]:
        if self._fits(value):
            return
        form = f"with format {self._format}" if self._format else "(default format)"
        message = f"{called} value must be of type {self._type} {form} in {path}"
        yield message, NO_PATH, lambda field: invalid(field, "", message)

    def _fits(self, value: int | float) -> bool:
        if self._type == "integer":
            low, high = (_INT32_MIN, _INT32_MAX) if self._format == "int32" else (_INT64_MIN, _INT64_MAX)
            return float(value).is_integer() and low <= value <= high
        return self._format != "float" or abs(value) < _FLOAT32_MAX

    def _no_multiple(self, value: int | float, factor: int | float, path: str) -> Iterator[Found]:
        if isinstance(value, int):
            factor = int(factor)
        if factor <= 0:
            message = f"factor MultipleOf declared for {path} must be positive: {number_text(factor)}"
            yield _wrong(message, path, factor)
        elif not _is_multiple(value, factor):
            yield _wrong(f"{path} in body should be a multiple of {number_text(factor)}", path, value)


def number_text(value: int | float) -> str:
    """A number as Go prints it: the shortest text, with an exponent from a million on."""
    if isinstance(value, int):
        return str(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), f"{value} is no JSON number"
    text = "".join(map(str, digits))
    power = len(text) - 1 + exponent
    if value == 0 or -4 <= power < 6:
        return repr(value).removesuffix(".0") if value else "0"
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def is_whole(value: float) -> bool:
    """Whether a float can stand where a whole number is wanted."""
    return value.is_integer() and -_JSON_INTEGER_MAX - 1 <= value <= _JSON_INTEGER_MAX


def _bound(value: int | float, bound: int | float) -> int | float:
    return int(bound) if isinstance(value, int) else float(bound)


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if isinstance(value, int):
        return value % int(factor) == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    if not math.isfinite(quotient) or abs(quotient) > _JSON_INTEGER_MAX:
        return False
    whole = math.trunc(quotient)
    if quotient == whole:
        return True
    return whole != 0 and abs(quotient - whole) / (abs(quotient) + abs(whole)) < _ROUNDING_ERROR_MAX


def _wrong(message: str, path: str, value: int | float) -> Found:
    shown = value if isinstance(value, int) else Verbatim(number_text(value))
    return message, path, lambda field: invalid(field, shown, message)
