"""The cost of an evaluation: its unit, its limit, and the cost of each call.

Input: a tree, and the calls made while it runs. Output: whether the tree needs a meter; the cost of a call.

 1. The unit is that of Kubernetes: a variable, a member or a call costs 1, a list 10, a map 30, a text a tenth of its
    length.
 2. The part of a cost that follows from the arguments is checked before the call, so that a call that is too expensive
    never runs.
 3. The bytes that a call produces cost a tenth each, as cel-go has it for `+`. For `replace` and `format`, Kubernetes
    charges only the input. Elements of nested and of copied lists and large patterns also cost more than in Kubernetes,
    where they are cheaper or not bounded.
 4. A device selector is metered only if it can become expensive. A rule of a CRD always is: its values can be large.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mooring.api.cel.errors import ELEMENTS_MAX, CostExceeded
from mooring.api.cel.patterns import PatternError, compile_pattern
from mooring.api.cel.syntax import (
    ADD,
    CallNode,
    Comprehension,
    ListLiteral,
    Literal,
    MapLiteral,
    SyntaxNode,
    descendants,
)
from mooring.api.cel.types import TypeKind
from mooring.api.cel.values import Cidr, IpAddress, NamedFormat, Optional, Url, Value, Version
from mooring.api.quantity import Quantity

COST_MAX = 1_000_000
LIST_COST, MAP_COST = 10, 30
UNMETERED_LENGTH_MAX = 1_000
"""An expression of this length cannot hold enough elements to be expensive without a loop."""

ArgumentCost = Callable[[tuple[Value, ...]], int]
ResultCost = Callable[[Value], int]

_GROWING_FUNCTIONS = frozenset({"replace", "join", "format", "lists.range", "strings.quote", "flatten"})
_TEXT_FACTOR, _REGEX_FACTOR = 0.1, 0.25
_PATTERN_STEPS = 50
"""Steps of a pattern's machine for one cost unit. cel-go uses only the length of the pattern."""

_COPIED_ELEMENTS = 100
"""Copied elements of a list for one unit. cel-go does not copy."""


def needs_meter(tree: SyntaxNode, length: int) -> bool:
    """Whether the expression could exceed the limit on a device, whose attributes are small."""
    return length > UNMETERED_LENGTH_MAX or any(map(_can_grow, descendants(tree)))


class Meter:
    """The cost of one evaluation so far."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0

    def charge(self, cost: int) -> None:
        self.spent += cost
        if self.spent > COST_MAX:
            raise CostExceeded

    def require(self, cost: int) -> None:
        """Raise `CostExceeded` if a call of this cost would exceed the limit."""
        if self.spent + cost > COST_MAX:
            raise CostExceeded


def argument_cost(function: str, overload_ids: tuple[str, ...]) -> ArgumentCost:
    """The part of a call's cost that follows from its arguments."""
    only = overload_ids[0] if len(overload_ids) == 1 else ""
    return _COSTS_BY_OVERLOAD.get(only) or _COSTS_BY_FUNCTION.get(function) or _unit


def result_cost(function: str, overload_ids: tuple[str, ...]) -> ResultCost:
    """The part of a call's cost that follows from its result."""
    if function == "join":
        return lambda result: _text(_size(result) * 2)
    if function in ("replace", "format", "flatten", "_+_") and overload_ids not in _CHARGED_ADDITIONS:
        return _produced
    return _nothing


def _can_grow(node: SyntaxNode) -> bool:
    match node:
        case Comprehension():
            return not node.is_binding
        case CallNode(function=function):
            return function in _GROWING_FUNCTIONS or (
                function == ADD and node.type.kind not in (TypeKind.INT, TypeKind.DOUBLE)
            )
        case ListLiteral(elements=elements):
            # A list that holds a variable several times has more elements than characters.
            return any(not isinstance(element, Literal) for element in elements)
        case MapLiteral(entries=entries):
            return any(not isinstance(entry.value, Literal) for entry in entries)
        case _:
            return False


