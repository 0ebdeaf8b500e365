"""Frames: where the variables of one evaluation live.

Comes in   nothing
Goes out   the shape that all compiled parts share

    slot 0   the device            slot 1   the meter, or None            slots 2…   variables of loops and bindings

 1. Every variable has a slot of its own for the whole expression, so that names are looked up once, at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.api.cel.costs import Meter
from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.values import Value

Frame = list[Value]
Run = Callable[[Frame], Value]

DEVICE_SLOT, METER_SLOT, FIRST_FREE_SLOT = 0, 1, 2


class Unset:
    """A binding that nobody has asked for yet."""


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class Failed:
    """A result that a loop carries along, and that fails whoever asks for it."""

    failure: EvaluationFailure


@dataclass(frozen=True, slots=True)
class Part:
    """A compiled node."""

    run: Run
    is_constant: bool = False
    value: Value = None
    is_attribute: bool = False
    """A variable, or a member of something: what costs are counted for."""


def constant(value: Value) -> Part:
    return Part(lambda frame: value, is_constant=True, value=value)


def failing(text: str) -> Run:
    """A part of which it is already known that it fails."""

    def fail(frame: Frame) -> Value:
        raise EvaluationFailure(text)

    return fail


def charged(run: Run, cost: int) -> Run:
    """The same, at a fixed cost."""

    def run_charged(frame: Frame) -> Value:
        result = run(frame)
        meter_of(frame).charge(cost)
        return result

    return run_charged


def meter_of(frame: Frame) -> Meter:
    meter = frame[METER_SLOT]
    assert isinstance(meter, Meter), "a metered expression runs with a meter"
    return meter
