"""Times and durations, read and refused as Go does.

Comes in   the texts of Time, MicroTime and Duration fields
Goes out   the same in canonical form, or `TimeFormatError` with the words of Go's time package

 1. A Time is written to the second, a MicroTime to the microsecond, both in UTC.
 2. The zero time (the first instant of the year 1) is Go's way to say nothing: it is written as null.
 3. A Time may come with a fraction of any length, which is dropped; a MicroTime needs exactly six digits.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mooring.api.memory import Memory

LAYOUT_TIME = "2006-01-02T15:04:05Z07:00"
LAYOUT_MICRO_TIME = "2006-01-02T15:04:05.000000Z07:00"

TEXTS_REMEMBERED_MAX = 4_096
"""Heartbeats and leases write many different times: a small memory serves an object that comes again."""

_DAYS_OF_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_times: Memory[str, str] = Memory(TEXTS_REMEMBERED_MAX)


class TimeFormatError(Exception):
    """A text that is no time; the message is Go's."""


def canonical_time(text: str) -> str | None:
    """To the second, in UTC; None for the zero time. Raises `TimeFormatError`."""
    if len(text) == 20 and (known := _times.get(text)) is not None:
        return known
    moment, _ = _parsed(text, LAYOUT_TIME, is_micro=False)
    if moment is None:
        return None
    return _times.keep(text, f"{moment.isoformat()}Z")


def canonical_micro_time(text: str) -> str | None:
    """To the microsecond, in UTC; None for the zero time. Raises `TimeFormatError`."""
    moment, micro = _parsed(text, LAYOUT_MICRO_TIME, is_micro=True)
    return None if moment is None else f"{moment.isoformat()}.{micro:06d}Z"


def _parsed(text: str, layout: str, *, is_micro: bool) -> tuple[datetime | None, int]:
    reader = _Reader(text, layout)
    year = reader.number("2006", 4)
    reader.literal("-")
    month = reader.number("01", 2)
    if not 1 <= month <= 12:
        reader.out_of_range("month")
    reader.literal("-")
    day = reader.number("02", 2)
    reader.literal("T")
    hour = reader.hour()
    if hour >= 24:
        reader.out_of_range("hour")
    reader.literal(":")
    minute = reader.number("04", 2)
    if minute >= 60:
        reader.out_of_range("minute")
    reader.literal(":")
    second = reader.number("05", 2)
    if second >= 60:
        reader.out_of_range("second")
    micro = reader.fraction(is_micro)
    offset = reader.zone()
    reader.end()
    if not 1 <= day <= _DAYS_OF_MONTH[month - 1] or (month == 2 and day == 29 and not _is_leap(year)):
        reader.out_of_range("day")
    return _moment(year, month, day, hour, minute, second, offset), micro


def _moment(
    year: int, month: int, day: int, hour: int, minute: int, second: int, offset: timedelta | None
) -> datetime | None:
    try:
        moment = datetime(year, month, day, hour, minute, second)
        if offset:
            moment -= offset
    except (ValueError, OverflowError):  # the year 0: Go knows it, and nobody means it
        return None
    return None if moment == datetime.min else moment


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


class _Reader:
    """Reads a text by a layout, and says where it departs from it."""

    def __init__(self, text: str, layout: str) -> None:
        self._text = text
        self._layout = layout
        self._rest = text

    def number(self, element: str, digits: int) -> int:
        found = self._rest[:digits]
        if len(found) < digits or not (found.isascii() and found.isdigit()):
            self._fail(element)
        self._rest = self._rest[digits:]
        return int(found)

    def hour(self) -> int:
        """The only number that may have one digit."""
        return self.number("15", 1 if len(self._rest) > 1 and not _is_digits(self._rest[1]) else 2)

    def literal(self, expected: str) -> None:
        if not self._rest.startswith(expected):
            self._fail(expected)
        self._rest = self._rest[1:]

    def fraction(self, is_micro: bool) -> int:
        if is_micro:
            if len(self._rest) < 7 or self._rest[0] not in ".," or not _is_digits(self._rest[1:7]):
                self._fail(".000000")
            found, self._rest = self._rest[1:7], self._rest[7:]
            return int(found)
        # A fraction after the seconds is taken although the layout has none: Go's rule, for every layout.
        if len(self._rest) >= 2 and self._rest[0] in ".," and _is_digits(self._rest[1]):
            length = 1
            while length < len(self._rest) and _is_digits(self._rest[length]):
                length += 1
            self._rest = self._rest[length:]
        return 0

    def zone(self) -> timedelta | None:
        rest = self._rest
        if rest.startswith("Z"):
            self._rest = rest[1:]
            return None
        if len(rest) < 6 or rest[0] not in "+-" or rest[3] != ":" or not _is_digits(rest[1:3] + rest[4:6]):
            self._fail("Z07:00")
        hours, minutes = int(rest[1:3]), int(rest[4:6])
        if hours > 24:
            self.out_of_range("time zone offset hour")
        if minutes > 60:
            self.out_of_range("time zone offset minute")
        self._rest = rest[6:]
        offset = timedelta(hours=hours, minutes=minutes)
        return -offset if rest[0] == "-" else offset

    def end(self) -> None:
        if self._rest:
            raise TimeFormatError(f"parsing time {_quoted(self._text)}: extra text: {_quoted(self._rest)}")

    def out_of_range(self, what: str) -> None:
        raise TimeFormatError(f"parsing time {_quoted(self._text)}: {what} out of range")

    def _fail(self, element: str) -> None:
        raise TimeFormatError(
            f"parsing time {_quoted(self._text)} as {_quoted(self._layout)}: "
            f"cannot parse {_quoted(self._rest)} as {_quoted(element)}"
        )


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _quoted(text: str) -> str:
    """The time package quotes byte by byte, and knows no names for control characters."""
    escaped = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"
        for byte in text.encode("utf-8", "replace")
    )
    return f'"{escaped}"'