# --- sizes ------------------------------------------------------------------------------------------------------


def _size(value: Value) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if isinstance(value, IpAddress):
        return value.address.max_prefixlen // 8
    if isinstance(value, Cidr):
        return math.ceil(value.interface.network.prefixlen / 8)
    return _size(value.held) if isinstance(value, Optional) and value.has_value else 1


def _text(length: float) -> int:
    return math.ceil(length * _TEXT_FACTOR)


def _traversal(value: Value) -> int:
    """The cost to look at everything in a value."""
    if isinstance(value, (str, bytes)):
        return int(len(value if isinstance(value, bytes) else value.encode()) * _TEXT_FACTOR)
    if isinstance(value, list):
        _element_count(value)
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        _element_count(value)
        return sum(_traversal(key) + _traversal(element) for key, element in value.items())
    return 1


def _element_count(*values: Value) -> int:
    """The number of elements in lists and maps, at all levels. Lists that share elements can have very many."""
    count, waiting = 0, [value for value in values if isinstance(value, (list, dict))]
    while waiting:
        value = waiting.pop()
        count += len(value)
        if count > ELEMENTS_MAX:
            raise CostExceeded
        elements = value if isinstance(value, list) else value.values()
        waiting += [element for element in elements if isinstance(element, (list, dict))]
    return count


# --- costs by arguments -----------------------------------------------------------------------------------------


def _unit(arguments: tuple[Value, ...]) -> int:
    return 1


def _first_text(arguments: tuple[Value, ...]) -> int:
    return _text(_size(arguments[0]))


def _first_text_twice(arguments: tuple[Value, ...]) -> int:
    return _text(_size(arguments[0]) * 2)


def _traversed(arguments: tuple[Value, ...]) -> int:
    return _traversal(arguments[0])


def _shorter(arguments: tuple[Value, ...]) -> int:
    if isinstance(arguments[0], (Quantity, Version, Url, IpAddress, Cidr, NamedFormat)):
        return 1
    cost = _text(min(_size(arguments[0]), _size(arguments[1])))
    return max(cost, _text(_element_count(arguments[0])) if isinstance(arguments[0], (list, dict)) else 0)


def _in_list(arguments: tuple[Value, ...]) -> int:
    return max(_size(arguments[1]), _text(_element_count(arguments[1])))


def _both(arguments: tuple[Value, ...]) -> int:
    return _text(_size(arguments[0]) + _size(arguments[1]))


def _contains(arguments: tuple[Value, ...]) -> int:
    return _text(_size(arguments[0])) * _text(_size(arguments[1]))


def _regex(arguments: tuple[Value, ...]) -> int:
    cost = _text(1 + _size(arguments[0])) * math.ceil(_size(arguments[1]) * _REGEX_FACTOR)
    return max(cost, _pattern_steps(arguments[0], arguments[1]) // _PATTERN_STEPS)


def _pattern_steps(text: Value, pattern: Value) -> int:
    try:
        return compile_pattern(pattern).work(text) if isinstance(pattern, str) and isinstance(text, str) else 0
    except PatternError:
        return 0


def _validate(arguments: tuple[Value, ...]) -> int:
    form = arguments[0]
    assert isinstance(form, NamedFormat), form
    return _text(1 + _size(arguments[1])) * math.ceil(form.regex_size * _REGEX_FACTOR)


def _nesting(*values: Value) -> int:
    """How many elements there are for each ten at the top level: the extra work of comparing nested elements."""
    return max(1, _text(_element_count(*values) / max(1, sum(map(_size, values)))))


def _sets(factor: int) -> ArgumentCost:
    def cost(arguments: tuple[Value, ...]) -> int:
        return 1 + _size(arguments[0]) * _size(arguments[1]) * factor * _nesting(*arguments)

    return cost


def _range(arguments: tuple[Value, ...]) -> int:
    return (max(arguments[0], 0) if isinstance(arguments[0], int) else 0) + 1 + LIST_COST


def _slice(arguments: tuple[Value, ...]) -> int:
    elements, start, end = arguments
    assert isinstance(start, int), start
    assert isinstance(end, int), end
    return max(min(end, _size(elements)) - max(start, 0), 0) + 1 + LIST_COST


def _copy(arguments: tuple[Value, ...]) -> int:
    return _size(arguments[0]) + 1 + LIST_COST


def _flatten(arguments: tuple[Value, ...]) -> int:
    depth = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], int) else 1
    return max(_size(arguments[0]) * depth, _text(_element_count(arguments[0]))) + 1 + LIST_COST


