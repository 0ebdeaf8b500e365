"""Durations and points in time: reading, printing and asking for their parts.

Comes in   "1h30m", "2026-03-01T12:00:00Z", and values of both kinds
Goes out   nanoseconds, texts, and rows for `getHours()` and its like

 1. Time zones are asked of the system's table by name, or given as "+02:00".
 2. Months, days of the year and days of the month count from 0, as in CEL; `getDate` counts from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo

from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.functions import Row
from mooring.api.cel.values import INT_MAX, Duration, Timestamp, read_integer
from mooring.api.cel.versions import quoted

_SECOND_NS = 10**9
_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_FRACTION_DIGITS_MAX = 20
_DAY_M = 24 * 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimeError(ValueError):
    """A text is not a duration, or not a point in time."""


def parse_duration(text: str) -> int:
    """The nanoseconds in "1h15m30.5s"."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    if not rest:
        raise TimeError(text)
    total = Fraction(0)
    position = 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            raise TimeError(text)
        fraction = (part[2] or "0")[:_FRACTION_DIGITS_MAX]
        amount = read_integer(part[1] or "0") + Fraction(int(fraction), 10 ** len(fraction))
        total += int(amount * _UNITS_NS[part[3]])
        position = part.end()
    if total > INT_MAX + (sign < 0):
        raise TimeError(text)
    return sign * int(total)


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
    return (since.days * 86400 + since.seconds - offset_s) * _SECOND_NS + fraction_ns, offset_s


def duration_text(nanoseconds: int) -> str:
    """In seconds: "5400s", "0.25s"."""
    whole, rest = divmod(abs(nanoseconds), _SECOND_NS)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if nanoseconds < 0 else ''}{whole}{fraction}s"


def timestamp_text(nanoseconds: int, offset_s: int = 0) -> str:
    """RFC 3339, with as many digits of the second as there are."""
    seconds, rest = divmod(nanoseconds, _SECOND_NS)
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
        seconds, fraction_ns = divmod(moment.nanoseconds, _SECOND_NS)
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


ROWS = [
    *(Row(f"(timestamp).{name}(): int", _timestamp_part(part)) for name, part in _TIMESTAMP_PARTS.items()),
    *(Row(f"(timestamp).{name}(string): int", _timestamp_part(part)) for name, part in _TIMESTAMP_PARTS.items()),
    *(Row(f"(duration).{name}(): int", _duration_part(unit_ns)) for name, unit_ns in _DURATION_PARTS_NS.items()),
]
