"""Building: literal lists and maps, what loops add to them, and the question whether a constant list holds something.

Comes in   compiled parts
Goes out   compiled parts, and the functions that they call

 1. An optional element that holds nothing is left out; what is no optional cannot stand in its place.
 2. The keys of a map are texts, numbers and bools.
"""

from __future__ import annotations

from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.frames import Frame, Part, Run, constant
from mooring.api.cel.library_collections import check_new_key
from mooring.api.cel.values import Optional, Uint, Value, implementation_name

_HASHED = (str, int, bool, Uint, float)


def membership(wanted: Part, elements: Value) -> Part | None:
    """`value in [constants]`, by hash instead of by comparison."""
    assert isinstance(elements, list), elements
    if not elements:
        return constant(False)
    if not all(type(element) in _HASHED for element in elements):
        return None
    bools = frozenset(element for element in elements if type(element) is bool)
    others = frozenset(element for element in elements if type(element) is not bool)
    run = wanted.run

    def is_member(frame: Frame) -> Value:
        value = run(frame)
        kind = type(value)
        return value in others if kind in _HASHED and kind is not bool else kind is bool and value in bools

    return Part(is_member)


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


def insert_all(entries: dict[Value, Value], additions: Value) -> None:
    assert isinstance(additions, dict), additions
    for key, value in additions.items():
        check_new_key(entries, key)
        entries[key] = value
