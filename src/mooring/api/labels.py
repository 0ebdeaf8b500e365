"""Label selectors: compile them, parse their text form, and check the syntax of labels.

Input: `LabelSelector` views, maps (of services and node selectors), requirements. Output: a `LabelMatcher` with
`matches(labels)`, which is compared and hashed by its meaning.

 1. No selector (`None`) matches nothing; an empty one matches everything.
 2. Two matchers are equal if they have the same requirements in any order, and `tier=web` equals `tier in (web)`.
    Matchers are keys of the counts per selector.
 3. A requirement can be evaluated for one value (`matches_value`) and for an absent label (`matches_absent`): columns
    evaluate it once for each distinct value of a key.
 4. Compiled selectors are cached, because all pods of a template have the same.
 5. Compiling an invalid selector raises a `LabelSelectorError` with all errors of the first invalid requirement.

The syntax of keys (`example.com/tier`) and values (`front-end`) is checked with the texts of Kubernetes. Lengths are
counted in bytes, not in characters.

The text form is `tier=web,stage in (test,beta),!legacy,generation>3`. Input: the text of a `--selector` flag or a
`labelSelector` parameter. Output: a `LabelMatcher`, or a `LabelSelectorError` with what was found and what was
expected.

    selector     = [ requirement { "," requirement } ]
    requirement  = "!" key | key | key ("=" | "==" | "!=" | ">" | "<") value | key ("in" | "notin") "(" values ")"
    values       = value { "," value }          where a value may be empty

 1. An empty text selects everything.
 2. `in` and `notin` are operators only where an operator is expected. Elsewhere they are keys or values.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from mooring.api.caches import BoundedCache
from mooring.api.errors import LabelSelectorError
from mooring.api.field_errors import NO_PATH, aggregated, invalid_value, quoted
from mooring.api.views.meta import LabelSelector, LabelSelectorRequirement


class Operator(enum.StrEnum):
    """The operator of a requirement. Equality is `IN` with one value, inequality `NOT_IN` with one."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER_THAN = "Gt"
    LESS_THAN = "Lt"


SOUND_MAX = 16_384
"""How many keys, and how many values, are remembered as sound or not."""

LABEL_SELECTOR_OPERATORS: Mapping[str, Operator] = {
    operator.value: operator for operator in (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
}
"""The operators of a `LabelSelector`. `Gt` and `Lt` are for node selectors and for the text form."""


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One requirement on one label. The values are sorted and distinct."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        return self.matches_absent if value is None else self.matches_value(value)

    def matches_value(self, value: str) -> bool:
        """Whether the requirement holds for an object that has the label with this value."""
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return True
            case Operator.DOES_NOT_EXIST:
                return False
            case Operator.GREATER_THAN:
                return _is_less(self.values[0], value)
            case Operator.LESS_THAN:
                return _is_less(value, self.values[0])
            case never:
                assert_never(never)

    @property
    def matches_absent(self) -> bool:
        """Whether the requirement holds for an object that does not have the label."""
        return self.operator is Operator.NOT_IN or self.operator is Operator.DOES_NOT_EXIST

    @property
    def is_equality(self) -> bool:
        return self.operator is Operator.IN and len(self.values) == 1

    def __str__(self) -> str:
        match self.operator:
            case Operator.IN | Operator.NOT_IN if len(self.values) == 1:
                return f"{self.key}{'=' if self.operator is Operator.IN else '!='}{self.values[0]}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                return f"{self.key}{'>' if self.operator is Operator.GREATER_THAN else '<'}{self.values[0]}"
            case never:
                assert_never(never)


class LabelMatcher:
    """A compiled selector: all of its requirements must hold. Immutable, hashable, equal by meaning."""

    __slots__ = ("_hash", "_others", "equality_pairs", "matches_nothing", "requirements")

    requirements: tuple[Requirement, ...]
    """Sorted and distinct: the canonical form."""

    equality_pairs: tuple[tuple[str, str], ...]
    """The requirements that name a key's only value. An index finds candidates by these."""

    matches_nothing: bool
    """Whether it was compiled from an absent selector. (A selector that contradicts itself is not detected.)"""

    def __init__(self, requirements: Iterable[Requirement] = (), *, matches_nothing: bool = False) -> None:
        self.requirements = tuple(sorted(set(requirements)))
        self.matches_nothing = matches_nothing
        self.equality_pairs = tuple(
            (requirement.key, requirement.values[0]) for requirement in self.requirements if requirement.is_equality
        )
        self._others = tuple(requirement for requirement in self.requirements if not requirement.is_equality)
        self._hash = hash((self.requirements, matches_nothing))

    @property
    def matches_everything(self) -> bool:
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self.equality_pairs:
            if labels.get(key) != value:
                return False
        for requirement in self._others:
            if not requirement.matches(labels):
                return False
        return not self.matches_nothing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelMatcher):
            return NotImplemented
        return self.requirements == other.requirements and self.matches_nothing == other.matches_nothing

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)

    def __repr__(self) -> str:
        return "LabelMatcher(nothing)" if self.matches_nothing else f"LabelMatcher({str(self) or 'everything'})"


