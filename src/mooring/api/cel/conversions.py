"""Conversions: `int("3")`, `string(2.5)`, `duration("90s")`, and how a value is printed in a text.

Comes in   values
Goes out   values of another type, or an `EvaluationFailure`; rows for the environment

 1. A text that cannot be read fails with the names of the two types and nothing else.
 2. Doubles become whole numbers by cutting off, and fail where the result would not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from mooring.api.cel import types
from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.functions import Binding, Row
from mooring.api.cel.operations import SECOND_NS, timestamp_within, within_int, within_uint
from mooring.api.cel.times import TimeError, duration_text, parse_duration, parse_timestamp, timestamp_text
from mooring.api.cel.types import CelType
from mooring.api.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Cidr,
    Duration,
    IpAddress,
    Timestamp,
    Uint,
    Value,
    read_integer,
    type_name,
)

CONVERTING_FUNCTIONS = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Those whose constant arguments are converted when the expression is compiled, not when it runs."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_UNSIGNED = re.compile(r"[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan", re.IGNORECASE)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def runtime_type(value: Value) -> CelType:
    """`type(value)`."""
    return RUNTIME_TYPES.get(type_name(value)) or CelType(types.Kind.STRUCT, type_name(value))


RUNTIME_TYPES = {
    type_.name: type_
    for type_ in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.DURATION,
        types.INT,
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.UINT,
        types.TYPE,
        types.list_of(types.DYN),
        types.map_of(types.DYN, types.DYN),
        types.IP_ADDRESS,
        types.CIDR,
    )
} | {"optional_type": types.optional_of(types.DYN)}


def double_text(value: float) -> str:
    """The shortest text that reads back as the same number, as Go's %g writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    digits, exponent = _shortest_digits(value)
    if -4 <= exponent < 21:
        return _fixed(digits, exponent, value < 0)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def fixed_text(value: float) -> str:
    """The same without an exponent, whatever the size."""
    if value == 0 or not math.isfinite(value):
        return double_text(value)
    digits, exponent = _shortest_digits(value)
    return _fixed(digits, exponent, value < 0)


def string_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationFailure("invalid UTF-8 in bytes, cannot convert to string") from None


# --- from texts -------------------------------------------------------------------------------------------------


def _int_of_string(text: str) -> int:
    if not _INTEGER.fullmatch(text) or not INT_MIN <= read_integer(text) <= INT_MAX:
        raise _unreadable(types.INT)
    return read_integer(text)


def _uint_of_string(text: str) -> Uint:
    if not _UNSIGNED.fullmatch(text) or read_integer(text) > UINT_MAX:
        raise _unreadable(types.UINT)
    return Uint(read_integer(text))


def _double_of_string(text: str) -> float:
    if not _FLOAT.fullmatch(text) or (math.isinf(float(text)) and "inf" not in text.lower()):
        raise _unreadable(types.DOUBLE)
    return float(text)


def _bool_of_string(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _unreadable(types.BOOL)


def _duration_of_string(text: str) -> Duration:
    try:
        return Duration(parse_duration(text))
    except TimeError:
        raise _unreadable(types.DURATION) from None


def _timestamp_of_string(text: str) -> Timestamp:
    try:
        nanoseconds, offset_s = parse_timestamp(text)
    except TimeError:
        raise _unreadable(types.TIMESTAMP) from None
    return timestamp_within(nanoseconds, offset_s)


def _unreadable(wanted: CelType) -> EvaluationFailure:
    return EvaluationFailure(f"type conversion error from 'string' to '{wanted.name}'")


# --- from numbers -----------------------------------------------------------------------------------------------


def _int_of_double(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise EvaluationFailure("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> Uint:
    if not 0 <= value < 2.0**64:
        raise EvaluationFailure("unsigned integer overflow")
    return Uint(value)


def _duration_of_int(value: int) -> Value:
    raise EvaluationFailure("type conversion error from 'int' to 'google.protobuf.Duration'")


def _same(value: Value) -> Value:
    return value


def _rows(function: str, conversions: dict[str, Callable[..., Value]]) -> list[Row]:
    return [Row(f"{function}({source}): {function}", binding) for source, binding in conversions.items()]


ROWS = [
    *_rows("bool", {"bool": _same, "string": _bool_of_string}),
    *_rows("bytes", {"bytes": _same, "string": str.encode}),
    *_rows("double", {"double": _same, "int": float, "string": _double_of_string, "uint": float}),
    *_rows("duration", {"duration": _same, "int": _duration_of_int, "string": _duration_of_string}),
    Row("dyn(A): dyn"),
    *_rows(
        "int",
        {
            "int": _same,
            "double": _int_of_double,
            "duration": lambda value: value.nanoseconds,
            "string": _int_of_string,
            "timestamp": lambda value: value.nanoseconds // SECOND_NS,
            "uint": lambda value: within_int(int(value)),
        },
    ),
    *_rows(
        "string",
        {
            "string": _same,
            "bool": lambda value: "true" if value else "false",
            "bytes": string_of_bytes,
            "double": double_text,
            "duration": lambda value: duration_text(value.nanoseconds),
            "int": str,
            "timestamp": lambda value: timestamp_text(value.nanoseconds, value.offset_s),
            "uint": lambda value: str(int(value)),
        },
    ),
    *_rows(
        "timestamp",
        {
            "timestamp": _same,
            "int": lambda value: timestamp_within(value * SECOND_NS),
            "string": _timestamp_of_string,
        },
    ),
    *_rows(
        "uint",
        {
            "uint": _same,
            "double": _uint_of_double,
            "int": within_uint,
            "string": _uint_of_string,
        },
    ),
    Row("string(ip): string", lambda value: _address_text(value)),
    Row("string(cidr): string", lambda value: _address_text(value)),
]

BINDINGS: dict[str, Binding] = {"dyn": _same}


def _address_text(value: IpAddress | Cidr) -> str:
    return str(value.address if isinstance(value, IpAddress) else value.interface)


# --- digits -----------------------------------------------------------------------------------------------------


def _shortest_digits(value: float) -> tuple[str, int]:
    """The digits without leading or trailing zeros, and the power of ten of the first one."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return digits.rstrip("0") or "0", leading + int(exponent or 0)


def _fixed(digits: str, exponent: int, is_negative: bool) -> str:
    sign = "-" if is_negative else ""
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
