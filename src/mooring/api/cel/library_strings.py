"""Functions of texts: CEL's own, the string extension (version 2), and Kubernetes' `find`.

Comes in   texts, and what is asked of them
Goes out   rows for the environment

 1. Positions count characters. Sizes that decide about costs are counted where the costs are.
 2. An empty separator splits between all characters; an empty text to replace is found between all of them.
"""

from __future__ import annotations

from mooring.api.cel.errors import CostExceeded, EvaluationFailure, check_text_length, no_such_overload
from mooring.api.cel.functions import Binding, Row
from mooring.api.cel.operations import unknown_operator
from mooring.api.cel.patterns import PatternError, PatternWorkExceeded, compile_pattern
from mooring.api.cel.text_format import formatted
from mooring.api.cel.values import Value, type_name

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
    Row("(string).contains(string): bool", _both_texts(str.__contains__), is_guarded=False),
    Row("(string).endsWith(string): bool", _both_texts(str.endswith), is_guarded=False),
    Row("(string).startsWith(string): bool", _both_texts(str.startswith), is_guarded=False),
    Row("matches(string, string): bool"),
    Row("(string).matches(string): bool"),
    Row("(string).find(string): string", find),
    Row("(string).findAll(string): list(string)", find_all),
    Row("(string).findAll(string, int): list(string)", find_all),
    Row("(string).charAt(int): string", char_at),
    Row("(string).indexOf(string): int", index_of),
    Row("(string).indexOf(string, int): int", index_of),
    Row("(string).lastIndexOf(string): int", last_index_of),
    Row("(string).lastIndexOf(string, int): int", last_index_of_before),
    Row("(string).lowerAscii(): string", lambda text: text.translate(_LOWER)),
    Row("(string).replace(string, string): string", replace),
    Row("(string).replace(string, string, int): string", replace),
    Row("(string).split(string): list(string)", split),
    Row("(string).split(string, int): list(string)", split),
    Row("(string).substring(int): string", substring),
    Row("(string).substring(int, int): string", substring_between),
    Row("(string).trim(): string", lambda text: text.strip(_SPACES)),
    Row("(string).upperAscii(): string", lambda text: text.translate(_UPPER)),
    Row("(string).format(list(dyn)): string", formatted),
    Row("strings.quote(string): string", quote),
    Row("(list(string)).join(): string", join),
    Row("(list(string)).join(string): string", join),
]

BINDINGS: dict[str, Binding] = {"matches": matches}
