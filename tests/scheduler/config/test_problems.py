"""Problems are told in Kubernetes' sentences, all at once."""

import pytest

from mooring.scheduler.config.problems import (
    ConfigurationError,
    Problem,
    child,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(
            invalid("a.b", 0, "must be greater than 0"), "a.b: Invalid value: 0: must be greater than 0", id="a number"
        ),
        pytest.param(invalid("a", "x", "no"), 'a: Invalid value: "x": no', id="text is quoted"),
        pytest.param(invalid("a", "x\n\x01ü", "no"), r'a: Invalid value: "x\n\x01ü": no', id="text is escaped"),
        pytest.param(invalid("a", True, "no"), "a: Invalid value: true: no", id="a bool"),
        pytest.param(invalid("a", [{"N": 1}], "no"), 'a: Invalid value: [{"N":1}]: no', id="the rest is JSON"),
        pytest.param(invalid("a", None, "no"), "a: Invalid value: null: no", id="nothing"),
        pytest.param(duplicate("a[1]", "x"), 'a[1]: Duplicate value: "x"', id="a duplicate"),
        pytest.param(required("a"), "a: Required value", id="something missing"),
        pytest.param(required("a", "say it"), "a: Required value: say it", id="something missing, and why"),
        pytest.param(forbidden("a", "not now"), "a: Forbidden: not now", id="something forbidden"),
        pytest.param(
            not_supported("a", "x", ["y", "z"]),
            'a: Unsupported value: "x": supported values: "y", "z"',
            id="a value that is none of those allowed",
        ),
    ],
)
def test_a_problem_is_a_sentence(problem: Problem, sentence: str) -> None:
    assert str(problem) == sentence
    assert sentence.startswith(f"{problem.path}: ")


def test_an_error_tells_every_problem_once_on_a_line_of_its_own() -> None:
    error = ConfigurationError([required("a"), required("b"), required("a")])
    assert str(error) == "a: Required value\nb: Required value"
    assert [problem.path for problem in error.problems] == ["a", "b"]
    assert isinstance(error, ValueError)


def test_a_path_grows_from_the_root() -> None:
    assert child("", "profiles") == "profiles"
    assert child("profiles[0]", "plugins") == "profiles[0].plugins"
