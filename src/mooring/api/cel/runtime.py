"""The closures that compiled programs consist of: frames, members, literals, logic, loops.

Input: the compiled parts of a node. Output: a compiled part, a function over a frame.

    slot 0   the device            slot 1   the meter, or None            slots 2…   variables of loops and bindings

 1. Each variable has a slot of its own, so that names are resolved at compile time.
 2. Only maps and lists have members. A member of an optional is an optional; an empty optional stays empty.
 3. An optional element without a value is left out of a list or a map. Keys of a map are strings, numbers and bools.
 4. `&&` and `||` absorb failures: `false && failure` is false in either order. If no side decides, the first failure is
    raised.
 5. A failing step does not end a loop. The failure is the result so far, and a later step may absorb it.
 6. A loop that collects appends to a list or dict of its own. A binding is evaluated at its first use, once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat

from mooring.api.cel.conversions import double_text
from mooring.api.cel.costs import Meter
from mooring.api.cel.errors import EvaluationFailure, no_such_key, no_such_overload
from mooring.api.cel.lists import check_new_key
from mooring.api.cel.operators import COMPARISONS, equal, find, not_equal
from mooring.api.cel.values import NONE, DomainMap, Optional, Uint, Value, implementation_name, type_name

# --- frames -----------------------------------------------------------------------------------------------------

Frame = list[Value]
Run = Callable[[Frame], Value]

DEVICE_SLOT, METER_SLOT, FIRST_FREE_SLOT = 0, 1, 2


class Unset:
    """The value of a binding before its first use."""


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class FailedStep:
    """The result so far of a loop whose last step failed."""

    failure: EvaluationFailure


@dataclass(frozen=True, slots=True)
class CompiledNode:
    """A compiled node."""

    run: Run
    is_constant: bool = False
    value: Value = None
    is_attribute: bool = False
    """Whether the node is a variable or a member, which cost one unit."""


def constant(value: Value) -> CompiledNode:
    return CompiledNode(lambda frame: value, is_constant=True, value=value)


def failing(text: str) -> Run:
    """A closure that fails with this text."""

    def fail(frame: Frame) -> Value:
        raise EvaluationFailure(text)

    return fail


def charged(run: Run, cost: int) -> Run:
    """The closure, with a fixed cost."""

    def run_charged(frame: Frame) -> Value:
        result = run(frame)
        meter_of(frame).charge(cost)
        return result

    return run_charged


def meter_of(frame: Frame) -> Meter:
    meter = frame[METER_SLOT]
    assert isinstance(meter, Meter), "a metered program needs a meter"
    return meter


# --- members ----------------------------------------------------------------------------------------------------


def at(value: Value, key: Value) -> Value:
    """The member at a key. Raises `EvaluationFailure` if there is none."""
    if isinstance(value, Optional):
        return optional_at(value, key)
    found, is_there = _look(value, key)
    if is_there:
        return found
    if isinstance(value, list):
        raise EvaluationFailure(f"index out of bounds: {key_text(key)}")
    raise no_such_key(key_text(key))


def optional_at(value: Value, key: Value) -> Value:
    """The member at a key, as an optional."""
    if isinstance(value, Optional):
        if not value.has_value:
            return value
        value = value.held
    found, is_there = _look(value, key)
    return Optional(found) if is_there else NONE


def has(value: Value, key: str) -> bool:
    """Whether there is a member at a key."""
    if isinstance(value, Optional):
        return value.has_value and has(value.held, key)
    return _look(value, key)[1]


def key_text(key: Value) -> str:
    """A key in an error text."""
    if type(key) is bool:
        return "true" if key else "false"
    return double_text(key) if isinstance(key, float) else str(key)


def _look(value: Value, key: Value) -> tuple[Value, bool]:
    if isinstance(value, DomainMap):
        return (value[key] if isinstance(key, str) else {}), True
    if isinstance(value, dict):
        return find(value, key)
    if isinstance(value, list):
        index = _index(key)
        return (value[index], True) if 0 <= index < len(value) else (None, False)
    return None, False


def _index(key: Value) -> int:
    if type(key) is int or type(key) is Uint:
        return int(key)
    if isinstance(key, float):
        if key.is_integer():
            return int(key)
        raise EvaluationFailure(f"unsupported index value {key_text(key)} in list")
    raise EvaluationFailure(f"unsupported index type '{type_name(key)}' in list")


# --- lists and maps ---------------------------------------------------------------------------------------------

_HASHED = (str, int, bool, Uint, float)


def membership(operand: CompiledNode, elements: Value) -> CompiledNode | None:
    """`value in [constants]`, with a hash lookup. None if a constant cannot be hashed as CEL compares it."""
    assert isinstance(elements, list), elements
    if not elements:
        return constant(False)
    if not all(type(element) in _HASHED for element in elements):
        return None
    bools = frozenset(element for element in elements if type(element) is bool)
    others = frozenset(element for element in elements if type(element) is not bool)
    run = operand.run

    def is_member(frame: Frame) -> Value:
        value = run(frame)
        kind = type(value)
        return value in others if kind in _HASHED and kind is not bool else kind is bool and value in bools

    return CompiledNode(is_member)


def list_with_optionals(runs: list[Run], optional_positions: frozenset[int]) -> Run:
    if not optional_positions:
        return lambda frame: [run(frame) for run in runs]

    def run(frame: Frame) -> Value:
        elements: list[Value] = []
        for position, element_run in enumerate(runs):
            element = element_run(frame)
            if position in optional_positions:
                if not isinstance(element, Optional):
                    raise EvaluationFailure(
                        f"cannot initialize optional list element from non-optional value {element}"
                    )
                if not element.has_value:
                    continue
                element = element.held
            elements.append(element)
        return elements

    return run


def map_of(entries: list[tuple[Run, Run, bool]], frame: Frame) -> Value:
    result: dict[Value, Value] = {}
    for key_run, value_run, is_optional in entries:
        key, value = key_run(frame), value_run(frame)
        if is_optional:
            if not isinstance(value, Optional):
                raise EvaluationFailure(f"cannot initialize optional entry '{key}' from non-optional value {value}")
            if not value.has_value:
                result.pop(key, None)
                continue
            value = value.held
        result[_hashable(key)] = value
    return result


def _hashable(key: Value) -> Value:
    if type(key) in _HASHED:
        return key
    raise EvaluationFailure(f"unsupported key type: {implementation_name(key)}")


# --- logic ------------------------------------------------------------------------------------------------------


def all_of(terms: list[Run], are_bools: bool) -> Run:
    """`&&`."""
    return _pair_deciding_false(*terms) if len(terms) == 2 and are_bools else _many(terms, deciding=False)


def any_of(terms: list[Run], are_bools: bool) -> Run:
    """`||`."""
    return _pair_deciding_true(*terms) if len(terms) == 2 and are_bools else _many(terms, deciding=True)


def conditional(condition: Run, if_true: Run, if_false: Run) -> Run:
    def run(frame: Frame) -> Value:
        chosen = condition(frame)
        if chosen is True:
            return if_true(frame)
        if chosen is False:
            return if_false(frame)
        raise no_such_overload()

    return run


def equality(left: CompiledNode, right: CompiledNode, is_negated: bool) -> Run:
    """`==` and `!=`."""
    compare = not_equal if is_negated else equal
    first, second = left.run, right.run
    if right.is_constant and type(right.value) in (str, int, bool):
        return _equality_with(first, right.value, is_negated, compare)

    def run(frame: Frame) -> Value:
        return compare(first(frame), second(frame))

    return run


def comparison(function: str, left: CompiledNode, right: CompiledNode) -> Run:
    """`<`, `<=`, `>` and `>=`."""
    compare, quick = COMPARISONS[function], _QUICK[function]
    first, second = left.run, right.run
    if right.is_constant and type(right.value) is int:
        limit = right.value

        def run_with_limit(frame: Frame) -> Value:
            value = first(frame)
            return quick(value, limit) if type(value) is int else compare(value, limit)

        return run_with_limit

    def run(frame: Frame) -> Value:
        return compare(first(frame), second(frame))

    return run


_QUICK: dict[str, Callable[[int, int], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}


def _equality_with(first: Run, constant: Value, is_negated: bool, compare: Callable[[Value, Value], bool]) -> Run:
    kind = type(constant)
    quick = operator.ne if is_negated else operator.eq

    def run(frame: Frame) -> Value:
        value = first(frame)
        return quick(value, constant) if type(value) is kind else compare(value, constant)

    return run


def _pair_deciding_false(left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Value:
        try:
            if left(frame) is False:
                return False
        except EvaluationFailure as failure:
            return _absorbed(failure, right, frame, deciding=False)
        return right(frame)

    return run


def _pair_deciding_true(left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Value:
        try:
            if left(frame) is True:
                return True
        except EvaluationFailure as failure:
            return _absorbed(failure, right, frame, deciding=True)
        return right(frame)

    return run


def _absorbed(failure: EvaluationFailure, right: Run, frame: Frame, deciding: bool) -> bool:
    try:
        if right(frame) is deciding:
            return deciding
    except EvaluationFailure:
        pass  # the first failure is raised
    raise failure


def _many(terms: list[Run], deciding: bool) -> Run:
    def run(frame: Frame) -> Value:
        failure: EvaluationFailure | None = None
        for term in terms:
            try:
                value = term(frame)
            except EvaluationFailure as raised:
                failure = failure or raised
                continue
            if value is deciding:
                return deciding
            if value is not (not deciding):
                failure = failure or no_such_overload()
        if failure is not None:
            raise failure
        return not deciding

    return run


# --- loops ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loop:
    """The parts of a loop. Without a second slot it iterates over the elements of a list or the keys of a map."""

    range: Run
    slot: int
    second_slot: int | None
    result_slot: int
    initial: Callable[[], Value]
    condition: Run | None
    step: Run
    result: Run


def loop(parts: Loop) -> Run:
    range_, condition, step, result = parts.range, parts.condition, parts.step, parts.result
    slot, second_slot, result_slot = parts.slot, parts.second_slot, parts.result_slot
    initial = parts.initial

    def run(frame: Frame) -> Value:
        elements = range_(frame)
        pairs = _elements(elements) if second_slot is None else _pairs(elements)
        frame[result_slot] = initial()
        for first, second in pairs:
            frame[slot] = first
            if second_slot is not None:
                frame[second_slot] = second
            if condition is not None and _is_over(condition, frame):
                break
            try:
                frame[result_slot] = step(frame)
            except EvaluationFailure as failure:
                frame[result_slot] = FailedStep(failure)
        return result(frame)

    return run


def carried(slot: int) -> Run:
    """The result so far. Raises the failure of the last step."""

    def run(frame: Frame) -> Value:
        value = frame[slot]
        if type(value) is FailedStep:
            raise value.failure
        return value

    return run


def appended(result: Run, element: Run) -> Run:
    """`result + [element]`, in place."""

    def run(frame: Frame) -> Value:
        elements = result(frame)
        assert isinstance(elements, list), elements
        elements.append(element(frame))
        return elements

    return run


def inserted(result: Run, insertion: Run) -> Run:
    """`cel.@mapInsert(result, …)`, in place."""

    def run(frame: Frame) -> Value:
        entries, additions = result(frame), insertion(frame)
        assert isinstance(entries, dict), entries
        assert isinstance(additions, dict), additions
        for key, value in additions.items():
            check_new_key(entries, key)
            entries[key] = value
        return entries

    return run


def binding(slot: int, result: Run) -> Run:
    def run(frame: Frame) -> Value:
        frame[slot] = UNSET
        return result(frame)

    return run


def bound(slot: int, value: Run) -> Run:
    """The variable of a binding."""

    def run(frame: Frame) -> Value:
        known = frame[slot]
        if known is UNSET:
            known = frame[slot] = value(frame)
        return known

    return run


def _is_over(condition: Run, frame: Frame) -> bool:
    try:
        return condition(frame) is False
    except EvaluationFailure:
        return False


def _elements(value: Value) -> Iterable[tuple[Value, Value]]:
    if isinstance(value, (list, dict)):
        return zip(value, repeat(None))
    raise EvaluationFailure(f"got '{implementation_name(value)}', expected iterable type")


def _pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list):
        return enumerate(value)
    raise EvaluationFailure(f"unsupported comprehension range type: {implementation_name(value)}")
