"""Errors in the input: where, what was found and what was expected.

`InputError` ends a command with exit code 2 and one line for each problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PROBLEMS_SHOWN_MAX = 20
"""Further problems are counted only."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `where` is `FILE:LINE`, a file, or empty."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


class InputError(Exception):
    """The input is invalid."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        assert self.problems, "an input error without a problem"
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        shown = [str(problem) for problem in self.problems[:PROBLEMS_SHOWN_MAX]]
        left = len(self.problems) - len(shown)
        return [*shown, f"and {left} more problem{'s' if left > 1 else ''} like these"] if left else shown


def input_error(text: str, where: str = "") -> InputError:
    return InputError([Problem(where, text)])