_sound_keys: BoundedCache[str, bool] = BoundedCache(SOUND_MAX)
_sound_values: BoundedCache[str, bool] = BoundedCache(SOUND_MAX)

EVERYTHING = LabelMatcher()
NOTHING = LabelMatcher(matches_nothing=True)

SELECTORS_REMEMBERED_MAX = 16_384

_matchers: BoundedCache[tuple[tuple[tuple[str, str], ...], tuple[LabelSelectorRequirement, ...]], LabelMatcher] = (
    BoundedCache(SELECTORS_REMEMBERED_MAX)
)


def compile_selector(selector: LabelSelector | None) -> LabelMatcher:
    """The matcher of a `LabelSelector`. Raises `LabelSelectorError`."""
    if selector is None:
        return NOTHING
    question = (tuple(selector.match_labels.items()), selector.match_expressions)
    matcher = _matchers.get(question)
    return matcher if matcher is not None else _matchers.put(question, _compiled(selector))


def _compiled(selector: LabelSelector) -> LabelMatcher:
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    requirements = [
        checked_requirement(key, Operator.IN, (value,)) for key, value in sorted(selector.match_labels.items())
    ]
    for expression in selector.match_expressions:
        operator = LABEL_SELECTOR_OPERATORS.get(expression.operator)
        if operator is None:
            raise LabelSelectorError(f"{quoted(expression.operator)} is not a valid label selector operator")
        requirements.append(checked_requirement(expression.key, operator, expression.values))
    return LabelMatcher(requirements)


def matcher_of_pairs(pairs: Mapping[str, str]) -> LabelMatcher:
    """Matches objects with all of these labels; without labels, every object. The labels are not validated."""
    return LabelMatcher(Requirement(key, Operator.IN, (value,)) for key, value in pairs.items())


def requirements_with(matcher: LabelMatcher, pairs: Mapping[str, str]) -> LabelMatcher:
    """The matcher, restricted to objects that have these labels too."""
    if matcher.matches_nothing or not pairs:
        return matcher
    return LabelMatcher((*matcher.requirements, *matcher_of_pairs(pairs).requirements))


# --- checking ---------------------------------------------------------------------------------------------------


def checked_requirement(key: str, operator: Operator, values: Sequence[str]) -> Requirement:
    """A requirement that breaks no rule. Raises `LabelSelectorError`."""
    if not is_sound(key, operator, values):
        raise LabelSelectorError(aggregated(requirement_errors(key, operator, values)))
    return Requirement(key, operator, tuple(sorted(set(values))))


def is_sound(key: str, operator: Operator, values: Sequence[str]) -> bool:
    """Whether a requirement is valid, cached: the same keys and values occur many times."""
    if operator is Operator.GREATER_THAN or operator is Operator.LESS_THAN:
        return not requirement_errors(key, operator, values)
    if bool(values) is not (operator is Operator.IN or operator is Operator.NOT_IN):
        return False
    return _is_sound_key(key) and all(_is_sound_value(value) for value in values)


