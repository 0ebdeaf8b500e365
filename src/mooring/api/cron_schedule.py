"""Parse schedules of CronJobs and compute when they are due, with the syntax and errors of robfig/cron.

Input: a schedule: five fields, a name such as `@daily`, or `@every 5m`. Output: a `Schedule` with its next time, or a
`ScheduleError` with the text of the library.

 1. A prefix `TZ=…` is parsed. Kubernetes rejects it for new objects, but reports errors in the rest first.
 2. Without a time zone a schedule is in UTC. (kube-controller-manager uses the zone of its machine, in a container
    UTC.)
 3. If both the day of the month and the day of the week are restricted, a day that satisfies one of them is due.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mooring.api.durations import parse_duration
from mooring.api.field_errors import quoted

INT64_MAX = 2**63 - 1

YEARS_MAX = 5
"""How far ahead the next time is searched: a 31st of February never comes."""

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_EPOCH = datetime(1970, 1, 1)
_UTC = ZoneInfo("UTC")
_is_integer = re.compile("[+-]?[0-9]+").fullmatch


class ScheduleError(ValueError):
    """A schedule that cannot be read."""


class _FieldBounds(NamedTuple):
    """What a field may be, in numbers and in names."""

    low: int
    high: int
    names: Mapping[str, int]


_FIELDS: Sequence[_FieldBounds] = (
    _FieldBounds(0, 59, {}),
    _FieldBounds(0, 23, {}),
    _FieldBounds(1, 31, {}),
    _FieldBounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _FieldBounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """A schedule with a fixed interval (`@every 1h`)."""

    delay_s: int

    def next_s(self, after_s: float) -> float | None:
        """The first time after that one, which is in seconds since 1970."""
        return math.floor(after_s) + float(self.delay_s)


@dataclass(frozen=True, slots=True)
class CalendarSchedule:
    """A schedule of minutes, hours and days in a time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_any_day: bool
    """Whether the day of the month or of the week is `*`: then both fields have to match, otherwise one of them."""
    zone: ZoneInfo = _UTC

    def next_s(self, after_s: float) -> float | None:
        """The first time after that one, which is in seconds since 1970; None if there is none for five years.

        Clocks that are changed are treated as the cron library does: an hour that is skipped is skipped, one that comes
        twice comes twice.
        """
        at = _Moment((math.floor(after_s) // 60 + 1) * 60, self.zone)
        year_max = at.local.year + YEARS_MAX
        while at.local.year <= year_max:
            if not self._to_month(at) or not self._to_day(at) or not self._to_hour(at) or not self._to_minute(at):
                continue  # the year, the month, the day or the hour is another by now: from the top again
            return float(at.unix_s)
        return None

    def _to_month(self, at: _Moment) -> bool:
        while at.local.month not in self.months:
            at.begin("month")
            local = at.local
            at.set_local(local.year + local.month // 12, local.month % 12 + 1, 1, local.hour)
            if at.local.month == 1:
                return False
        return True

    def _to_day(self, at: _Moment) -> bool:
        while not self._is_day(at.local):
            at.begin("day")
            next_day = at.local.date() + timedelta(days=1)
            at.set_local(next_day.year, next_day.month, next_day.day, at.local.hour)
            hour = at.local.hour
            if hour:  # there was no midnight: the clocks were changed at it
                at.add_s((24 - hour) * 3600 if hour > 12 else -hour * 3600)
            if at.local.day == 1:
                return False
        return True

    def _to_hour(self, at: _Moment) -> bool:
        while at.local.hour not in self.hours:
            at.begin("hour")
            at.add_s(3600)
            if at.local.hour == 0:
                return False
        return True

    def _to_minute(self, at: _Moment) -> bool:
        while at.local.minute not in self.minutes:
            at.has_begun = True
            at.add_s(60)
            if at.local.minute == 0:
                return False
        return True

    def _is_day(self, local: datetime) -> bool:
        is_day, is_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return is_day and is_weekday if self.is_any_day else is_day or is_weekday


Schedule: TypeAlias = IntervalSchedule | CalendarSchedule


def parse_schedule(text: str) -> Schedule:
    """Raises `ScheduleError`."""
    zone = _UTC
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, text = _zone_and_rest(text)
    if text.startswith("@"):
        if text.startswith(_EVERY):
            return IntervalSchedule(_delay_s(text))
        if text not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    parsed = [_parse_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, is_any), (months, _), (weekdays, is_any_weekday) = parsed
    return CalendarSchedule(minutes, hours, days, months, weekdays, is_any or is_any_weekday, zone)


def zone_of(name: str) -> ZoneInfo:
    """The time zone with that valid name; UTC without a name, whatever the zone of the machine."""
    return _UTC if name in ("", "UTC", "Local") else ZoneInfo(name)


def zone_error(name: str) -> str:
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


# --- moments ----------------------------------------------------------------------------------------------------


class _Moment:
    """A time that moves forward, and its local time in the zone."""

    __slots__ = ("has_begun", "local", "unix_s", "zone")

    def __init__(self, unix_s: int, zone: ZoneInfo) -> None:
        self.zone = zone
        self.has_begun = False
        """Whether it has moved: before, the smaller units are those of the start and have to be set back."""
        self.unix_s = unix_s
        self.local = datetime.fromtimestamp(unix_s, zone)

    def begin(self, unit: str) -> None:
        """Once: go back to the beginning of the month, the day or the hour."""
        if self.has_begun:
            return
        self.has_begun = True
        local = self.local
        self.set_local(
            local.year, local.month, 1 if unit == "month" else local.day, local.hour if unit == "hour" else 0
        )

    def add_s(self, seconds: int) -> None:
        self.unix_s += seconds
        self.local = datetime.fromtimestamp(self.unix_s, self.zone)

    def set_local(self, year: int, month: int, day: int, hour: int) -> None:
        """What a clock shows, as Go reads it: where it is shown twice or never, by the offset of that hour in UTC."""
        shown = datetime(year, month, day, hour) - _EPOCH
        shown_s = shown.days * 86_400 + shown.seconds
        offset_s = self._offset_s(shown_s)
        if self._offset_s(shown_s - offset_s) != offset_s:
            offset_s = self._offset_s(shown_s - offset_s)
        self.unix_s = shown_s - offset_s
        self.local = datetime.fromtimestamp(self.unix_s, self.zone)

    def _offset_s(self, unix_s: int) -> int:
        offset = datetime.fromtimestamp(unix_s, self.zone).utcoffset()
        assert offset is not None, f"{self.zone} has no offset"
        return offset.days * 86_400 + offset.seconds


# --- parts ------------------------------------------------------------------------------------------------------


def _zone_and_rest(text: str) -> tuple[ZoneInfo, str]:
    before, space, after = text.partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = before.partition("=")[2]
    if ".." in zone or zone[:1] in ("/", "\\"):
        raise ScheduleError(f"provided bad location {zone}: time: invalid location name")
    error = zone_error(zone)
    if error:
        raise ScheduleError(f"provided bad location {zone}: {error}")
    return zone_of(zone), after.strip()


def _delay_s(text: str) -> int:
    duration = text.removeprefix(_EVERY)
    try:
        return max(1, int(parse_duration(duration)))
    except ValueError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None


def _parse_field(text: str, bounds: _FieldBounds) -> tuple[frozenset[int], bool]:
    """The numbers of a field, and whether it is `*`."""
    numbers: set[int] = set()
    has_star = False
    for part in text.split(","):
        if part:
            span, is_star = _parse_range(part, bounds)
            numbers.update(span)
            has_star |= is_star
    return frozenset(numbers), has_star


def _parse_range(text: str, bounds: _FieldBounds) -> tuple[range, bool]:
    span, *steps = text.split("/")
    low, *highs = span.split("-")
    is_star = low in ("*", "?")
    if is_star:
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
    return range(start, end + 1, step), is_star and step == 1


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
