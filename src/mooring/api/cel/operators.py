"""The operators `==`, `<`, `+` and so on, `size` and `in`: their implementation and their rows.

Input: values of any type, because the checker accepts what it does not know. Output: a value, or `EvaluationFailure`.

 1. Numbers of different types compare by amount. Arithmetic does not mix them.
 2. Arithmetic beyond 64 bits fails.
 3. Values of different types are unequal. Only the types of Kubernetes (quantities, versions, addresses) on the left
    side fail instead.
 4. The error names the operator if the type of the left side does not implement it at all, as in Kubernetes.
 5. The compiler implements `&&`, `||`, `?:`, `==`, `!=`, indexing and selection. Here they only have types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeGuard

from mooring.api.cel.errors import EvaluationFailure, check_element_count, check_text_length, no_such_overload
from mooring.api.cel.functions import Binding, OverloadRow
from mooring.api.cel.types import CelType
from mooring.api.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Cidr,
    ComputedQuantity,
    DomainMap,
    Duration,
    IpAddress,
    NamedFormat,
    Optional,
    Timestamp,
    Uint,
    Url,
    Value,
    Version,
)
from mooring.api.quantity import Quantity

SECOND_NS = 10**9
TIMESTAMP_MIN_S, TIMESTAMP_MAX_S = -62_135_596_800, 253_402_300_799

_NUMBERS = (int, Uint, float)
_SELF_CONTAINED = {str, int, bool, Uint, bytes, Duration, type(None)}
_RECEIVERS = (str, Duration, Timestamp)
_ORDERED = (int, str, bool, bytes, Uint)


def equal(left: Value, right: Value) -> bool:
    """The operator `==`."""
    kind = type(left)
    if kind is type(right) and kind in _SELF_CONTAINED:
        return left == right
    if left is None or right is None:
        return False
    if _is_number(left):
        return _is_number(right) and _order_of_numbers(left, right) == 0
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(_is_equal_element, left, right))
    if isinstance(left, dict):
        return isinstance(right, dict) and len(left) == len(right) and _equal_maps(left, right)
    return _equal_objects(left, right)


def not_equal(left: Value, right: Value) -> bool:
    """The operator `!=`. It never fails: values that cannot be compared are unequal."""
    try:
        return not equal(left, right)
    except EvaluationFailure:
        return True


def contains(container: Value, value: Value) -> bool:
    """The operator `in`."""
    if isinstance(container, dict):
        return find(container, value)[1]
    if isinstance(container, list):
        return any(is_equal(value, element) for element in container)
    raise no_such_overload()


def is_equal(left: Value, right: Value) -> bool:
    """Like `equal`, but values that cannot be compared are unequal."""
    try:
        return equal(left, right)
    except EvaluationFailure:
        return False


def find(container: dict[Value, Value], key: Value) -> tuple[Value, bool]:
    """The value of a key, and whether there is one. For CEL 1 and 1.0 are the same key, but not True, as for Python."""
    if type(key) is not str and type(key) is not bool and not _is_number(key):
        return None, False
    if key not in container:
        return None, False
    if key in _BOOL_LIKE:
        stored = _StoredKey(key)
        container.get(stored)
        if (type(stored.key) is bool) is not (type(key) is bool):
            return None, False
    return container[key], True


_BOOL_LIKE = (0, 1)


class _StoredKey:
    """Finds the stored key that equals another one. The lookup of a dict returns the value only."""

    __slots__ = ("key", "sought")

    def __init__(self, sought: Value) -> None:
        self.sought = sought
        self.key: Value = None

    def __hash__(self) -> int:
        return hash(self.sought)

    def __eq__(self, stored: object) -> bool:
        if stored != self.sought:
            return False
        self.key = stored
        return True


def compare(operator: str, left: Value, right: Value) -> int:
    """-1, 0 or 1. The name of the operator is for the error text."""
    kind = type(left)
    if kind is type(right) and kind in _ORDERED:
        is_more, is_less = left > right, left < right  # type: ignore[operator]
        return int(is_more) - int(is_less)
    if _is_number(left) and _is_number(right):
        if left != left or right != right:
            raise EvaluationFailure("NaN values cannot be ordered")
        return _order_of_numbers(left, right)
    if isinstance(left, (Duration, Timestamp)) and type(left) is type(right):
        assert isinstance(right, (Duration, Timestamp))
        return (left.nanoseconds > right.nanoseconds) - (left.nanoseconds < right.nanoseconds)
    if _is_number(left) or isinstance(left, (bool, str, bytes, Duration, Timestamp)):
        raise no_such_overload()
    raise unknown_operator(operator, left)


def is_comparable(value: Value) -> bool:
    return isinstance(value, (bool, int, float, str, bytes, Duration, Timestamp))


def unknown_operator(operator: str, operand: Value) -> EvaluationFailure:
    return no_such_overload() if isinstance(operand, _RECEIVERS) else EvaluationFailure(f"no such overload: {operator}")


# --- arithmetic -------------------------------------------------------------------------------------------------


def add(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        return within_int(left + right)
    if isinstance(left, str) and isinstance(right, str):
        check_text_length(len(left) + len(right))
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        check_element_count(len(left) + len(right))
        return left + right
    if isinstance(left, bytes) and isinstance(right, bytes):
        check_text_length(len(left) + len(right))
        return left + right
    if isinstance(left, float) and isinstance(right, float):
        return left + right
    if type(left) is Uint and type(right) is Uint:
        return within_uint(int(left) + int(right))
    if isinstance(left, (Duration, Timestamp)) and isinstance(right, (Duration, Timestamp)):
        return _add_times(left, right)
    if _is_number(left) or isinstance(left, (str, list, bytes, Duration, Timestamp)):
        raise no_such_overload()
    raise unknown_operator("_+_", left)


def subtract(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        return within_int(left - right)
    if isinstance(left, float) and isinstance(right, float):
        return left - right
    if type(left) is Uint and type(right) is Uint:
        return within_uint(int(left) - int(right))
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return duration_within(left.nanoseconds - right.nanoseconds)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return timestamp_within(left.nanoseconds - right.nanoseconds, left.offset_s)
    if isinstance(left, Duration) and isinstance(right, Duration):
        return duration_within(left.nanoseconds - right.nanoseconds)
    if _is_number(left) or isinstance(left, (Duration, Timestamp)):
        raise no_such_overload()
    raise unknown_operator("_-_", left)


def multiply(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        return within_int(left * right)
    if isinstance(left, float) and isinstance(right, float):
        return left * right
    if type(left) is Uint and type(right) is Uint:
        return within_uint(int(left) * int(right))
    raise no_such_overload() if _is_number(left) else unknown_operator("_*_", left)


def divide(left: Value, right: Value) -> Value:
    if isinstance(left, float) and isinstance(right, float):
        return _divided_floats(left, right)
    if _is_whole(left) and _is_whole(right) and type(left) is type(right):
        if right == 0:
            raise EvaluationFailure("division by zero")
        if type(left) is Uint:
            return Uint(int(left) // int(right))
        quotient = abs(left) // abs(right)
        return within_int(quotient if (left < 0) is (right < 0) else -quotient)
    raise no_such_overload() if _is_number(left) else unknown_operator("_/_", left)


def modulo(left: Value, right: Value) -> Value:
    if _is_whole(left) and _is_whole(right) and type(left) is type(right):
        if right == 0:
            raise EvaluationFailure("modulus by zero")
        if type(left) is Uint:
            return Uint(int(left) % int(right))
        if left == INT_MIN and right == -1:
            raise EvaluationFailure("integer overflow")
        remainder = abs(left) % abs(right)
        return -remainder if left < 0 else remainder
    raise no_such_overload() if _is_whole(left) else unknown_operator("_%_", left)


def negate(operand: Value) -> Value:
    if type(operand) is int:
        return within_int(-operand)
    if isinstance(operand, float):
        return -operand
    if isinstance(operand, Duration):
        return duration_within(-operand.nanoseconds)
    raise no_such_overload() if type(operand) is bool else unknown_operator("-_", operand)


def size(operand: Value) -> int:
    if isinstance(operand, (str, list, dict, bytes)):
        return len(operand)
    raise unknown_operator("size", operand)


def within_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationFailure("integer overflow")


def within_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationFailure("unsigned integer overflow")


def duration_within(nanoseconds: int) -> Duration:
    if INT_MIN <= nanoseconds <= INT_MAX:
        return Duration(nanoseconds)
    raise EvaluationFailure("duration overflow")


def timestamp_within(nanoseconds: int, offset_s: int = 0) -> Timestamp:
    if TIMESTAMP_MIN_S <= nanoseconds // SECOND_NS <= TIMESTAMP_MAX_S:
        return Timestamp(nanoseconds, offset_s)
    raise EvaluationFailure("timestamp overflow")


ARITHMETIC: dict[str, Callable[[Value, Value], Value]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
}


# --- comparison -------------------------------------------------------------------------------------------------


def _is_number(value: Value) -> TypeGuard[int | float]:
    return type(value) in _NUMBERS


def _is_whole(value: Value) -> TypeGuard[int]:
    return type(value) is int or type(value) is Uint


def _order_of_numbers(left: int | float, right: int | float) -> int:
    if left != left or right != right:
        return 1  # NaN equals nothing
    if isinstance(left, float) is isinstance(right, float):
        return (left > right) - (left < right)
    # The integer is rounded to the nearest double, unless the double is out of the range of integers.
    whole, other, sign = (right, left, 1) if isinstance(left, float) else (left, right, -1)
    smallest, largest = (0.0, float(UINT_MAX)) if type(whole) is Uint else (float(INT_MIN), float(INT_MAX))
    if other < smallest:
        return -sign
    if other > largest:
        return sign
    return sign * ((other > float(whole)) - (other < float(whole)))


def _is_equal_element(left: Value, right: Value) -> bool:
    # In a list or map, elements that cannot be compared count as equal.
    try:
        return equal(left, right)
    except EvaluationFailure:
        return True


def _equal_maps(left: dict[Value, Value], right: dict[Value, Value]) -> bool:
    for key, value in left.items():
        other, is_there = find(right, key)
        if isinstance(right, DomainMap) and not is_there:
            other, is_there = {}, True
        if not is_there or not _is_equal_element(value, other):
            return False
    return True


def _equal_objects(left: Value, right: Value) -> bool:
    match left:
        case Quantity():
            if not isinstance(right, Quantity) or isinstance(right, ComputedQuantity):
                raise no_such_overload()
            return left.amount_nano == right.amount_nano
        case Version() | IpAddress() | Cidr():
            if type(left) is not type(right):
                raise no_such_overload()
            return left == right
        case Url():
            if not isinstance(right, Url):
                raise no_such_overload()
            return left.text == right.text
        case NamedFormat():
            if not isinstance(right, NamedFormat):
                raise no_such_overload()
            return left.name == right.name
        case Optional():
            if not isinstance(right, Optional) or left.has_value is not right.has_value:
                return False
            return not left.has_value or equal(left.held, right.held)
        case CelType():
            return isinstance(right, CelType) and left.name == right.name
        case Timestamp():
            return isinstance(right, Timestamp) and left.nanoseconds == right.nanoseconds
        case _:
            return False


def _add_times(left: Duration | Timestamp, right: Duration | Timestamp) -> Value:
    nanoseconds = left.nanoseconds + right.nanoseconds
    if isinstance(left, Timestamp):
        if isinstance(right, Timestamp):
            raise no_such_overload()
        return timestamp_within(nanoseconds, left.offset_s)
    if isinstance(right, Timestamp):
        return timestamp_within(nanoseconds, right.offset_s)
    return duration_within(nanoseconds)


def _divided_floats(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


# --- rows -------------------------------------------------------------------------------------------------------


def negated(operand: Value) -> bool:
    if operand is True:
        return False
    if operand is False:
        return True
    raise no_such_overload()


def _comparison(name: str) -> Binding:
    return {
        "_<_": lambda left, right: compare("_<_", left, right) < 0,
        "_<=_": lambda left, right: compare("_<=_", left, right) <= 0,
        "_>_": lambda left, right: compare("_>_", left, right) > 0,
        "_>=_": lambda left, right: compare("_>=_", left, right) >= 0,
    }[name]


COMPARISONS = {name: _comparison(name) for name in ("_<_", "_<=_", "_>_", "_>=_")}

_COMPARABLE_PAIRS = [
    "bool, bool",
    "int, int",
    "int, double",
    "int, uint",
    "uint, uint",
    "uint, double",
    "uint, int",
    "double, double",
    "double, int",
    "double, uint",
    "string, string",
    "bytes, bytes",
    "timestamp, timestamp",
    "duration, duration",
]

ROWS = [
    OverloadRow("_?_:_(bool, A, A): A"),
    OverloadRow("_&&_(bool, bool): bool"),
    OverloadRow("_||_(bool, bool): bool"),
    OverloadRow("!_(bool): bool"),
    OverloadRow("@not_strictly_false(bool): bool"),
    OverloadRow("_==_(A, A): bool"),
    OverloadRow("_!=_(A, A): bool"),
    OverloadRow("_+_(bytes, bytes): bytes"),
    OverloadRow("_+_(double, double): double"),
    OverloadRow("_+_(duration, duration): duration"),
    OverloadRow("_+_(duration, timestamp): timestamp"),
    OverloadRow("_+_(timestamp, duration): timestamp"),
    OverloadRow("_+_(int, int): int"),
    OverloadRow("_+_(list(A), list(A)): list(A)"),
    OverloadRow("_+_(string, string): string"),
    OverloadRow("_+_(uint, uint): uint"),
    OverloadRow("_/_(double, double): double"),
    OverloadRow("_/_(int, int): int"),
    OverloadRow("_/_(uint, uint): uint"),
    OverloadRow("_%_(int, int): int"),
    OverloadRow("_%_(uint, uint): uint"),
    OverloadRow("_*_(double, double): double"),
    OverloadRow("_*_(int, int): int"),
    OverloadRow("_*_(uint, uint): uint"),
    OverloadRow("-_(double): double"),
    OverloadRow("-_(int): int"),
    OverloadRow("_-_(double, double): double"),
    OverloadRow("_-_(duration, duration): duration"),
    OverloadRow("_-_(int, int): int"),
    OverloadRow("_-_(timestamp, duration): timestamp"),
    OverloadRow("_-_(timestamp, timestamp): duration"),
    OverloadRow("_-_(uint, uint): uint"),
    *(OverloadRow(f"{operator}({pair}): bool") for operator in COMPARISONS for pair in _COMPARABLE_PAIRS),
    OverloadRow("_[_](list(A), int): A"),
    OverloadRow("_[_](map(A, B), A): B"),
    OverloadRow("_[_](optional(list(V)), int): optional(V)"),
    OverloadRow("_[_](optional(map(K, V)), K): optional(V)"),
    OverloadRow("_[?_](list(V), int): optional(V)"),
    OverloadRow("_[?_](optional(list(V)), int): optional(V)"),
    OverloadRow("_[?_](map(K, V), K): optional(V)"),
    OverloadRow("_[?_](optional(map(K, V)), K): optional(V)"),
    OverloadRow("_?._(dyn, string): optional(V)"),
    OverloadRow("@in(A, list(A)): bool"),
    OverloadRow("@in(A, map(A, B)): bool"),
    OverloadRow("size(bytes): int"),
    OverloadRow("(bytes).size(): int"),
    OverloadRow("size(list(A)): int"),
    OverloadRow("(list(A)).size(): int"),
    OverloadRow("size(map(A, B)): int"),
    OverloadRow("(map(A, B)).size(): int"),
    OverloadRow("size(string): int"),
    OverloadRow("(string).size(): int"),
]

BINDINGS: dict[str, Binding] = {
    **ARITHMETIC,
    **COMPARISONS,
    "!_": negated,
    "-_": negate,
    "@in": lambda value, container: contains(container, value),
    "size": size,
}
