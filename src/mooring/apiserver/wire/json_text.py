"""JSON as Go reads it, and its syntax errors with the messages of Go's scanner.

Input: a body with unusual bytes or errors. Output: `Pairs` with every key in the order of the text, numbers as
written; or a `BodySyntaxError`.

1. Of a repeated key, Go merges the second object into the first, and reports it with strict validation. Python keeps
   the last one.
2. `NumberText` keeps the text of a number that does not fit its type, for messages.
3. Invalid UTF-8 and unpaired surrogates become U+FFFD, each one.
4. Go allows 10,000 levels of nesting. We allow fewer, because Python code recurses. A body with fewer brackets than
   allowed levels is not walked.
5. A number in untyped data that no float64 holds is an error (`check_untyped_numbers`), as in Go.

The syntax error of a body that cannot be decoded is `unexpected end of JSON input`, `invalid character 'x' after
top-level value`, ..., or None.

1. Go reads bytes, not characters: the first byte of `é` is an invalid character 'Ã'.
2. A text that ends within a literal is reported as if a space followed, unless a string or a value is still open.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from typing import Any, NoReturn

NESTING_MAX = 200


def check_nesting(data: bytes, value: object) -> None:
    """Raises `BodySyntaxError` if the value of these bytes is nested too deeply."""
    if data.count(b"{") + data.count(b"[") <= NESTING_MAX:
        return
    level = [value]
    for _ in range(NESTING_MAX):
        level = [item for holder in level for item in _held(holder) if isinstance(item, dict | list)]
        if not level:
            return
    raise BodySyntaxError(f"exceeded max depth of {NESTING_MAX}")


def _held(holder: object) -> list[object]:
    if isinstance(holder, dict):
        return list(holder.values())
    return holder if isinstance(holder, list) else []


def check_numbers(data: bytes, value: object) -> None:
    """`check_untyped_numbers` of data that was read from these bytes: custom resources and patches.

    Bytes without a long number are not walked.
    """
    if _LONG_NUMBER.search(data) is not None:
        check_untyped_numbers(value)


def check_untyped_numbers(value: object) -> None:
    """Raises `BodySyntaxError` if data that no type checks has a number beyond a float64."""
    level = [value]
    while level:
        for number in level:
            if isinstance(number, int | float) and not -FLOAT64_MAX <= number <= FLOAT64_MAX:
                text = number.text if isinstance(number, NumberText) else str(number)
                raise BodySyntaxError(f"json: cannot unmarshal number {text} into Go value of type float64")
        level = [item for holder in level for item in _held(holder)]


FLOAT64_MAX = int(sys.float_info.max)
_LONG_NUMBER = re.compile(rb"[0-9]{200}|[eE]\+?[0-9]{3}")
"""Every number beyond a float64 matches: one of fewer digits has an exponent of at least three."""

REPLACEMENT = "\ufffd"


INTEGER_DIGITS_MAX = 4_000


class NumberText(float):
    """A number with a fraction or an exponent, and how it was written."""

    text: str

    def __new__(cls, text: str) -> NumberText:
        number = super().__new__(cls, text)
        number.text = text
        return number


class Pairs(dict[str, Any]):
    """An object that remembers its pairs in the order of the text, repeated keys included."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs
        if len(self) != len(pairs):
            self.clear()
            for key, value in pairs:
                self[key] = _merged(self[key], value) if key in self else value

    @property
    def has_repeated_keys(self) -> bool:
        return len(self) != len(self.pairs)


def parse_carefully(data: bytes, *, is_json: bool = False) -> object:
    """The value of a JSON text, with `Pairs` for objects. Raises `BodySyntaxError`, unless it is known to be JSON."""
    message = None if is_json else json_syntax_error(data)
    if message is not None:
        raise BodySyntaxError(message)
    text = data.decode("utf-8", _HANDLER)
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(_without_half_pairs, text)
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise BodySyntaxError(f"exceeded max depth of {NESTING_MAX}") from error
    check_nesting(data, value)
    return value


def repeats_keys(data: bytes) -> bool:
    """Whether any object in a JSON text has a key twice; quicker than to parse it carefully."""
    try:
        _REPEATED_KEY_FINDER.decode(data.decode("utf-8", _HANDLER))
    except (_RepeatedKey, RecursionError):
        return True
    return False


