"""Loops: quantifiers, `map`, `filter`, and bindings, run over a frame.

Comes in   the compiled parts of a `Comprehension`
Goes out   a compiled part

 1. A failing step does not end a loop: the failure is carried along as the result so far, because a later step may
    absorb it (`exists` that finds something after all).
 2. A loop that collects appends to a list or a dictionary of its own instead of copying it at each step.
 3. A binding is computed when it is first asked for, and only once; nobody asks, nobody fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat

from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.frames import UNSET, Failed, Frame, Run
from mooring.api.cel.values import Value, implementation_name


@dataclass(frozen=True, slots=True)
class Loop:
    """The parts of a loop. Without a second slot it runs over the elements of a list or the keys of a map."""

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
                frame[result_slot] = Failed(failure)
        return result(frame)

    return run


def carried(slot: int) -> Run:
    """The result so far, or the failure that it is."""

    def run(frame: Frame) -> Value:
        value = frame[slot]
        if type(value) is Failed:
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


def inserted(result: Run, insertion: Run, insert: Callable[[dict[Value, Value], Value], None]) -> Run:
    """A map with something added to it, in place."""

    def run(frame: Frame) -> Value:
        entries = result(frame)
        assert isinstance(entries, dict), entries
        insert(entries, insertion(frame))
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
