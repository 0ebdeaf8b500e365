"""What is wrong with the input: where, what was found, what was wanted and what to do.

Comes in   complaints of the readers and checkers
Goes out   `InputError`, which ends the command with exit code 2 and a line for each problem
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PROBLEMS_SHOWN_MAX = 20
"""More than so many lines nobody reads; the first ones are what has to be mended first."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `where` is `FILE:LINE`, a file, or empty."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


class InputError(Exception):
    """The input cannot be used. The person at the keyboard has to change something."""

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