def _is_sound_key(key: str) -> bool:
    known = _sound_keys.get(key)
    return known if known is not None else _sound_keys.put(key, not label_key_errors(key))


def _is_sound_value(value: str) -> bool:
    known = _sound_values.get(value)
    return known if known is not None else _sound_values.put(value, not label_value_errors(value))


def requirement_errors(key: str, operator: Operator, values: Sequence[str], path: str = "") -> list[str]:
    """The errors of the requirement at `path`, with the texts and in the order of Kubernetes."""
    parent = f"{path}." if path else ""
    errors = _joined_errors(f"{parent}key", key, label_key_errors(key))
    errors += _count_errors(f"{parent}values", operator, values)
    for index, value in enumerate(values):
        errors += _joined_errors(f"{parent}values[{index}][{key}]", value, label_value_errors(value))
    return errors


def parse_int64(text: str) -> int | None:
    """The number that a label's value is, if it is one that fits into 64 bits."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")


def _joined_errors(path: str, value: str, errors: Sequence[str]) -> list[str]:
    return [invalid_value(path, value, "; ".join(errors))] if errors else []


def _count_errors(path: str, operator: Operator, values: Sequence[str]) -> list[str]:
    match operator:
        case Operator.IN | Operator.NOT_IN:
            rule, is_valid = "for 'in', 'notin' operators, values set can't be empty", len(values) > 0
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            rule, is_valid = "values set must be empty for exists and does not exist", len(values) == 0
        case Operator.GREATER_THAN | Operator.LESS_THAN:
            rule, is_valid = "for 'Gt', 'Lt' operators, exactly one value is required", len(values) == 1
        case never:
            assert_never(never)
    errors = [] if is_valid else [invalid_value(path, values, rule)]
    if operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        integer_rule = "for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values):
            if parse_int64(value) is None:
                errors.append(invalid_value(f"{path}[{index}]", value, integer_rule))
    return errors


def _is_less(left: str, right: str) -> bool:
    left_number, right_number = parse_int64(left), parse_int64(right)
    return left_number is not None and right_number is not None and left_number < right_number


# --- syntax ---------------------------------------------------------------------------------------------------


NAME_BYTES_MAX = 63
VALUE_BYTES_MAX = 63
PREFIX_BYTES_MAX = 253

_NAME_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM = f"({_NAME_FORM})?"
_DNS_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX_FORM = rf"{_DNS_LABEL_FORM}(\.{_DNS_LABEL_FORM})*"

_is_name = re.compile(_NAME_FORM, re.ASCII).fullmatch
_is_value = re.compile(_VALUE_FORM, re.ASCII).fullmatch
_is_prefix = re.compile(_PREFIX_FORM, re.ASCII).fullmatch

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_FORM}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE_FORM}')"
)
_PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_PREFIX_FORM}')"
)
_TOO_MANY_PARTS = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


def label_key_errors(key: str) -> list[str]:
    """Messages about an invalid label key: a name, optionally with a DNS subdomain and a slash before it."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_TOO_MANY_PARTS]
    errors = _prefix_errors(prefix) if slash else []
    if not name:
        errors.append("name part must be non-empty")
    elif _byte_count(name) > NAME_BYTES_MAX:
        errors.append(f"name part must be no more than {NAME_BYTES_MAX} bytes")
    if not _is_name(name):
        errors.append(f"name part {_NAME_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Messages about an invalid label value."""
    errors = []
    if _byte_count(value) > VALUE_BYTES_MAX:
        errors.append(f"must be no more than {VALUE_BYTES_MAX} bytes")
    if not _is_value(value):
        errors.append(_VALUE_RULE)
    return errors


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    errors = []
    if _byte_count(prefix) > PREFIX_BYTES_MAX:
        errors.append(f"prefix part must be no more than {PREFIX_BYTES_MAX} bytes")
    if not _is_prefix(prefix):
        errors.append(f"prefix part {_PREFIX_RULE}")
    return errors


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


# --- selectors in text form -----------------------------------------------------------------------------------


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
    """The matcher of a selector in text form. Raises `LabelSelectorError`."""
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
    """The values in parentheses. `()` is one empty value, and so is each gap between commas."""
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
