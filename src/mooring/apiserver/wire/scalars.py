"""Scalars with a form of their own: quantities, times, bytes, int-or-string.

Comes in   a value as it stands in JSON
Goes out   the value as Go writes it; `ScalarError` with Go's words, or `Irregular` if the JSON type is wrong

 1. A quantity keeps its format and is canonical within it: 0.5 is 500m, 1024Mi is 1Gi, 1e3 stays.
 2. `Irregular` carries no text: `examine` finds the words, because they need the path.
"""

from __future__ import annotations

import binascii

from mooring.api.errors import QuantityError
from mooring.api.memory import Memory
from mooring.api.quantity import parse_quantity
from mooring.apiserver.wire.go_times import TimeFormatError, canonical_micro_time, canonical_time
from mooring.apiserver.wire.json_text import NumberText

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

TEXTS_REMEMBERED_MAX = 16_384

_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMERIC_WRONG = "unable to parse numeric part of quantity"
_SUFFIX_WRONG = "unable to parse quantity's suffix"

_quantities: Memory[str, str] = Memory(TEXTS_REMEMBERED_MAX)


class Irregular(Exception):
    """A value of another JSON type than its field has."""


class ScalarError(Exception):
    """A text that is not what its field wants; the message is Go's, and ends the decoding."""


class BytesError(ScalarError):
    """Text that is no base64. Go remembers it and goes on decoding."""


def quantity(raw: object) -> str:
    """The canonical text of a quantity; Go takes numbers too, and null for zero."""
    if type(raw) is str:
        known = _quantities.get(raw)
        return known if known is not None else _quantities.keep(raw, _canonical_quantity(raw))
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
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise Irregular
    try:
        return canonical_time(raw)
    except TimeFormatError as error:
        raise ScalarError(str(error)) from error


def micro_time(raw: object) -> str | None:
    """A MicroTime; None for the zero one."""
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise Irregular
    try:
        return canonical_micro_time(raw)
    except TimeFormatError as error:
        raise ScalarError(str(error)) from error


def int_or_string(raw: object) -> int | str:
    """A text as it is, or a 32-bit number."""
    if type(raw) is str:
        return raw
    if raw is None:
        return 0
    return int32(raw)


def int32(raw: object) -> int:
    if type(raw) is int and INT32_MIN <= raw <= INT32_MAX:
        return raw
    raise Irregular


def int64(raw: object) -> int:
    if type(raw) is int and INT64_MIN <= raw <= INT64_MAX:
        return raw
    raise Irregular


def float64(raw: object) -> float | int:
    """A number. Go writes 1.0 as 1."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Irregular
    if isinstance(raw, NumberText):
        raw = float(raw.text)
    number = float(raw)
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def base64_bytes(raw: object) -> str:
    """Bytes as base64, written anew; Go also takes a list of numbers."""
    if isinstance(raw, list):
        if not all(type(item) is int and 0 <= item < 256 for item in raw):
            raise Irregular
        return binascii.b2a_base64(bytes(raw), newline=False).decode()
    if not isinstance(raw, str):
        raise Irregular
    return binascii.b2a_base64(bytes_of_base64(raw), newline=False).decode()


def bytes_of_base64(text: str) -> bytes:
    """What base64 stands for. Line ends are overlooked, nothing else is."""
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
