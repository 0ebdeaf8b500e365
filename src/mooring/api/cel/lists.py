"""The functions of lists and sets: CEL's list extension (version 3), its set extension, and those of Kubernetes.

Output: the rows of these functions for the environment.

 1. Elements that cannot be compared are unequal, so a search for an element never fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise

from mooring.api.cel.errors import EvaluationFailure, check_element_count, no_such_overload
from mooring.api.cel.functions import Binding, OverloadRow
from mooring.api.cel.operators import add, compare, contains, is_comparable, is_equal, unknown_operator
from mooring.api.cel.values import Duration, Uint, Value, type_name

# --- sets -------------------------------------------------------------------------------------------------------


def sets_contains(elements: list[Value], others: list[Value]) -> bool:
    return all(contains(elements, element) for element in others)


def sets_equivalent(left: list[Value], right: list[Value]) -> bool:
    return sets_contains(left, right) and sets_contains(right, left)


def sets_intersects(left: list[Value], right: list[Value]) -> bool:
    return any(contains(right, element) for element in left)


# --- searches and aggregates ------------------------------------------------------------------------------------


def is_sorted(elements: list[Value]) -> bool:
    return not any(_order(before, after) == 1 for before, after in pairwise(elements))


def index_of(elements: list[Value], value: Value) -> int:
    return next((index for index, element in enumerate(elements) if is_equal(element, value)), -1)


def last_index_of(elements: list[Value], element: Value) -> int:
    found = index_of(elements[::-1], element)
    return len(elements) - 1 - found if found >= 0 else -1


def _extreme(name: str, worse: int) -> Callable[[list[Value]], Value]:
    def extreme(elements: list[Value]) -> Value:
        if not elements:
            raise EvaluationFailure(f"{name} called on empty list")
        best = elements[0]
        for element in elements[1:]:
            if _order(best, element) == worse:
                best = element
        return best

    return extreme


def _sum(zero: Value) -> Callable[[list[Value]], Value]:
    def total(elements: list[Value]) -> Value:
        result = zero
        for element in elements:
            result = add(result, element)
        return result

    return total


def _order(left: Value, right: Value) -> int:
    """Compare two elements. Elements of different types count as equal instead of failing."""
    if not is_comparable(left) or not is_comparable(right):
        raise no_such_overload()
    try:
        return compare("", left, right)
    except EvaluationFailure:
        return 0


# --- functions that return a list or map ------------------------------------------------------------------------


def slice_(elements: list[Value], start: int, end: int) -> list[Value]:
    if start < 0 or end < 0:
        raise EvaluationFailure(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationFailure(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(elements):
        raise EvaluationFailure(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


def flatten(elements: Value, depth: Value = 1) -> list[Value]:
    if not isinstance(elements, list) or type(depth) is not int:
        arguments = "" if depth == 1 else type_name(depth)
        raise EvaluationFailure(f"no such overload: {type_name(elements)}.flatten({arguments})")
    if depth < 0:
        raise EvaluationFailure("level must be non-negative")
    if depth == 0:
        return elements
    flat: list[Value] = []
    for element in elements:
        flat.extend(flatten(element, depth - 1) if isinstance(element, list) else [element])
        check_element_count(len(flat))
    return flat


def sort(elements: Value) -> list[Value]:
    if not isinstance(elements, list):
        raise unknown_operator("sort", elements)
    return sort_by_keys(elements, elements)


def sort_by_keys(elements: Value, keys: Value) -> list[Value]:
    if not isinstance(elements, list) or not isinstance(keys, list):
        raise unknown_operator("@sortByAssociatedKeys", elements)
    if len(elements) != len(keys):
        raise EvaluationFailure(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(elements)} and {len(keys)} elements respectively"
        )
    if not elements:
        return elements
    if not is_comparable(keys[0]):
        raise EvaluationFailure("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationFailure("list elements must have the same type")
    in_order = sorted(zip(keys, elements), key=cmp_to_key(_order_of_pairs))
    return [element for _, element in in_order]


def _order_of_pairs(one: tuple[Value, Value], other: tuple[Value, Value]) -> int:
    return _order(one[0], other[0])


def distinct(elements: list[Value]) -> list[Value]:
    unique: list[Value] = []
    for element in elements:
        if not any(is_equal(element, other) for other in unique):
            unique.append(element)
    return unique


def range_(end: int) -> list[Value]:
    check_element_count(end)
    return list(range(end))


def map_insert(target: dict[Value, Value], key: Value, value: Value) -> dict[Value, Value]:
    check_new_key(target, key)
    return {**target, key: value}


def check_new_key(target: dict[Value, Value], key: Value) -> None:
    if contains(target, key):
        raise EvaluationFailure(f"insert failed: key {key} already exists")


def map_insert_all(target: dict[Value, Value], entries: dict[Value, Value]) -> dict[Value, Value]:
    for key in entries:
        check_new_key(target, key)
    return {**target, **entries}


_COMPARABLE = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_SUMMABLE = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}

ROWS = [
    OverloadRow("sets.contains(list(T), list(T)): bool", sets_contains),
    OverloadRow("sets.equivalent(list(T), list(T)): bool", sets_equivalent),
    OverloadRow("sets.intersects(list(T), list(T)): bool", sets_intersects),
    *(OverloadRow(f"(list({name})).isSorted(): bool", is_sorted) for name in _COMPARABLE),
    *(OverloadRow(f"(list({name})).sum(): {name}", _sum(zero)) for name, zero in _SUMMABLE.items()),
    *(OverloadRow(f"(list({name})).max(): {name}", _extreme("max", -1)) for name in _COMPARABLE),
    *(OverloadRow(f"(list({name})).min(): {name}", _extreme("min", 1)) for name in _COMPARABLE),
    OverloadRow("(list(A)).indexOf(A): int", index_of),
    OverloadRow("(list(A)).lastIndexOf(A): int", last_index_of),
    OverloadRow("(list(T)).slice(int, int): list(T)", slice_),
    OverloadRow("(list(list(T))).flatten(): list(T)", flatten, is_guarded=False),
    OverloadRow("(list(dyn)).flatten(int): list(dyn)", flatten, is_guarded=False),
    *(OverloadRow(f"(list({name})).sort(): list({name})") for name in _COMPARABLE),
    *(OverloadRow(f"(list(T)).@sortByAssociatedKeys(list({name})): list(T)") for name in _COMPARABLE),
    OverloadRow("lists.range(int): list(int)", range_),
    OverloadRow("(list(T)).reverse(): list(T)", lambda elements: elements[::-1]),
    OverloadRow("(list(T)).distinct(): list(T)", distinct),
    OverloadRow("cel.@mapInsert(map(K, V), K, V): map(K, V)", map_insert),
    OverloadRow("cel.@mapInsert(map(K, V), map(K, V)): map(K, V)", map_insert_all),
]

BINDINGS: dict[str, Binding] = {"sort": sort, "@sortByAssociatedKeys": sort_by_keys}
