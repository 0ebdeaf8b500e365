"""The functions of strings: CEL's own, the string extension (version 2), `format`, and `find` of Kubernetes.

Output: the rows of these functions for the environment; `clauses_of` and `unsuitable` for the checker.

    %s  any value    %d  integers    %f %e  doubles, with a precision: %.2f    %b %o %x %X  integers, …

 1. The checker and the evaluation read a format with the same `clauses_of`.
 2. Positions count characters.
 3. An empty separator splits between all characters. An empty text to replace is found between all of them.
 4. A result that would be longer than `TEXT_LENGTH_MAX` raises `CostExceeded` before it is built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mooring.api.cel.conversions import double_text, duration_text, timestamp_text
from mooring.api.cel.errors import CostExceeded, EvaluationFailure, check_text_length, no_such_overload
from mooring.api.cel.functions import Binding, OverloadRow
from mooring.api.cel.operators import unknown_operator
from mooring.api.cel.patterns import PatternError, PatternWorkExceeded, compile_pattern
from mooring.api.cel.types import CelType, TypeKind
from mooring.api.cel.values import Duration, Timestamp, Uint, Value, read_integer, type_name
from mooring.api.field_errors import quoted

# --- format -----------------------------------------------------------------------------------------------------

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
        TypeKind.LIST,
        TypeKind.MAP,
        TypeKind.INT,
        TypeKind.UINT,
        TypeKind.DOUBLE,
        TypeKind.BOOL,
        TypeKind.STRING,
        TypeKind.TIMESTAMP,
        TypeKind.BYTES,
        TypeKind.DURATION,
        TypeKind.TYPE,
        TypeKind.NULL,
    },
    "d": {TypeKind.INT, TypeKind.UINT},
    "f": {TypeKind.DOUBLE, TypeKind.STRING},
    "e": {TypeKind.DOUBLE, TypeKind.STRING},
    "b": {TypeKind.INT, TypeKind.UINT, TypeKind.BOOL},
    "x": {TypeKind.INT, TypeKind.UINT, TypeKind.STRING, TypeKind.BYTES},
    "o": {TypeKind.INT, TypeKind.UINT},
}
_SPECIAL_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class FormatClause:
    """A clause for a value, or a piece of plain text (then `letter` is empty)."""

    text: str
    letter: str = ""
    precision: int = PRECISION_DEFAULT


class FormatError(Exception):
    """The format is not valid."""


def clauses_of(form: str, value_count: int) -> Iterator[FormatClause]:
    """The clauses of a format, in order."""
    position = used = 0
    while position < len(form):
        start = form.find("%", position)
        if start < 0:
            yield FormatClause(form[position:])
            return
        if start > position:
            yield FormatClause(form[position:start])
        if form.startswith("%%", start):
            yield FormatClause("%")
            position = start + 2
            continue
        if used >= value_count and start + 1 < len(form):
            raise FormatError(f"index {used} out of range")
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
    except FormatError as error:
        raise EvaluationFailure(str(error)) from None
    return "".join(pieces)


def unsuitable(clause: FormatClause, type_: CelType) -> str:
    """The error of a value of this type for this clause, or nothing."""
    letter = clause.letter.lower()
    if type_.kind is TypeKind.DYN or type_.kind in _KINDS[letter]:
        return ""
    return f"error during formatting: {_COMPLAINTS[letter]}, was given {type_.name}"


def _clause(form: str, position: int) -> tuple[FormatClause, int]:
    if position >= len(form):
        raise FormatError("unexpected end of string")
    precision = PRECISION_DEFAULT
    if form[position] == ".":
        end = position + 1
        while end < len(form) and form[end] in "0123456789":
            end += 1
        if end == len(form):
            raise _clause_error("error while parsing precision: could not find end of precision specifier")
        digits = form[position + 1 : end]
        if not digits:
            reason = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise _clause_error(f"error while parsing precision: {reason}")
        precision, position = read_integer(digits), end
    letter = form[position]
    if letter not in "sdfebxXo":
        raise _clause_error(f'unrecognized formatting clause "{letter}"')
    return FormatClause("", letter, precision), position + 1


def _clause_error(reason: str) -> FormatError:
    return FormatError(f"could not parse formatting clause: {reason}")


# --- formatting of values ---------------------------------------------------------------------------------------


def _printed(clause: FormatClause, value: Value) -> str:
    letter = clause.letter.lower()
    text = _attempt(letter, clause, value)
    if text is None:
        raise EvaluationFailure(f"error during formatting: {_COMPLAINTS[letter]}, was given {type_name(value)}")
    return text


def _attempt(letter: str, clause: FormatClause, value: Value) -> str | None:
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
    """The pieces. Raises `CostExceeded` if their total length exceeds the limit."""
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
    # Kubernetes v1.36 uses the precision as the width, and always formats six digits.
    mantissa, _, exponent = f"{number:.{PRECISION_DEFAULT}e}".partition("e")
    return f"{mantissa}\u202f×\u202f10{exponent[0].replace('+', '')}{exponent[1:]}".rjust(precision)


# --- functions --------------------------------------------------------------------------------------------------

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def matches(text: Value, pattern: Value) -> bool:
    if not isinstance(text, str):
        raise unknown_operator("matches", text)
    if not isinstance(pattern, str):
        raise no_such_overload()
    try:
        return compile_pattern(pattern).is_found_in(text)
    except PatternError as error:
        raise EvaluationFailure(str(error)) from None
    except PatternWorkExceeded:
        raise CostExceeded from None


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start) if start < len(text) else -1


def last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return last_index_of_before(text, part, len(text) - 1)


def last_index_of_before(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(text.count(old), count)
    check_text_length(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, max(count, -1))


def split(text: str, separator: str, count: int = -1) -> list[Value]:
    if count == 0:
        return []
    if not separator:
        cut = len(text) if count < 0 else min(count - 1, len(text))
        rest = text[cut:]
        return [*text[:cut], *([rest] if rest else [])]
    return list(text.split(separator, count - 1 if count > 0 else -1))


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationFailure(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def join(texts: list[Value], separator: str = "") -> str:
    for element in texts:
        if not isinstance(element, str):
            raise EvaluationFailure(f"join: invalid input: {type_name(element)}")
    check_text_length(sum(map(len, map(str, texts))) + len(separator) * len(texts))
    return separator.join(map(str, texts))


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def find(text: str, pattern: str) -> str:
    try:
        return compile_pattern(pattern).first_in(text)
    except PatternError as error:
        raise EvaluationFailure(f"Illegal regex: {error}") from None
    except PatternWorkExceeded:
        raise CostExceeded from None


def find_all(text: str, pattern: str, count: int = -1) -> list[Value]:
    try:
        return [*compile_pattern(pattern).all_in(text, count)]
    except PatternError as error:
        raise EvaluationFailure(f"Illegal regex: {error}") from None
    except PatternWorkExceeded:
        raise CostExceeded from None


def _both_texts(operation: Binding) -> Binding:
    def on_texts(text: Value, part: Value) -> Value:
        if not isinstance(text, str) or not isinstance(part, str):
            raise no_such_overload()
        return operation(text, part)

    return on_texts


def _out_of_range(index: int) -> EvaluationFailure:
    return EvaluationFailure(f"index out of range: {index}")


ROWS = [
    OverloadRow("(string).contains(string): bool", _both_texts(str.__contains__), is_guarded=False),
    OverloadRow("(string).endsWith(string): bool", _both_texts(str.endswith), is_guarded=False),
    OverloadRow("(string).startsWith(string): bool", _both_texts(str.startswith), is_guarded=False),
    OverloadRow("matches(string, string): bool"),
    OverloadRow("(string).matches(string): bool"),
    OverloadRow("(string).find(string): string", find),
    OverloadRow("(string).findAll(string): list(string)", find_all),
    OverloadRow("(string).findAll(string, int): list(string)", find_all),
    OverloadRow("(string).charAt(int): string", char_at),
    OverloadRow("(string).indexOf(string): int", index_of),
    OverloadRow("(string).indexOf(string, int): int", index_of),
    OverloadRow("(string).lastIndexOf(string): int", last_index_of),
    OverloadRow("(string).lastIndexOf(string, int): int", last_index_of_before),
    OverloadRow("(string).lowerAscii(): string", lambda text: text.translate(_LOWER)),
    OverloadRow("(string).replace(string, string): string", replace),
    OverloadRow("(string).replace(string, string, int): string", replace),
    OverloadRow("(string).split(string): list(string)", split),
    OverloadRow("(string).split(string, int): list(string)", split),
    OverloadRow("(string).substring(int): string", substring),
    OverloadRow("(string).substring(int, int): string", substring_between),
    OverloadRow("(string).trim(): string", lambda text: text.strip(_SPACES)),
    OverloadRow("(string).upperAscii(): string", lambda text: text.translate(_UPPER)),
    OverloadRow("(string).format(list(dyn)): string", formatted),
    OverloadRow("strings.quote(string): string", quote),
    OverloadRow("(list(string)).join(): string", join),
    OverloadRow("(list(string)).join(string): string", join),
]

BINDINGS: dict[str, Binding] = {"matches": matches}
