"""`"%s has %d".format([...])`: a text with places for values.

Comes in   a format and its values; or, before it runs, a format and the types of its values
Goes out   the text; or a `FormatFault` that says which value does not suit its place

    %s  anything     %d  whole numbers     %f %e  doubles, with a precision: %.2f     %b %o %x %X  whole numbers, …

 1. `clauses_of` is read by both sides, so that what the checker lets through is what can be printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mooring.api.cel.conversions import double_text
from mooring.api.cel.errors import EvaluationFailure, check_text_length
from mooring.api.cel.times import duration_text, timestamp_text
from mooring.api.cel.types import CelType, Kind
from mooring.api.cel.values import Duration, Timestamp, Uint, Value, read_integer, type_name
from mooring.api.cel.versions import quoted

PRECISION_DEFAULT = 6

_COMPLAINTS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
_KINDS = {
    "s": {
        Kind.LIST,
        Kind.MAP,
        Kind.INT,
        Kind.UINT,
        Kind.DOUBLE,
        Kind.BOOL,
        Kind.STRING,
        Kind.TIMESTAMP,
        Kind.BYTES,
        Kind.DURATION,
        Kind.TYPE,
        Kind.NULL,
    },
    "d": {Kind.INT, Kind.UINT},
    "f": {Kind.DOUBLE, Kind.STRING},
    "e": {Kind.DOUBLE, Kind.STRING},
    "b": {Kind.INT, Kind.UINT, Kind.BOOL},
    "x": {Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES},
    "o": {Kind.INT, Kind.UINT},
}
_SPECIAL_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class Clause:
    """A place for a value, or a piece of plain text (then `letter` is empty)."""

    text: str
    letter: str = ""
    precision: int = PRECISION_DEFAULT


class FormatFault(Exception):
    """A format cannot be read."""


def clauses_of(form: str, value_count: int) -> Iterator[Clause]:
    """The pieces of a format, in order."""
    position = used = 0
    while position < len(form):
        start = form.find("%", position)
        if start < 0:
            yield Clause(form[position:])
            return
        if start > position:
            yield Clause(form[position:start])
        if form.startswith("%%", start):
            yield Clause("%")
            position = start + 2
            continue
        if used >= value_count and start + 1 < len(form):
            raise FormatFault(f"index {used} out of range")
        clause, position = _clause(form, start + 1)
        used += 1
        yield clause


def formatted(form: str, values: list[Value]) -> str:
    """The format with its values filled in."""
    pieces: list[str] = []
    length = 0
    rest = iter(values)
    try:
        for clause in clauses_of(form, len(values)):
            pieces.append(_printed(clause, next(rest)) if clause.letter else clause.text)
            length += len(pieces[-1])
            check_text_length(length)
    except StopIteration:
        raise EvaluationFailure(f"index {len(values)} out of range") from None
    except FormatFault as fault:
        raise EvaluationFailure(str(fault)) from None
    return "".join(pieces)


def unsuitable(clause: Clause, type_: CelType) -> str:
    """Why a value of this type does not suit its place, or nothing."""
    letter = clause.letter.lower()
    if type_.kind is Kind.DYN or type_.kind in _KINDS[letter]:
        return ""
    return f"error during formatting: {_COMPLAINTS[letter]}, was given {type_.name}"


def _clause(form: str, position: int) -> tuple[Clause, int]:
    if position >= len(form):
        raise FormatFault("unexpected end of string")
    precision = PRECISION_DEFAULT
    if form[position] == ".":
        end = position + 1
        while end < len(form) and form[end] in "0123456789":
            end += 1
        if end == len(form):
            raise _clause_fault("error while parsing precision: could not find end of precision specifier")
        digits = form[position + 1 : end]
        if not digits:
            reason = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise _clause_fault(f"error while parsing precision: {reason}")
        precision, position = read_integer(digits), end
    letter = form[position]
    if letter not in "sdfebxXo":
        raise _clause_fault(f'unrecognized formatting clause "{letter}"')
    return Clause("", letter, precision), position + 1


def _clause_fault(reason: str) -> FormatFault:
    return FormatFault(f"could not parse formatting clause: {reason}")


# --- printing ---------------------------------------------------------------------------------------------------


def _printed(clause: Clause, value: Value) -> str:
    letter = clause.letter.lower()
    text = _attempt(letter, clause, value)
    if text is None:
        raise EvaluationFailure(f"error during formatting: {_COMPLAINTS[letter]}, was given {type_name(value)}")
    return text


def _attempt(letter: str, clause: Clause, value: Value) -> str | None:
    if letter == "s":
        return _as_string(value)
    if letter in "fe":
        number = _SPECIAL_DOUBLES.get(value, value) if isinstance(value, str) else value
        if not isinstance(number, float):
            return None
        check_text_length(clause.precision)
        return _fixed(number, clause.precision) if letter == "f" else _scientific(number, clause.precision)
    if letter == "b" and type(value) is bool:
        return "1" if value else "0"
    if letter == "x" and isinstance(value, (str, bytes)):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits.upper() if clause.letter == "X" else digits
    if type(value) is int or type(value) is Uint:
        return format(int(value), {"X": "X"}.get(clause.letter, letter))
    return None


def _as_string(value: Value) -> str | None:
    match value:
        case None:
            return "null"
        case list() | dict():
            return _nested(value)
        case bool():
            return "true" if value else "false"
        case Duration():
            return duration_text(value.nanoseconds)
        case Timestamp():
            return timestamp_text(value.nanoseconds, value.offset_s)
        case bytes():
            return value.decode(errors="replace")
        case float():
            return double_text(value)
        case str() | int():
            return str(value)
        case CelType():
            return value.name
        case _:
            return None


def _nested(value: Value) -> str:
    match value:
        case list():
            return f"[{', '.join(_bounded(_nested(element) for element in value))}]"
        case dict():
            keys = sorted((_nested(key), key) for key in value)
            return "{" + ", ".join(_bounded(f"{shown}:{_nested(value[key])}" for shown, key in keys)) + "}"
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(value.decode(errors='replace'))}"
        case float():
            return f"{value:.{PRECISION_DEFAULT}f}" if math.isfinite(value) else quoted(_fixed(value, 0))
        case Duration():
            return f"duration({quoted(duration_text(value.nanoseconds))})"
        case Timestamp():
            return f"timestamp({quoted(timestamp_text(value.nanoseconds, value.offset_s))})"
        case _:
            text = _as_string(value)
            if text is None:
                raise EvaluationFailure(f"error during formatting: no formatting function for {type_name(value)}")
            return text


def _bounded(pieces: Iterator[str]) -> Iterator[str]:
    """The pieces, as long as they are not too long together."""
    length = 0
    for piece in pieces:
        length += len(piece)
        check_text_length(length)
        yield piece


def _fixed(number: float, precision: int) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return f"{number:,.{precision}f}"


def _scientific(number: float, precision: int) -> str:
    if not math.isfinite(number):
        return _fixed(number, precision)
    # The precision is read as a width by Kubernetes v1.36, so six digits are always printed.
    mantissa, _, exponent = f"{number:.{PRECISION_DEFAULT}e}".partition("e")
    return f"{mantissa}\u202f×\u202f10{exponent[0].replace('+', '')}{exponent[1:]}".rjust(precision)
