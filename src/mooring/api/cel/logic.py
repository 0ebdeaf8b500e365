"""Logic: `&&`, `||`, `?:` and comparisons, as fast as they are common.

Comes in   compiled parts
Goes out   a compiled part

 1. `&&` and `||` absorb failures: `false && failure` is false, on whichever side the failure stands. Only if no side
    decides does the first failure count.
 2. Where the checker knows that a side is a bool, nobody looks again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from mooring.api.cel.errors import EvaluationFailure, no_such_overload
from mooring.api.cel.frames import Frame, Part, Run
from mooring.api.cel.library_operators import COMPARISONS
from mooring.api.cel.operations import equal, not_equal
from mooring.api.cel.values import Value


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


def equality(left: Part, right: Part, is_negated: bool) -> Run:
    """`==` and `!=`."""
    compare = not_equal if is_negated else equal
    first, second = left.run, right.run
    if right.is_constant and type(right.value) in (str, int, bool):
        return _equality_with(first, right.value, is_negated, compare)

    def run(frame: Frame) -> Value:
        return compare(first(frame), second(frame))

    return run


def comparison(function: str, left: Part, right: Part) -> Run:
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


def _equality_with(first: Run, wanted: Value, is_negated: bool, compare: Callable[[Value, Value], bool]) -> Run:
    kind = type(wanted)
    quick = operator.ne if is_negated else operator.eq

    def run(frame: Frame) -> Value:
        value = first(frame)
        return quick(value, wanted) if type(value) is kind else compare(value, wanted)

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
        pass  # the first failure is the one that counts
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
