"""Literals: what a written number or text stands for.

Comes in   the text of a token
Goes out   the value, or a `LiteralError` with the words of the report
"""

from __future__ import annotations

import re

from mooring.api.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint


class LiteralError(ValueError):
    """A literal stands for nothing."""


def int_literal(text: str, is_negative: bool) -> int:
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    value = -int(digits, base) if is_negative else int(digits, base)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def uint_literal(text: str) -> Uint:
    digits = text[:-1]
    value = int(digits[2:], 16) if digits.startswith("0x") else int(digits)
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def float_literal(text: str, is_negative: bool) -> float:
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal")
    return -value if is_negative else value


def string_literal(text: str) -> str:
    is_raw, body = _body(text)
    if is_raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_letter, body)


def bytes_literal(text: str) -> bytes:
    is_raw, body = _body(text[1:])
    if is_raw or "\\" not in body:
        return body.encode()
    return b"".join(_bytes_of(part) for part in _ESCAPE_OR_LETTER.findall(body))


_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPE_OR_LETTER = re.compile(rf"{_ESCAPE.pattern}|[^\\]", re.DOTALL)
_SINGLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _body(text: str) -> tuple[bool, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    if is_raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return is_raw, text[quotes:-quotes]


def _letter(match: re.Match[str]) -> str:
    code = _code(match[0])
    if code is None:
        return _SINGLE.get(match[0][1], match[0][1])
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _bytes_of(part: str) -> bytes:
    if part[0] != "\\":
        return part.encode()
    if part[1] in "uU":
        raise LiteralError("unable to unescape string")
    code = _code(part)
    return _SINGLE.get(part[1], part[1]).encode() if code is None else bytes((code & 0xFF,))


def _code(escape: str) -> int | None:
    if escape[1] in "xXuU":
        return int(escape[2:], 16)
    return int(escape[1:], 8) if escape[1] in "0123" else None
