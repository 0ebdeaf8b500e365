"""Scalars with a form of their own: quantities, times, durations, bytes, int-or-string.

Input: a JSON value. Output: the value as Go writes it; `ScalarError` with Go's message, or `UnexpectedJsonType` if the
JSON type is wrong.

1. A quantity keeps its format and is canonical within it: 0.5 is 500m, 1024Mi is 1Gi, 1e3 stays.
2. `UnexpectedJsonType` has no text: `examine` finds the message, because it needs the path.
3. A Time is written in seconds, a MicroTime in microseconds, both in UTC. A Time may have a fraction of any length,
   which is dropped; a MicroTime needs exactly six digits.
4. The zero time of Go (year 1) is written as null.

Go has decoders of its own for the fields of JSONSchemaProps that are a schema or something else (`items`,
`additionalProperties`, `additionalItems`, `dependencies`):

1. Unknown fields in such a schema are dropped without an error, because Go's inner decoder is not strict.
2. `items` and `dependencies` ignore values of other types; `additional…` reject them.
"""

from __future__ import annotations

import binascii
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from mooring.api.caches import BoundedCache
from mooring.api.errors import QuantityError
from mooring.api.quantity import parse_quantity
from mooring.apiserver.wire.json_text import FLOAT64_MAX, NumberText

LAYOUT_TIME = "2006-01-02T15:04:05Z07:00"
LAYOUT_MICRO_TIME = "2006-01-02T15:04:05.000000Z07:00"

TIMES_CACHED_MAX = 4_096
"""Times to the second, which repeat: the conditions of an object are often of one second."""

_times: BoundedCache[str, str] = BoundedCache(TIMES_CACHED_MAX)


class TimeFormatError(Exception):
    """A text that is no time; the message is Go's."""


def canonical_time(text: str) -> str | None:
    """To the second, in UTC; None for the zero time. Raises `TimeFormatError`."""
    if len(text) == 20 and (known := _times.get(text)) is not None:
        return known
    moment, _ = _parsed(text, LAYOUT_TIME, is_micro=False)
    if moment is None:
        return None
    return _times.put(text, f"{moment.isoformat()}Z")


def canonical_micro_time(text: str) -> str | None:
    """To the microsecond, in UTC; None for the zero time. Raises `TimeFormatError`."""
    if _is_canonical_micro_time(text):
        return text
    moment, micro = _parsed(text, LAYOUT_MICRO_TIME, is_micro=True)
    return None if moment is None else f"{moment.isoformat()}.{micro:06d}Z"


def _is_canonical_micro_time(text: str) -> bool:
    """Whether a text is a time as this module writes it, after the year 1: then no rule of Go changes it.

    A lease has a new time with each renewal, and many have one in the same second.
    """
    if len(text) != 27 or text[19] != "." or text[26] != "Z" or not (text[20:26].isdecimal() and text.isascii()):
        return False
    second = f"{text[:19]}Z"
    try:
        return canonical_time(second) == second
    except TimeFormatError:
        return False


def _parsed(text: str, layout: str, *, is_micro: bool) -> tuple[datetime | None, int]:
    reader = _TimeReader(text, layout)
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
    if not 1 <= day <= monthrange(year, month)[1]:
        reader.out_of_range("day")
    return _moment(year, month, day, hour, minute, second, offset), micro


def _moment(
    year: int, month: int, day: int, hour: int, minute: int, second: int, offset: timedelta | None
) -> datetime | None:
    try:
        moment = datetime(year, month, day, hour, minute, second)
        if offset:
            moment -= offset
    except (ValueError, OverflowError):  # the year 0, which Go has and Python has not
        return None
    return None if moment == datetime.min else moment


class _TimeReader:
    """Reads a text by a layout, and reports the first position that differs."""

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
        # Go accepts a fraction after the seconds in every layout.
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
    """Go's time package quotes bytes, and has no short escapes for control characters."""
    escaped = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"
        for byte in text.encode("utf-8", "replace")
    )
    return f'"{escaped}"'


INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

QUANTITIES_CACHED_MAX = 16_384

_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMERIC_WRONG = "unable to parse numeric part of quantity"
_SUFFIX_WRONG = "unable to parse quantity's suffix"

_quantities: BoundedCache[str, str] = BoundedCache(QUANTITIES_CACHED_MAX)


class UnexpectedJsonType(Exception):
    """A value of another JSON type than its field has."""


class ScalarError(Exception):
    """A text that is invalid for its field, with Go's message. It ends decoding."""


class BytesError(ScalarError):
    """Text that is no base64. Go continues decoding and reports it at the end."""


def quantity(raw: object) -> str:
    """The canonical text of a quantity. Go accepts numbers, and null for zero."""
    if type(raw) is str:
        known = _quantities.get(raw)
        return known if known is not None else _quantities.put(raw, _canonical_quantity(raw))
    if raw is None:
        return "0"
    if isinstance(raw, NumberText):
        return _canonical_quantity(raw.text)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise ScalarError(_FORMAT_WRONG)
    return _canonical_quantity(repr(raw))


