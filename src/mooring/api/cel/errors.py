"""What can go wrong with a device selector, as one small tree.

   DeviceSelectorError           the expression cannot be compiled; the text is the one that users see from Kubernetes
   SelectorEvaluationError       it was compiled, but it has no answer for this device

Inside of this package only:

   EvaluationFailure             an operation failed: `&&`, `||` and the quantifiers may still absorb it
   CostExceeded                  the evaluation did too much: nothing absorbs this
   ProgramFailure                a constant part of the expression fails, so that no device needs to be asked

 1. Texts are reproduced to the letter; callers put "CEL compile error: " or "CEL runtime error: " in front of them.
"""

from __future__ import annotations

from mooring.api.errors import ObjectError


class DeviceSelectorError(ObjectError):
    """The expression cannot be compiled."""


class SelectorEvaluationError(ObjectError):
    """The expression has no answer for this device."""


class EvaluationFailure(Exception):
    """One operation failed. The text is the whole story."""


class CostExceeded(Exception):
    """The evaluation cost more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


TEXT_LENGTH_MAX = 10_000_000
"""Maximum length of a text that an evaluation produces. A longer one costs more than any expression may."""

ELEMENTS_MAX = 1_000_000
"""Maximum number of elements of a list that an evaluation produces, and of nested elements that it compares."""


def check_text_length(length: int) -> None:
    """Call before a text of this length is built."""
    if length > TEXT_LENGTH_MAX:
        raise CostExceeded


def check_element_count(count: int) -> None:
    """Call before a list of this length is built."""
    if count > ELEMENTS_MAX:
        raise CostExceeded


class ProgramFailure(Exception):
    """A constant part of the expression cannot be computed."""


NO_SUCH_OVERLOAD = "no such overload"


def no_such_overload() -> EvaluationFailure:
    return EvaluationFailure(NO_SUCH_OVERLOAD)


def no_such_key(key: str) -> EvaluationFailure:
    return EvaluationFailure(f"no such key: {key}")
