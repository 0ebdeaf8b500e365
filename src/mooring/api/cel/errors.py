"""What can go wrong with a device selector, as one small tree.

   DeviceSelectorError           the expression cannot be compiled; the text is the one that users see from Kubernetes
   SelectorEvaluationError       it was compiled, but it has no answer for this device

Inside of this package only:

   EvaluationFailure             an operation failed: `&&`, `||` and the quantifiers may still absorb it
   CostExceeded                  the evaluation did too much: nothing absorbs this
   ProgramFailure                a constant part of the expression fails, so that no device needs to be asked

 1. Texts are reproduced to the letter; callers put "CEL compile error: " or "CEL runtime error: " in front of them.


---

The text of an expression, and how a fault in it is shown.

Comes in   the expression, and faults with the place where they were found
Goes out   the report that users see:

    ERROR: <input>:1:8: undefined field 'drivr'
     | device.drivr == "x"
     | .......^

 1. Places are offsets in characters; lines and columns are worked out only when there is something to report.
 2. Faults are shown in the order of their places, the earlier found first; after a hundred they are only counted.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

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


# === reports ==================================================================================================

NOWHERE = -1
"""The place of a fault that concerns the expression as a whole."""

FAULTS_SHOWN_MAX = 100
SNIPPET_BYTES_MAX = 16_384


@dataclass(frozen=True, slots=True)
class Fault:
    offset: int
    text: str


@dataclass(slots=True)
class Source:
    """An expression and what was found to be wrong with it so far."""

    text: str
    faults: list[Fault] = field(default_factory=list)
    may_bind: bool = True
    """Whether `cel.bind` is known: rules of custom kinds do without."""

    def report(self, offset: int, text: str) -> None:
        self.faults.append(Fault(offset, text))

    def shown_faults(self) -> str:
        """The report of everything that was found."""
        shown = sorted(self.faults[:FAULTS_SHOWN_MAX], key=lambda fault: fault.offset)
        starts = _line_starts(self.text)
        parts = [_shown_fault(self.text, starts, fault) for fault in shown]
        if len(self.faults) > FAULTS_SHOWN_MAX:
            parts.append(f"{len(self.faults) - FAULTS_SHOWN_MAX} more errors were truncated")
        return "\n".join(parts)


def _line_starts(text: str) -> list[int]:
    return [0, *(position + 1 for position, letter in enumerate(text) if letter == "\n")]


def _shown_fault(text: str, starts: list[int], fault: Fault) -> str:
    if fault.offset == NOWHERE:
        return f"ERROR: <input>:-1:0: {fault.text}"
    if not text:
        return f"ERROR: <input>:1:0: {fault.text}"
    line = bisect_right(starts, fault.offset)
    column = fault.offset - starts[line - 1]
    headline = f"ERROR: <input>:{line}:{column + 1}: {fault.text}"
    end = starts[line] - 1 if line < len(starts) else len(text)
    snippet = text[starts[line - 1] : end].replace("\t", " ")
    if len(snippet.encode()) > SNIPPET_BYTES_MAX:
        return headline
    return f"{headline}\n | {snippet}\n | {_pointer(snippet, column)}"


def _pointer(snippet: str, column: int) -> str:
    # Characters beyond ASCII are drawn wide, so the pointer is drawn with wide characters under them.
    dots = "".join("." if letter < "\x80" else "\uff0e" for letter in snippet[:column])
    points_at_wide = column < len(snippet) and snippet[column] >= "\x80"
    return dots + ("\uff3e" if points_at_wide else "^")
