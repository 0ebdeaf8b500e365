"""Syntax errors of JSON, with the messages of Go's scanner.

Input: a body that cannot be decoded. Output: `unexpected end of JSON input`, `invalid character 'x' after top-level
value`, ..., or None.

1. Go reads bytes, not characters: the first byte of `é` is an invalid character 'Ã'.
2. A text that ends within a literal is reported as if a space followed, unless a string or a value is still open.
"""

from __future__ import annotations

import re

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
        """Reads a value; of a list or an object as much as comes before its first value."""
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
