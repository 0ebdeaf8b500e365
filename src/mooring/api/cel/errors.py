"""Exceptions of CEL, and the report of the errors in an expression.

    DeviceSelectorError           the expression does not compile; the text is that of Kubernetes
    SelectorEvaluationError       the expression has no result for this device

Inside this package and in the rules of CRDs:

    EvaluationFailure             an operation failed; `&&`, `||` and the quantifiers may absorb the failure
    CostExceeded                  the evaluation exceeded its limit of cost; nothing absorbs it
    ProgramFailure                a constant part of the expression cannot be computed

A `CelSource` collects errors with their offsets and formats them as Kubernetes does:

    ERROR: <input>:1:8: undefined field 'drivr'
     | device.drivr == "x"
     | .......^

 1. Callers put "CEL compile error: " or "CEL runtime error: " in front of the texts.
 2. Offsets count characters. Errors are sorted by offset; after `ERRORS_SHOWN_MAX` they are only counted.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from mooring.api.errors import ObjectError


class DeviceSelectorError(ObjectError):
    """The expression does not compile."""


class SelectorEvaluationError(ObjectError):
    """The expression has no result for this device."""


class EvaluationFailure(Exception):
    """An operation failed."""


class CostExceeded(Exception):
    """The evaluation exceeded its limit of cost."""

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


# --- reports ----------------------------------------------------------------------------------------------------

NOWHERE = -1
"""The offset of an error of the whole expression."""

ERRORS_SHOWN_MAX = 100
SNIPPET_BYTES_MAX = 16_384


@dataclass(frozen=True, slots=True)
class SourceError:
    offset: int
    text: str


@dataclass(slots=True)
class CelSource:
    """An expression, and the errors found in it so far."""

    text: str
    errors: list[SourceError] = field(default_factory=list)
    may_bind: bool = True
    """Whether `cel.bind` is a macro. It is not in rules of CRDs."""

    def report(self, offset: int, text: str) -> None:
        self.errors.append(SourceError(offset, text))

    def error_report(self) -> str:
        """All errors, each with its line and a pointer to its column."""
        shown = sorted(self.errors[:ERRORS_SHOWN_MAX], key=lambda error: error.offset)
        starts = _line_starts(self.text)
        parts = [_shown_error(self.text, starts, error) for error in shown]
        if len(self.errors) > ERRORS_SHOWN_MAX:
            parts.append(f"{len(self.errors) - ERRORS_SHOWN_MAX} more errors were truncated")
        return "\n".join(parts)


def _line_starts(text: str) -> list[int]:
    return [0, *(position + 1 for position, letter in enumerate(text) if letter == "\n")]


def _shown_error(text: str, starts: list[int], error: SourceError) -> str:
    if error.offset == NOWHERE:
        return f"ERROR: <input>:-1:0: {error.text}"
    if not text:
        return f"ERROR: <input>:1:0: {error.text}"
    line = bisect_right(starts, error.offset)
    column = error.offset - starts[line - 1]
    headline = f"ERROR: <input>:{line}:{column + 1}: {error.text}"
    end = starts[line] - 1 if line < len(starts) else len(text)
    snippet = text[starts[line - 1] : end].replace("\t", " ")
    if len(snippet.encode()) > SNIPPET_BYTES_MAX:
        return headline
    return f"{headline}\n | {snippet}\n | {_pointer(snippet, column)}"


def _pointer(snippet: str, column: int) -> str:
    # Characters beyond ASCII count as wide, so the line below them has wide characters, too.
    dots = "".join("." if letter < "\x80" else "\uff0e" for letter in snippet[:column])
    points_at_wide = column < len(snippet) and snippet[column] >= "\x80"
    return dots + ("\uff3e" if points_at_wide else "^")
