"""Costs: what the evaluation of an expression may cost at most, and what a call costs.

Comes in   a tree, and the calls that are made while it runs
Goes out   whether the tree needs a meter at all; the cost of a call

 1. The unit is Kubernetes': a variable, a member or a call is 1, a list 10, a map 30, a text a tenth of its length.
 2. Only expressions that can become expensive are metered: those that loop, that build texts or lists from others, or
    that are very long. Everything else stays far below the limit, whatever the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mooring.api.cel.errors import CostExceeded
from mooring.api.cel.syntax import ADD, Call, Comprehension, Node, descendants
from mooring.api.cel.types import Kind
from mooring.api.cel.values import Cidr, IpAddress, NamedFormat, Optional, Url, Value
from mooring.api.cel.versions import Version
from mooring.api.quantity import Quantity

COST_MAX = 1_000_000
LIST_COST, MAP_COST = 10, 30
UNMETERED_LENGTH_MAX = 1_000
"""An expression of this length cannot hold enough elements to be expensive without a loop."""

CallCost = Callable[[tuple[Value, ...], Value], int]

_GROWING_FUNCTIONS = frozenset({"replace", "join", "format", "lists.range"})
_TEXT_FACTOR, _REGEX_FACTOR = 0.1, 0.25


def needs_meter(tree: Node, length: int) -> bool:
    """Whether the expression could cost too much."""
    return length > UNMETERED_LENGTH_MAX or any(map(_can_grow, descendants(tree)))


class Meter:
    """Counts what was spent."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0

    def charge(self, cost: int) -> None:
        self.spent += cost
        if self.spent > COST_MAX:
            raise CostExceeded


def call_cost(function: str, overload_ids: tuple[str, ...]) -> CallCost:
    """What a call costs, as a function of its arguments and its result."""
    only = overload_ids[0] if len(overload_ids) == 1 else ""
    return _COSTS_BY_OVERLOAD.get(only) or _COSTS_BY_FUNCTION.get(function) or _unit


def _can_grow(node: Node) -> bool:
    match node:
        case Comprehension():
            return not node.is_binding
        case Call(function=function):
            return function in _GROWING_FUNCTIONS or (function == ADD and node.type.kind not in (Kind.INT, Kind.DOUBLE))
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
    if isinstance(value, (str, bytes)):
        return int(len(value if isinstance(value, bytes) else value.encode()) * _TEXT_FACTOR)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(element) for key, element in value.items())
    return 1


# --- rules ------------------------------------------------------------------------------------------------------


def _unit(arguments: tuple[Value, ...], result: Value) -> int:
    return 1


def _first_text(arguments: tuple[Value, ...], result: Value) -> int:
    return _text(_size(arguments[0]))


def _first_text_twice(arguments: tuple[Value, ...], result: Value) -> int:
    return _text(_size(arguments[0]) * 2)


def _traversed(arguments: tuple[Value, ...], result: Value) -> int:
    return _traversal(arguments[0])


def _shorter(arguments: tuple[Value, ...], result: Value) -> int:
    if isinstance(arguments[0], (Quantity, Version, Url, IpAddress, Cidr, NamedFormat)):
        return 1
    return _text(min(_size(arguments[0]), _size(arguments[1])))


def _both(arguments: tuple[Value, ...], result: Value) -> int:
    return _text(_size(arguments[0]) + _size(arguments[1]))


def _contains(arguments: tuple[Value, ...], result: Value) -> int:
    return _text(_size(arguments[0])) * _text(_size(arguments[1]))


def _regex(arguments: tuple[Value, ...], result: Value) -> int:
    return _text(1 + _size(arguments[0])) * math.ceil(_size(arguments[1]) * _REGEX_FACTOR)


def _validate(arguments: tuple[Value, ...], result: Value) -> int:
    form = arguments[0]
    assert isinstance(form, NamedFormat), form
    return _text(1 + _size(arguments[1])) * math.ceil(form.regex_size * _REGEX_FACTOR)


def _sets(factor: int) -> CallCost:
    return lambda arguments, result: 1 + _size(arguments[0]) * _size(arguments[1]) * factor


def _output(arguments: tuple[Value, ...], result: Value) -> int:
    return _size(result) + 1 + LIST_COST


def _flatten(arguments: tuple[Value, ...], result: Value) -> int:
    depth = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], int) else 1
    return _size(arguments[0]) * depth + 1 + LIST_COST


def _self_compare(position: int) -> CallCost:
    def cost(arguments: tuple[Value, ...], result: Value) -> int:
        elements = arguments[position]
        assert isinstance(elements, list), elements
        factor = 2.1 if elements and isinstance(elements[0], (str, bytes)) else 2.0
        return int(len(elements) ** 2 * factor) + 1 + LIST_COST

    return cost


def _network(is_cidr: bool, is_text: bool) -> CallCost:
    def cost(arguments: tuple[Value, ...], result: Value) -> int:
        size = _size(arguments[0])
        total = _text(size * 2) + (_text(size) + 1 if is_cidr else 0)
        return total + (_text(_size(arguments[1])) if is_text else 0)

    return cost


_COSTS_BY_FUNCTION: dict[str, CallCost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first_text),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_text_twice),
    "join": lambda arguments, result: _text(_size(result) * 2),
    **dict.fromkeys(("find", "findAll"), _regex),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _first_text),
    **dict.fromkeys(("_==_", "_!=_"), _shorter),
    "validate": _validate,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    **dict.fromkeys(("slice", "lists.range", "reverse"), _output),
    "flatten": _flatten,
    "distinct": _self_compare(0),
    "sort": _self_compare(0),
    "@sortByAssociatedKeys": _self_compare(1),
}
_COSTS_BY_OVERLOAD: dict[str, CallCost] = {
    "(cidr).ip(): ip": _unit,
    "(string).startsWith(string): bool": _first_text,
    "(string).endsWith(string): bool": _first_text,
    "bytes(string): bytes": _first_text,
    "string(bytes): string": _first_text,
    "strings.quote(string): string": _first_text,
    "(string).format(list(dyn)): string": _first_text,
    "@in(A, list(A)): bool": lambda arguments, result: _size(arguments[1]),
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