def plain(value: Any, *, numbers_as_written: bool = False) -> Any:
    """The value without `Pairs`: repeated objects merged, lone surrogates replaced, numbers as Python numbers."""
    if isinstance(value, dict):
        return {_whole(key): plain(item, numbers_as_written=numbers_as_written) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item, numbers_as_written=numbers_as_written) for item in value]
    if isinstance(value, float):
        if not numbers_as_written:
            return float(value)
        return value if isinstance(value, NumberText) else NumberText(repr(value).removesuffix(".0"))
    return _whole(value) if isinstance(value, str) else value


def has_repeated_keys(value: Any) -> bool:
    """Whether any object in it has a key twice."""
    if isinstance(value, Pairs):
        return value.has_repeated_keys or any(has_repeated_keys(item) for item in value.values())
    return isinstance(value, list) and any(has_repeated_keys(item) for item in value)


def _merged(earlier: Any, later: Any) -> Any:
    if not (isinstance(earlier, dict) and isinstance(later, dict)):
        return later if later is not None or not isinstance(earlier, dict) else earlier
    merged = dict(earlier)
    for key, value in later.items():
        merged[key] = _merged(merged[key], value) if key in merged else value
    return merged


def _whole(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def _each_byte_replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError), f"only decoding is supported, not {error!r}"
    return REPLACEMENT * (error.end - error.start), error.end


def _reject_constant(name: str) -> NoReturn:
    raise AssertionError(f"the syntax check lets no {name} through")


def _without_half_pairs(found: re.Match[str]) -> str:
    return "\\ufffd" if found["half"] else found[0]


def _integer(text: str) -> int | NumberText:
    # Python does not parse an integer of more digits, because that takes long. No field holds one.
    return int(text) if len(text) <= INTEGER_DIGITS_MAX else NumberText(text)


class _RepeatedKey(Exception):
    """An object has a key twice."""


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _RepeatedKey


_ESCAPE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_HANDLER = "mooring-replace-each-byte"
codecs.register_error(_HANDLER, _each_byte_replaced)
_DECODER = json.JSONDecoder(
    object_pairs_hook=Pairs,
    parse_float=NumberText,
    parse_int=_integer,
    parse_constant=_reject_constant,
    strict=False,
)
_REPEATED_KEY_FINDER = json.JSONDecoder(object_pairs_hook=_without_repeated_keys, parse_int=_integer, strict=False)


# --- syntax errors --------------------------------------------------------------------------------------------


DEPTH_MAX = 10_000

END = "unexpected end of JSON input"

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_STRING_BODY = re.compile(rb'[^"\\\x00-\x1f]*')
_NUMBER_BODY = re.compile(rb"[0-9]*")
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}


class BodySyntaxError(Exception):
    """A body that is no JSON; the message is Go's."""


def json_syntax_error(data: bytes) -> str | None:
    """What is wrong with a text, or None."""
    try:
        _Scanner(data).document()
    except BodySyntaxError as error:
        return str(error)
    return None


