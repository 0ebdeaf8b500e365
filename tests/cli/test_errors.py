from __future__ import annotations

import pytest

from mooring.cli.errors import PROBLEMS_SHOWN_MAX, InputError, Problem, input_error


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        pytest.param(Problem("pods.yaml:3", "no"), "pods.yaml:3: no", id="with a place"),
        pytest.param(Problem("", "no"), "no", id="without a place"),
    ],
)
def test_a_problem_is_one_line(problem: Problem, line: str) -> None:
    assert str(problem) == line


def test_a_problem_is_told_once() -> None:
    assert InputError([Problem("a", "x"), Problem("a", "x"), Problem("b", "x")]).lines() == ["a: x", "b: x"]


@pytest.mark.parametrize(
    ("count", "last"),
    [
        pytest.param(PROBLEMS_SHOWN_MAX, f"{PROBLEMS_SHOWN_MAX - 1}: x", id="as many as are shown"),
        pytest.param(PROBLEMS_SHOWN_MAX + 1, "and 1 more problem like these", id="one more"),
        pytest.param(PROBLEMS_SHOWN_MAX + 9, "and 9 more problems like these", id="many more"),
    ],
)
def test_only_so_many_problems_are_shown(count: int, last: str) -> None:
    assert InputError(Problem(str(number), "x") for number in range(count)).lines()[-1] == last


def test_a_single_complaint_is_made_in_one_call() -> None:
    assert str(input_error("found nothing", "a.yaml")) == "a.yaml: found nothing"
