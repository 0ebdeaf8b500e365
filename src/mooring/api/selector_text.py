"""Selectors as people type them: `tier=web,stage in (test,beta),!legacy,generation>3`.

Comes in   the text of a `--selector` flag or a `labelSelector` parameter
Goes out   a `LabelMatcher`; or a `LabelSelectorError` with what was found and what was expected

    selector     = [ requirement { "," requirement } ]
    requirement  = "!" key | key | key ("=" | "==" | "!=" | ">" | "<") value | key ("in" | "notin") "(" values ")"
    values       = value { "," value }          where a value may be empty

 1. An empty text selects everything.
 2. `in` and `notin` are words only where an operator is expected: elsewhere they are a key or a value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mooring.api.errors import LabelSelectorError
from mooring.api.field_errors import NO_PATH, invalid_value
from mooring.api.label_syntax import label_key_errors
from mooring.api.labels import LabelMatcher, Operator, Requirement, checked_requirement

_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END = ""

_EXACT_OPERATORS = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_SET_OPERATORS = {"in": Operator.IN, "notin": Operator.NOT_IN}


def parse_selector(text: str) -> LabelMatcher:
    """The matcher that a text stands for. Raises `LabelSelectorError`."""
    tokens = _Tokens([match[1] for match in _TOKEN.finditer(text)])
    requirements: list[Requirement] = []
    while tokens.ahead != _END:
        if tokens.ahead in _SYMBOLS - {"!"}:
            raise _unexpected(tokens.ahead, "!, identifier, or 'end of string'")
        try:
            requirements.append(_requirement(tokens))
        except LabelSelectorError as error:
            raise LabelSelectorError(f"unable to parse requirement: {error}") from None
        _pass_comma(tokens)
    return LabelMatcher(requirements)


@dataclass
class _Tokens:
    items: list[str]
    position: int = field(default=0)

    @property
    def ahead(self) -> str:
        return self.items[self.position] if self.position < len(self.items) else _END

    def take(self) -> str:
        token = self.ahead
        self.position += 1
        return token


def _pass_comma(tokens: _Tokens) -> None:
    separator = tokens.take()
    if separator not in (_END, ","):
        raise _unexpected(separator, "',' or 'end of string'")
    if separator == "," and (tokens.ahead == _END or tokens.ahead in _SYMBOLS - {"!"}):
        raise _unexpected(tokens.ahead, "identifier after ','")


def _requirement(tokens: _Tokens) -> Requirement:
    is_negated = tokens.ahead == "!"
    if is_negated:
        tokens.take()
    key = _key(tokens)
    if is_negated:
        return checked_requirement(key, Operator.DOES_NOT_EXIST, ())
    if tokens.ahead in (_END, ","):
        return checked_requirement(key, Operator.EXISTS, ())
    word = tokens.take()
    if word in _SET_OPERATORS:
        return checked_requirement(key, _SET_OPERATORS[word], _values(tokens))
    if word in _EXACT_OPERATORS:
        return checked_requirement(key, _EXACT_OPERATORS[word], (_exact_value(tokens),))
    raise _unexpected(word, "in, notin, =, ==, !=, gt, lt")


def _key(tokens: _Tokens) -> str:
    key = tokens.take()
    if key == _END or key in _SYMBOLS:
        raise _unexpected(key, "identifier")
    errors = label_key_errors(key)
    if errors:
        raise LabelSelectorError(invalid_value(NO_PATH, key, "; ".join(errors)))
    return key


def _exact_value(tokens: _Tokens) -> str:
    if tokens.ahead in (_END, ","):
        return ""
    value = tokens.take()
    if value in _SYMBOLS:
        raise _unexpected(value, "identifier")
    return value


def _values(tokens: _Tokens) -> list[str]:
    """What stands in the parentheses. `()` is one empty value, and so is each gap between commas."""
    opening = tokens.take()
    if opening != "(":
        raise LabelSelectorError(f"found '{opening}' expected: '('")
    if tokens.ahead not in (",", ")") and (tokens.ahead == _END or tokens.ahead in _SYMBOLS):
        raise _unexpected(tokens.ahead, "',', ')' or identifier")
    values = [""]
    while True:
        token = tokens.take()
        if token == ")":
            return values
        if token == ",":
            values.append("")
        elif token == _END or token in _SYMBOLS:
            raise _unexpected(token, "',' or ')'" if values[-1] else "',', or identifier")
        elif values[-1]:
            raise _unexpected(token, "',' or ')'")
        else:
            values[-1] = token


def _unexpected(found: str, expected: str) -> LabelSelectorError:
    return LabelSelectorError(f"found '{found}', expected: {expected}")
