"""Schedules of cron jobs, as the cron library of Kubernetes reads them.

Comes in   a schedule: five fields, or `@daily` and its like, or `@every 5m`
Goes out   nothing if it can be read; otherwise a `ScheduleError` with the library's words

 1. Only whether it can be read matters here: nothing in the API server asks when a job is due.
 2. A `TZ=…` in front is read too. Kubernetes refuses it afterwards, but complains about what follows it first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mooring.api.field_errors import quoted

INT64_MAX = 2**63 - 1

_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY = "@every "
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_UNITS = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})
_is_integer = re.compile("[+-]?[0-9]+").fullmatch
_next_number = re.compile(r"([0-9]*)(\.[0-9]*)?").match
_next_unit = re.compile(r"[^.0-9]*").match


class ScheduleError(ValueError):
    """A schedule that cannot be read."""


class _Bounds(NamedTuple):
    """What a field may be, in numbers and in names."""

    low: int
    high: int
    names: Mapping[str, int]


_FIELDS: Sequence[_Bounds] = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def check_schedule(text: str) -> None:
    """Raises `ScheduleError`."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = _after_zone(text)
    if text.startswith("@"):
        _check_descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if part:
                _check_range(part, bounds)


def zone_fault(name: str) -> str:
    """Why there is no such time zone; empty if there is one."""
    if name in ("", "UTC", "Local"):
        return ""
    try:
        ZoneInfo(name)
    except IsADirectoryError:
        return "is a directory"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {name}"
    return ""


# --- parts ------------------------------------------------------------------------------------------------------


def _after_zone(text: str) -> str:
    before, space, after = text.partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = before.partition("=")[2]
    if ".." in zone or zone[:1] in ("/", "\\"):
        raise ScheduleError(f"provided bad location {zone}: time: invalid location name")
    fault = zone_fault(zone)
    if fault:
        raise ScheduleError(f"provided bad location {zone}: {fault}")
    return after.strip()


def _check_descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    fault = _duration_fault(text.removeprefix(_EVERY))
    if fault:
        raise ScheduleError(f"failed to parse duration {text}: {fault}")


def _check_range(text: str, bounds: _Bounds) -> None:
    span, *steps = text.split("/")
    low, *highs = span.split("-")
    if low in ("*", "?"):
        start, end = bounds.low, bounds.high
    else:
        start = _number(low, bounds.names)
        if len(highs) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        end = _number(highs[0], bounds.names) if highs else start
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not highs:
        end = bounds.high
    if start < bounds.low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.low}): {text}")
    if end > bounds.high:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.high}): {text}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, names: Mapping[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    reason = ""
    if not _is_integer(text):
        reason = "invalid syntax"
    elif abs(int(text)) > INT64_MAX:
        reason = "value out of range"
    if reason:
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: {reason}")
    if int(text) < 0:
        raise ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _duration_fault(text: str) -> str:
    """What Go says of a duration; empty if it can be read."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return ""
    if not rest:
        return f"time: invalid duration {quoted(text)}"
    while rest:
        number = _next_number(rest)
        if number is None or number[0] in ("", "."):
            return f"time: invalid duration {quoted(text)}"
        rest = rest[number.end() :]
        unit = _next_unit(rest)
        assert unit is not None, rest
        if not unit[0]:
            return f"time: missing unit in duration {quoted(text)}"
        if unit[0] not in _UNITS:
            return f"time: unknown unit {quoted(unit[0])} in duration {quoted(text)}"
        rest = rest[unit.end() :]
    return ""
