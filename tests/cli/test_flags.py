"""Values of flags, and errors in the input."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem
from click.testing import CliRunner

from mooring.cli.errors import PROBLEMS_SHOWN_MAX, InputError, Problem, input_error
from mooring.cli.flags import Flag, FlagType, FlagValue, ValueType, flag_options, parse_value, shown


@pytest.mark.parametrize(
    ("flag_type", "text", "value"),
    [
        (FlagType.SWITCH, "true", True),
        (FlagType.SWITCH, "F", False),
        (FlagType.INTEGER, "-5", -5),
        (FlagType.PORT, "0", 0),
        (FlagType.NUMBER, "12.5", 12.5),
        (FlagType.DURATION, "1m30s", 90.0),
        (FlagType.ADDRESS, "::1", "::1"),
        (FlagType.ADDRESS, "", ""),
        (FlagType.LIST, "a,b", ("a", "b")),
        (FlagType.LIST, "", ()),
        (FlagType.PAIRS, "a,b", ("a,b",)),
        (FlagType.FILE, "x y", "x y"),
    ],
)
def test_what_is_read(flag_type: FlagType, text: str, value: FlagValue) -> None:
    assert parse_value(flag_type, text) == value


@pytest.mark.parametrize(
    ("flag_type", "text", "complaint"),
    [
        (FlagType.SWITCH, "maybe", "found 'maybe', wanted true or false"),
        (FlagType.INTEGER, "x", "found 'x', wanted a whole number"),
        (FlagType.INTEGER, "9999999999", "found 9999999999, wanted a number from -2147483648 to 2147483647"),
        (FlagType.PORT, "70000", "found 70000, wanted a number from 0 to 65535"),
        (FlagType.NUMBER, "x", "found 'x', wanted a number"),
        (FlagType.DURATION, "15", 'time: missing unit in duration "15"'),
        (FlagType.ADDRESS, "here", "'here' does not appear to be an IPv4 or IPv6 address"),
    ],
)
def test_what_is_refused(flag_type: FlagType, text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_value(flag_type, text)
    assert str(raised.value) == complaint


@pytest.mark.parametrize(
    ("flag_type", "value", "text"),
    [
        (FlagType.SWITCH, True, "true"),
        (FlagType.DURATION, 300.0, "5m0s"),
        (FlagType.NUMBER, 50.0, "50"),
        (FlagType.LIST, ("a", "b"), "[a,b]"),
        (FlagType.PAIRS, ("a,b", "c,d"), "[a,b;c,d]"),
        (FlagType.TEXT, "", ""),
    ],
)
def test_what_is_shown(flag_type: FlagType, value: FlagValue, text: str) -> None:
    assert shown(flag_type, value) == text


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ([], (True, ("x",))),
        (["--lead"], (True, ("x",))),
        (["--lead=false"], (False, ("x",))),
        (["--paths", "a,b", "--paths=c"], (True, ("a", "b", "c"))),
    ],
    ids=["defaults", "a switch alone", "a switch with a value", "a list that is given twice"],
)
def test_on_a_command_line(arguments: list[str], values: tuple[FlagValue, ...]) -> None:
    found: list[tuple[FlagValue, ...]] = []
    flags = (Flag("lead", FlagType.SWITCH, True, ""), Flag("paths", FlagType.LIST, ("x",), ""))

    @click.command
    @flag_options({"": flags})
    def command(lead: bool, paths: tuple[str, ...]) -> None:
        found.append((lead, paths))

    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert found == [values]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("", ["a.yaml", "b.json", "folder/"]), ("a", ["a.yaml"]), ("folder/", ["folder/c.yml"]), ("no/", [])],
)
def test_files_that_a_shell_offers(
    typed: str, offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("a.yaml", "b.json", "c.txt", "folder/c.yml", "folder/d.py"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    kind = ValueType(FlagType.FILE, (".yaml", ".yml", ".json"))
    context, option = click.Context(click.Command("c")), click.Option(["--config"])
    items: list[CompletionItem] = kind.shell_complete(context, option, typed)
    assert [item.value for item in items] == offered


# ---


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        pytest.param(Problem("pods.yaml:3", "no"), "pods.yaml:3: no", id="with a place"),
        pytest.param(Problem("", "no"), "no", id="without a place"),
    ],
)
def test_a_problem_is_one_line(problem: Problem, line: str) -> None:
    assert str(problem) == line


def test_a_problem_is_reported_once() -> None:
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
