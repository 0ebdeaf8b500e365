"""Conversions between types, and durations and timestamps: parsing, formatting, parts.

Input: values and texts such as "1h30m" and "2026-03-01T12:00:00Z". Output: values of another type, or an
`EvaluationFailure`; the rows of these functions for the environment.

 1. A text that cannot be parsed fails with the names of the two types only.
 2. A double is truncated to an integer, and fails if the result does not fit into 64 bits.
 3. A time zone is a name of the system's table or an offset such as "+02:00".
 4. Months, days of the year and days of the month count from 0, as in CEL. `getDate` counts from 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo

from mooring.api.cel import types
from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.functions import Binding, OverloadRow
from mooring.api.cel.operators import SECOND_NS, timestamp_within, within_int, within_uint
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
from mooring.api.durations import parse_nanoseconds
from mooring.api.field_errors import quoted

# --- durations and timestamps -----------------------------------------------------------------------------------

_TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_DAY_M = 24 * 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimeError(ValueError):
    """The text is not a timestamp."""


def parse_timestamp(text: str) -> tuple[int, int]:
    """The nanoseconds since 1970 of an RFC 3339 text, and its offset from UTC in seconds."""
    parts = _TIMESTAMP.fullmatch(text)
    if parts is None:
        raise TimeError(text)
    try:
        moment = datetime(*(int(parts[number]) for number in range(1, 7)), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        raise TimeError(text) from None
    offset_s = 0
    if parts[8]:
        if int(parts[9]) > 24 or int(parts[10]) > 60:
            raise TimeError(text)
        offset_s = (int(parts[9]) * 3600 + int(parts[10]) * 60) * (-1 if parts[8] == "-" else 1)
    fraction_ns = int((parts[7] or "0").ljust(9, "0")[:9])
    since = moment - _EPOCH
    return (since.days * 86400 + since.seconds - offset_s) * SECOND_NS + fraction_ns, offset_s


def duration_text(nanoseconds: int) -> str:
    """A duration in seconds: "5400s", "0.25s"."""
    whole, rest = divmod(abs(nanoseconds), SECOND_NS)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if nanoseconds < 0 else ''}{whole}{fraction}s"


def timestamp_text(nanoseconds: int, offset_s: int = 0) -> str:
    """A timestamp in RFC 3339, without trailing zeros of the fraction."""
    seconds, rest = divmod(nanoseconds, SECOND_NS)
    try:
        moment = _EPOCH + timedelta(seconds=seconds + offset_s)
    except OverflowError:
        raise EvaluationFailure("timestamp overflow") from None
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    zone = f"{'-' if offset_s < 0 else '+'}{abs(offset_s) // 3600:02d}:{abs(offset_s) % 3600 // 60:02d}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + (zone if offset_s else "Z")


# --- parts ------------------------------------------------------------------------------------------------------

_TIMESTAMP_PARTS: dict[str, Callable[[datetime, int], int]] = {
    "getFullYear": lambda moment, _: moment.year,
    "getMonth": lambda moment, _: moment.month - 1,
    "getDayOfYear": lambda moment, _: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment, _: moment.day - 1,
    "getDate": lambda moment, _: moment.day,
    "getDayOfWeek": lambda moment, _: moment.isoweekday() % 7,
    "getHours": lambda moment, _: moment.hour,
    "getMinutes": lambda moment, _: moment.minute,
    "getSeconds": lambda moment, _: moment.second,
    "getMilliseconds": lambda _, fraction_ns: fraction_ns // 10**6,
}
_DURATION_PARTS_NS = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9, "getMilliseconds": 10**6}


def _timestamp_part(part: Callable[[datetime, int], int]) -> Callable[..., int]:
    def part_of(moment: Timestamp, zone: str = "UTC") -> int:
        seconds, fraction_ns = divmod(moment.nanoseconds, SECOND_NS)
        try:
            return part((_EPOCH + timedelta(seconds=seconds)).astimezone(_zone(zone)), fraction_ns)
        except OverflowError:  # the local time is before the year 1 or after the year 9999
            raise EvaluationFailure("timestamp overflow") from None

    return part_of


def _duration_part(unit_ns: int) -> Callable[[Duration], int]:
    def part_of(duration: Duration) -> int:
        return int(Fraction(duration.nanoseconds, unit_ns))

    return part_of


def _zone(name: str) -> tzinfo:
    hours, colon, minutes = name.partition(":")
    if colon:
        offset_m = _number(hours) * 60 + (-_number(minutes) if name[0] == "-" else _number(minutes))
        if abs(offset_m) >= _DAY_M:
            raise EvaluationFailure(f"unknown time zone {name}")
        return timezone(timedelta(minutes=offset_m))
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise EvaluationFailure(f"unknown time zone {name}") from None


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise EvaluationFailure(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    return read_integer(text)


TIME_ROWS = [
    *(OverloadRow(f"(timestamp).{name}(): int", _timestamp_part(part)) for name, part in _TIMESTAMP_PARTS.items()),
    *(
        OverloadRow(f"(timestamp).{name}(string): int", _timestamp_part(part))
        for name, part in _TIMESTAMP_PARTS.items()
    ),
    *(
        OverloadRow(f"(duration).{name}(): int", _duration_part(unit_ns))
        for name, unit_ns in _DURATION_PARTS_NS.items()
    ),
]


# --- conversions ------------------------------------------------------------------------------------------------

CONVERTING_FUNCTIONS = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""The compiler calls these functions if their arguments are constant."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_UNSIGNED = re.compile(r"[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan", re.IGNORECASE)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def runtime_type(value: Value) -> CelType:
    """`type(value)`."""
    return RUNTIME_TYPES.get(type_name(value)) or CelType(types.TypeKind.STRUCT, type_name(value))


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
    """The shortest text with the same value, as of Go's %g."""
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


def string_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationFailure("invalid UTF-8 in bytes, cannot convert to string") from None


# --- from strings -----------------------------------------------------------------------------------------------


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
        return Duration(parse_nanoseconds(text))
    except ValueError:
        raise _unreadable(types.DURATION) from None


def _timestamp_of_string(text: str) -> Timestamp:
    try:
        nanoseconds, offset_s = parse_timestamp(text)
    except TimeError:
        raise _unreadable(types.TIMESTAMP) from None
    return timestamp_within(nanoseconds, offset_s)


def _unreadable(expected: CelType) -> EvaluationFailure:
    return EvaluationFailure(f"type conversion error from 'string' to '{expected.name}'")


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


def _rows(function: str, conversions: dict[str, Callable[..., Value]]) -> list[OverloadRow]:
    return [OverloadRow(f"{function}({source}): {function}", binding) for source, binding in conversions.items()]


ROWS = [
    *_rows("bool", {"bool": _same, "string": _bool_of_string}),
    *_rows("bytes", {"bytes": _same, "string": str.encode}),
    *_rows("double", {"double": _same, "int": float, "string": _double_of_string, "uint": float}),
    *_rows("duration", {"duration": _same, "int": _duration_of_int, "string": _duration_of_string}),
    OverloadRow("dyn(A): dyn"),
    OverloadRow("type(A): type(A)"),
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
    OverloadRow("string(ip): string", lambda value: _address_text(value)),
    OverloadRow("string(cidr): string", lambda value: _address_text(value)),
]

BINDINGS: dict[str, Binding] = {"dyn": _same, "type": runtime_type}


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