def _canonical_quantity(text: str) -> str:
    try:
        return str(parse_quantity(text))
    except QuantityError as error:
        complaint = str(error)
        if "regular expression" in complaint:
            raise ScalarError(_FORMAT_WRONG) from error
        raise ScalarError(_SUFFIX_WRONG if "suffix" in complaint else _NUMERIC_WRONG) from error


def time(raw: object) -> str | None:
    """A Time, to the second; None for the zero one."""
    return _time(raw, canonical_time)


def micro_time(raw: object) -> str | None:
    """A MicroTime; None for the zero one."""
    return _time(raw, canonical_micro_time)


def _time(raw: object, canonical: Callable[[str], str | None]) -> str | None:
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise UnexpectedJsonType
    try:
        return canonical(raw)
    except TimeFormatError as error:
        raise ScalarError(str(error)) from error


def int_or_string(raw: object) -> int | str:
    """A text, or a 32-bit number."""
    if type(raw) is str:
        return raw
    if raw is None:
        return 0
    return int32(raw)


def int32(raw: object) -> int:
    if type(raw) is int and INT32_MIN <= raw <= INT32_MAX:
        return raw
    raise UnexpectedJsonType


def int64(raw: object) -> int:
    if type(raw) is int and INT64_MIN <= raw <= INT64_MAX:
        return raw
    raise UnexpectedJsonType


def float64(raw: object) -> float | int:
    """A number. Go writes 1.0 as 1."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise UnexpectedJsonType
    if isinstance(raw, NumberText):
        raw = float(raw.text)
    if not -FLOAT64_MAX <= raw <= FLOAT64_MAX:
        raise UnexpectedJsonType
    number = float(raw)
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def base64_bytes(raw: object) -> str:
    """Bytes as base64, written anew; Go also takes a list of numbers."""
    if isinstance(raw, list):
        if not all(type(item) is int and 0 <= item < 256 for item in raw):
            raise UnexpectedJsonType
        return binascii.b2a_base64(bytes(raw), newline=False).decode()
    if not isinstance(raw, str):
        raise UnexpectedJsonType
    return binascii.b2a_base64(bytes_of_base64(raw), newline=False).decode()


def bytes_of_base64(text: str) -> bytes:
    """The decoded bytes. Only line ends are ignored."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # binascii.Error, or letters that are not ASCII
        pass
    data = text.encode("utf-8", "replace")
    error = _base64_error(data)
    if error is not None:
        raise BytesError(f"illegal base64 data at input byte {error}")
    return binascii.a2b_base64(data.translate(None, b"\r\n"), strict_mode=True)


_BASE64_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _base64_error(data: bytes) -> int | None:
    """Where Go stops reading, or None. Letters come in groups of four, the last of which may be padded."""
    letters_in_group = 0
    position = 0
    while position < len(data):
        letter = data[position]
        position += 1
        if letter in b"\r\n":
            continue
        if letter in _BASE64_LETTERS:
            letters_in_group = (letters_in_group + 1) % 4
        elif letter != ord("="):
            return position - 1
        else:
            return _padding_error(data, position, letters_in_group)
    return None if letters_in_group == 0 else position - letters_in_group


def _padding_error(data: bytes, position: int, letters_in_group: int) -> int | None:
    if letters_in_group < 2:
        return position - 1
    if letters_in_group == 2:
        position = _after_line_ends(data, position)
        if position == len(data):
            return position
        if data[position] != ord("="):
            return position - 1
        position += 1
    position = _after_line_ends(data, position)
    return None if position == len(data) else position


def _after_line_ends(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in b"\r\n":
        position += 1
    return position


# --- fields of JSONSchemaProps --------------------------------------------------------------------------------


NOT_A_SCHEMA = "boolean or JSON schema expected"

_Schema = Callable[[Any, list[str]], Any]


def _items(schema: _Schema) -> _Schema:
    def change(raw: Any, dropped: list[str]) -> Any:
        if isinstance(raw, dict):
            return schema(raw, [])
        if isinstance(raw, list) and raw:
            return [schema({} if item is None else item, []) for item in raw]
        return None

    return change


def _schema_or_bool(schema: _Schema) -> _Schema:
    def change(raw: Any, dropped: list[str]) -> Any:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, dict):
            return schema(raw, [])
        raise ScalarError(NOT_A_SCHEMA)

    return change


def _dependencies(schema: _Schema) -> _Schema:
    def change(raw: Any, dropped: list[str]) -> Any:
        if not isinstance(raw, dict):
            raise UnexpectedJsonType
        return {key: schema(value, []) if isinstance(value, dict) else _names(value) for key, value in raw.items()}

    return change


def _names(raw: Any) -> Any:
    if not isinstance(raw, list) or not raw:
        return None
    if not all(isinstance(name, str) for name in raw):
        raise UnexpectedJsonType
    return raw


SCHEMA_VALUES: Mapping[str, Callable[[_Schema], _Schema]] = {
    "items": _items,
    "additionalProperties": _schema_or_bool,
    "additionalItems": _schema_or_bool,
    "dependencies": _dependencies,
}
"""By field of JSONSchemaProps."""