def _format(arguments: tuple[Value, ...]) -> int:
    return _first_text(arguments) + _element_count(arguments[1]) - _size(arguments[1])


def _self_compare(position: int) -> ArgumentCost:
    def cost(arguments: tuple[Value, ...]) -> int:
        elements = arguments[position]
        if not isinstance(elements, list):
            return 1
        factor = 2.1 if elements and isinstance(elements[0], (str, bytes)) else 2.0
        return int(len(elements) ** 2 * factor) * _nesting(elements) + 1 + LIST_COST

    return cost


def _network(is_cidr: bool, is_text: bool) -> ArgumentCost:
    def cost(arguments: tuple[Value, ...]) -> int:
        size = _size(arguments[0])
        total = _text(size * 2) + (_text(size) + 1 if is_cidr else 0)
        return total + (_text(_size(arguments[1])) if is_text else 0)

    return cost


# --- costs by result --------------------------------------------------------------------------------------------


def _nothing(result: Value) -> int:
    return 0


def _produced(result: Value) -> int:
    """The cost of the bytes or elements of a new text or list."""
    if isinstance(result, (str, bytes)):
        return _text(len(result))
    return len(result) // _COPIED_ELEMENTS if isinstance(result, list) else 0


# --- tables -----------------------------------------------------------------------------------------------------

_CHARGED_ADDITIONS = (("_+_(string, string): string",), ("_+_(bytes, bytes): bytes",))
"""Their costs by arguments already are a tenth of the result."""

_COSTS_BY_FUNCTION: dict[str, ArgumentCost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first_text),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_text_twice),
    "join": lambda arguments: 0,
    **dict.fromkeys(("find", "findAll"), _regex),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _first_text),
    **dict.fromkeys(("_==_", "_!=_"), _shorter),
    "validate": _validate,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "slice": _slice,
    "lists.range": _range,
    "reverse": _copy,
    "flatten": _flatten,
    "distinct": _self_compare(0),
    "sort": _self_compare(0),
    "@sortByAssociatedKeys": _self_compare(1),
}
_COSTS_BY_OVERLOAD: dict[str, ArgumentCost] = {
    "(cidr).ip(): ip": _unit,
    "(string).startsWith(string): bool": _first_text,
    "(string).endsWith(string): bool": _first_text,
    "bytes(string): bytes": _first_text,
    "string(bytes): string": _first_text,
    "strings.quote(string): string": _first_text,
    "(string).format(list(dyn)): string": _format,
    "@in(A, list(A)): bool": _in_list,
    **{
        f"{operator}({name}, {name}): bool": _shorter
        for operator in ("_<_", "_<=_", "_>_", "_>=_")
        for name in ("string", "bytes")
    },
    "_+_(string, string): string": _both,
    "_+_(bytes, bytes): bytes": _both,
    "(string).matches(string): bool": _regex,
    "(string).contains(string): bool": _contains,
    "(cidr).containsIP(string): bool": _network(is_cidr=False, is_text=True),
    "(cidr).containsIP(ip): bool": _network(is_cidr=False, is_text=False),
    "(cidr).containsCIDR(string): bool": _network(is_cidr=True, is_text=True),
    "(cidr).containsCIDR(cidr): bool": _network(is_cidr=True, is_text=False),
}
