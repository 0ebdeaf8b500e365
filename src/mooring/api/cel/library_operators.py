"""The operators, `size`, `in` and `type`, as the checker sees them.

Comes in   nothing
Goes out   rows for the environment, and the bindings that serve all overloads of an operator

 1. `&&`, `||`, `?:`, `==`, `!=`, indexing and selection are compiled specially: here they only have types.
"""

from __future__ import annotations

from mooring.api.cel import operations
from mooring.api.cel.conversions import runtime_type
from mooring.api.cel.errors import no_such_overload
from mooring.api.cel.functions import Binding, Row
from mooring.api.cel.values import Value


def negated(operand: Value) -> bool:
    if operand is True:
        return False
    if operand is False:
        return True
    raise no_such_overload()


def _comparison(name: str) -> Binding:
    return {
        "_<_": lambda left, right: operations.compare("_<_", left, right) < 0,
        "_<=_": lambda left, right: operations.compare("_<=_", left, right) <= 0,
        "_>_": lambda left, right: operations.compare("_>_", left, right) > 0,
        "_>=_": lambda left, right: operations.compare("_>=_", left, right) >= 0,
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
    Row("_?_:_(bool, A, A): A"),
    Row("_&&_(bool, bool): bool"),
    Row("_||_(bool, bool): bool"),
    Row("!_(bool): bool"),
    Row("@not_strictly_false(bool): bool"),
    Row("_==_(A, A): bool"),
    Row("_!=_(A, A): bool"),
    Row("_+_(bytes, bytes): bytes"),
    Row("_+_(double, double): double"),
    Row("_+_(duration, duration): duration"),
    Row("_+_(duration, timestamp): timestamp"),
    Row("_+_(timestamp, duration): timestamp"),
    Row("_+_(int, int): int"),
    Row("_+_(list(A), list(A)): list(A)"),
    Row("_+_(string, string): string"),
    Row("_+_(uint, uint): uint"),
    Row("_/_(double, double): double"),
    Row("_/_(int, int): int"),
    Row("_/_(uint, uint): uint"),
    Row("_%_(int, int): int"),
    Row("_%_(uint, uint): uint"),
    Row("_*_(double, double): double"),
    Row("_*_(int, int): int"),
    Row("_*_(uint, uint): uint"),
    Row("-_(double): double"),
    Row("-_(int): int"),
    Row("_-_(double, double): double"),
    Row("_-_(duration, duration): duration"),
    Row("_-_(int, int): int"),
    Row("_-_(timestamp, duration): timestamp"),
    Row("_-_(timestamp, timestamp): duration"),
    Row("_-_(uint, uint): uint"),
    *(Row(f"{operator}({pair}): bool") for operator in COMPARISONS for pair in _COMPARABLE_PAIRS),
    Row("_[_](list(A), int): A"),
    Row("_[_](map(A, B), A): B"),
    Row("_[_](optional(list(V)), int): optional(V)"),
    Row("_[_](optional(map(K, V)), K): optional(V)"),
    Row("_[?_](list(V), int): optional(V)"),
    Row("_[?_](optional(list(V)), int): optional(V)"),
    Row("_[?_](map(K, V), K): optional(V)"),
    Row("_[?_](optional(map(K, V)), K): optional(V)"),
    Row("_?._(dyn, string): optional(V)"),
    Row("@in(A, list(A)): bool"),
    Row("@in(A, map(A, B)): bool"),
    Row("size(bytes): int"),
    Row("(bytes).size(): int"),
    Row("size(list(A)): int"),
    Row("(list(A)).size(): int"),
    Row("size(map(A, B)): int"),
    Row("(map(A, B)).size(): int"),
    Row("size(string): int"),
    Row("(string).size(): int"),
    Row("type(A): type(A)"),
]

BINDINGS: dict[str, Binding] = {
    **operations.ARITHMETIC,
    **COMPARISONS,
    "!_": negated,
    "-_": operations.negate,
    "@in": lambda wanted, container: operations.contains(container, wanted),
    "size": operations.size,
    "type": runtime_type,
}
