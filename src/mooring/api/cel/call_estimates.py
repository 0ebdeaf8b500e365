"""Estimate the maximum cost of a call of a library function, and the size of its result.

Input: a function, its overload, and what is known of its target and arguments. Output: an `Estimate`, or None for
operators and functions that cost one unit, which `estimates` handles. A `CostRange` is a range of sizes or costs.

 1. The figures are those of Kubernetes, including its oddities: the API server rejects expressions by them.
 2. The sizes of the elements of a literal list are unknown, so `["a", "b"].max()` has the maximum cost.
 3. Both ends of a span stop at `MOST`, which means unknown. They never wrap around.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mooring.api.cel.syntax import EQUALS, Literal, SyntaxNode
from mooring.api.cel.types import CIDR, IP_ADDRESS, NAMED_FORMAT, QUANTITY, SEMVER, URL, TypeKind

# --- spans ------------------------------------------------------------------------------------------------------

MOST = 2**64 - 1


class CostRange(NamedTuple):
    low: int
    high: int

    def plus(self, other: CostRange) -> CostRange:
        return CostRange(min(self.low + other.low, MOST), min(self.high + other.high, MOST))

    def times(self, other: CostRange) -> CostRange:
        return CostRange(min(self.low * other.low, MOST), min(self.high * other.high, MOST))

    def scaled(self, factor: float) -> CostRange:
        return CostRange(_scaled(self.low, factor), _scaled(self.high, factor))

    def joined(self, other: CostRange) -> CostRange:
        """The smallest span that contains both."""
        return CostRange(min(self.low, other.low), max(self.high, other.high))


def exactly(amount: int) -> CostRange:
    return CostRange(amount, amount)


NOTHING, ONE = exactly(0), exactly(1)
UNKNOWN = CostRange(0, MOST)
NEVER = CostRange(MOST, 0)
"""The neutral element of `joined`."""


def _scaled(amount: int, factor: float) -> int:
    product = float(amount) * factor
    return MOST if product >= float(MOST) else math.ceil(product)


# --- calls ------------------------------------------------------------------------------------------------------

TEXT_FACTOR, REGEX_FACTOR = 0.1, 0.25
LIST_COST = 10
FORMAT_LENGTH_MAX, FORMAT_REGEX_LENGTH_MAX = 64, 128


@dataclass(frozen=True, slots=True)
class Operand:
    """A target or an argument."""

    node: SyntaxNode
    known_size: CostRange | None
    known_element_size: CostRange | None = None

    @property
    def size(self) -> CostRange:
        return self.known_size if self.known_size is not None else UNKNOWN

    @property
    def element_size(self) -> CostRange:
        return self.known_element_size if self.known_element_size is not None else UNKNOWN

    @property
    def is_text_list(self) -> bool:
        parameters = self.node.type.parameters
        return bool(parameters) and parameters[0].kind in (TypeKind.STRING, TypeKind.BYTES)

    def whole_number(self, otherwise: int) -> int:
        """The value of a literal integer that is not negative."""
        value = self.node.value if isinstance(self.node, Literal) else None
        return value if type(value) is int and value >= 0 else otherwise


@dataclass(frozen=True, slots=True)
class Estimate:
    cost: CostRange
    result_size: CostRange | None = None


def call_estimate(function: str, overload: str, target: Operand | None, arguments: list[Operand]) -> Estimate | None:
    if function in _CHEAP:
        return Estimate(ONE)
    if function in _OF_TARGET and target is not None:
        return _OF_TARGET[function](overload, target, arguments)
    if function in _OF_ARGUMENTS and arguments:
        return _OF_ARGUMENTS[function](overload, arguments)
    return None


_CHEAP = frozenset(
    {
        *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "format.named"),
        *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo"),
        *("add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    }
)


# --- strings ----------------------------------------------------------------------------------------------------


def _same_size(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    return Estimate(target.size.scaled(TEXT_FACTOR), target.size)


def _replace(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    size, search, replacement = target.size, arguments[0].size, arguments[1].size
    most, most_unchanged = _replacements(size.high, search.low, replacement.high <= search.low)
    least, least_unchanged = _replacements(size.low, search.high, search.high <= replacement.low)
    result = CostRange(least, most).times(replacement).plus(CostRange(least_unchanged, most_unchanged))
    return Estimate(size.scaled(2 * TEXT_FACTOR), result)


def _replacements(length: int, search: int, is_unchanged: bool) -> tuple[int, int]:
    """The number of replacements in a text of this length, and the length of the rest."""
    if not search:
        return min(length + 1, MOST), length
    return (0, length) if is_unchanged else (math.ceil(length / search), 0)


def _split(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    high = target.size.high
    if len(arguments) > 1 and isinstance(arguments[1].node, Literal) and type(arguments[1].node.value) is int:
        high = arguments[1].node.value % (MOST + 1)
    return Estimate(target.size.scaled(2 * TEXT_FACTOR), CostRange(0, high))


def _join(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    count = target.size
    size = count.times(target.element_size) if target.node.type.parameters else NOTHING
    if arguments:
        size = size.plus(arguments[0].size.times(CostRange(max(count.low - 1, 0), max(count.high - 1, 0))))
    return Estimate(size.scaled(TEXT_FACTOR), size)


def _find(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    text_cost = target.size.plus(ONE).scaled(TEXT_FACTOR)
    return Estimate(text_cost.times(arguments[0].size.scaled(REGEX_FACTOR)), CostRange(0, target.size.high))


# --- lists ------------------------------------------------------------------------------------------------------


def _compared(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    """Functions that read each element of a list, or each character of a text."""
    if not target.node.type.parameters:
        return Estimate(target.size.scaled(TEXT_FACTOR))
    element = ONE.plus(target.element_size.scaled(TEXT_FACTOR)) if target.is_text_list else ONE
    return Estimate(target.size.times(element))


def _made(factor: float, size: CostRange) -> Estimate:
    """A call that returns a list of this size."""
    return Estimate(size.scaled(factor).plus(exactly(1 + LIST_COST)), size)


def _slice(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    start, end = arguments[0].whole_number(0), arguments[1].whole_number(target.size.high)
    return _made(1, exactly((end - start) % (MOST + 1)))


def _flatten(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    depth = arguments[0].whole_number(MOST) if arguments else 1
    return _made(float(depth), target.size)


def _distinct(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    return _made(2.0, target.size.times(target.size))


def _sorted(overload: str, by: Operand) -> Estimate:
    holds_texts = "(list(string)" in overload or "(list(bytes)" in overload
    return _made(2.0 + (TEXT_FACTOR if holds_texts else 0.0), by.size.times(by.size))


def _sets(factor: float) -> Callable[[str, list[Operand]], Estimate]:
    return lambda overload, arguments: Estimate(arguments[0].size.times(arguments[1].size).scaled(factor).plus(ONE))


# --- Kubernetes' own types --------------------------------------------------------------------------------------


def _parsed(factor: float = TEXT_FACTOR) -> Callable[[str, list[Operand]], Estimate]:
    return lambda overload, arguments: Estimate(arguments[0].size.scaled(factor))


def _url(overload: str, arguments: list[Operand]) -> Estimate:
    return Estimate(arguments[0].size.scaled(TEXT_FACTOR), arguments[0].size)


def _contained(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    """`containsIP` and `containsCIDR`. A text is parsed first."""
    length = CostRange(4, 16)
    cost = length.plus(length).scaled(TEXT_FACTOR)
    if "containsCIDR" in overload:
        cost = cost.plus(length.scaled(TEXT_FACTOR)).plus(ONE)
    if "(string)" in overload:
        cost = cost.plus(arguments[0].size.scaled(TEXT_FACTOR))
    return Estimate(cost)


def _validate(overload: str, target: Operand, arguments: list[Operand]) -> Estimate:
    return Estimate(arguments[0].size.scaled(TEXT_FACTOR).scaled(FORMAT_REGEX_LENGTH_MAX * REGEX_FACTOR))


def _equals(overload: str, arguments: list[Operand]) -> Estimate | None:
    left, right = arguments[0].node.type, arguments[1].node.type
    if left != right:
        return None
    if left in (IP_ADDRESS, CIDR, QUANTITY, SEMVER):
        return Estimate(ONE)
    if left == NAMED_FORMAT:
        return Estimate(CostRange(1, FORMAT_LENGTH_MAX).scaled(TEXT_FACTOR))
    if left == URL:
        known = arguments[1].known_size
        return Estimate(CostRange(1, known.high if known is not None else 1).scaled(TEXT_FACTOR))
    return None


_OF_TARGET: dict[str, Callable[[str, Operand, list[Operand]], Estimate | None]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _compared),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    "slice": _slice,
    "reverse": lambda overload, target, arguments: _made(1, target.size),
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": lambda overload, target, arguments: _sorted(overload, target),
    "@sortByAssociatedKeys": lambda overload, target, arguments: _sorted(overload, arguments[0]),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contained),
    "validate": _validate,
    "ip": lambda overload, target, arguments: Estimate(ONE),
}
_OF_ARGUMENTS: dict[str, Callable[[str, list[Operand]], Estimate | None]] = {
    "url": _url,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _parsed()),
    "ip.isCanonical": _parsed(2 * TEXT_FACTOR),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "lists.range": lambda overload, arguments: _made(1, exactly(arguments[0].whole_number(MOST))),
    EQUALS: _equals,
}