class _Scanner:
    """Walks a text with a stack of open brackets; raises at the first byte that cannot be."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def document(self) -> None:
        open_brackets: list[int] = []
        self._value_start(open_brackets)
        while open_brackets:
            if open_brackets[-1] == ord("["):
                self._after_item(open_brackets)
            else:
                self._after_pair(open_brackets)
        self._skip_space()
        if self._at < len(self._data):
            self._fail("after top-level value")

    # What follows leaves the position behind a value, or inside of the bracket that it has opened.

    def _value_start(self, open_brackets: list[int]) -> None:
        """Reads a value; of a list or an object only the part before its first value."""
        while True:
            byte = self._next_token()
            if byte == ord("{"):
                self._open(byte, open_brackets)
                if self._next_token() == ord("}"):
                    self._at += 1
                    open_brackets.pop()
                    return
                self._key()
                continue
            if byte == ord("["):
                self._open(byte, open_brackets)
                if self._next_token() == ord("]"):
                    self._at += 1
                    open_brackets.pop()
                    return
                continue
            self._scalar(byte)
            return

    def _open(self, bracket: int, open_brackets: list[int]) -> None:
        if len(open_brackets) >= DEPTH_MAX:
            self._fail("exceeded max depth")
        open_brackets.append(bracket)
        self._at += 1

    def _after_item(self, open_brackets: list[int]) -> None:
        byte = self._next_token()
        if byte == ord(","):
            self._at += 1
            self._value_start(open_brackets)
        elif byte == ord("]"):
            self._at += 1
            open_brackets.pop()
        else:
            self._fail("after array element")

    def _after_pair(self, open_brackets: list[int]) -> None:
        byte = self._next_token()
        if byte == ord(","):
            self._at += 1
            self._key()
            self._value_start(open_brackets)
        elif byte == ord("}"):
            self._at += 1
            open_brackets.pop()
        else:
            self._fail("after object key:value pair")

    def _key(self) -> None:
        if self._next_token() != ord('"'):
            self._fail("looking for beginning of object key string")
        self._string()
        if self._next_token() != ord(":"):
            self._fail("after object key")
        self._at += 1

    def _scalar(self, byte: int) -> None:
        if byte == ord('"'):
            self._string()
        elif byte == ord("-") or byte in _DIGITS:
            self._number()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        else:
            self._fail("looking for beginning of value")

    def _string(self) -> None:
        self._at += 1
        while True:
            found = _STRING_BODY.match(self._data, self._at)
            assert found is not None, "the pattern matches nothing too"
            self._at = found.end()
            if self._at >= len(self._data):
                raise BodySyntaxError(END)
            byte = self._data[self._at]
            if byte == ord('"'):
                self._at += 1
                return
            if byte != ord("\\"):
                self._fail("in string literal")
            self._at += 1
            self._escape()

    def _escape(self) -> None:
        byte = self._byte_or_space()
        if byte == ord("u"):
            for _ in range(4):
                self._at += 1
                if self._byte_or_space() not in _HEX:
                    self._fail("in \\u hexadecimal character escape")
        elif byte not in b'bfnrt\\/"':
            self._fail("in string escape code")
        self._at += 1

    def _number(self) -> None:
        if self._data[self._at] == ord("-"):
            self._at += 1
            if self._byte_or_space() not in _DIGITS:
                self._fail("in numeric literal")
        if self._data[self._at] == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._byte_or_space() == ord("."):
            self._at += 1
            if self._byte_or_space() not in _DIGITS:
                self._fail("after decimal point in numeric literal")
            self._digits()
        if self._byte_or_space() in b"eE":
            self._at += 1
            if self._byte_or_space() in b"+-":
                self._at += 1
            if self._byte_or_space() not in _DIGITS:
                self._fail("in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        found = _NUMBER_BODY.match(self._data, self._at)
        assert found is not None, "the pattern matches nothing too"
        self._at = found.end()

    def _literal(self, literal: bytes) -> None:
        for expected in literal:
            if self._byte_or_space() != expected:
                self._fail(f"in literal {literal.decode()} (expecting {_quoted(expected)})")
            self._at += 1

    # --------------------------------------------------------------------------------------------- reading

    def _next_token(self) -> int:
        self._skip_space()
        if self._at >= len(self._data):
            raise BodySyntaxError(END)
        return self._data[self._at]

    def _skip_space(self) -> None:
        while self._at < len(self._data) and self._data[self._at] in _SPACE:
            self._at += 1

    def _byte_or_space(self) -> int:
        """Go ends a text with a space of its own, which shows where a literal is cut short."""
        return self._data[self._at] if self._at < len(self._data) else ord(" ")

    def _fail(self, context: str) -> None:
        raise BodySyntaxError(f"invalid character {_quoted(self._byte_or_space())} {context}")


def _quoted(byte: int) -> str:
    if byte == ord("'"):
        return "'\\''"
    if byte == ord('"'):
        return "'\"'"
    character = chr(byte)
    escapes = {"\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    if character in escapes:
        return f"'{escapes[character]}'"
    if character.isprintable():
        return f"'{character}'"
    return f"'\\x{byte:02x}'" if byte < 0x80 else f"'\\u{byte:04x}'"
