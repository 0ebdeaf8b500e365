"""Values of flags, as Kubernetes reads and shows them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem
from click.testing import CliRunner

from mooring.cli.flags import Flag, FlagValue, Sort, ValueType, option_of, parse_value, shown


@pytest.mark.parametrize(
    ("sort", "text", "value"),
    [
        (Sort.SWITCH, "true", True),
        (Sort.SWITCH, "F", False),
        (Sort.INTEGER, "-5", -5),
        (Sort.PORT, "0", 0),
        (Sort.NUMBER, "12.5", 12.5),
        (Sort.DURATION, "1m30s", 90.0),
        (Sort.ADDRESS, "::1", "::1"),
        (Sort.ADDRESS, "", ""),
        (Sort.LIST, "a,b", ("a", "b")),
        (Sort.LIST, "", ()),
        (Sort.PAIRS, "a,b", ("a,b",)),
        (Sort.FILE, "x y", "x y"),
    ],
)
def test_what_is_read(sort: Sort, text: str, value: FlagValue) -> None:
    assert parse_value(sort, text) == value


@pytest.mark.parametrize(
    ("sort", "text", "complaint"),
    [
        (Sort.SWITCH, "maybe", "found 'maybe', wanted true or false"),
        (Sort.INTEGER, "x", "found 'x', wanted a whole number"),
        (Sort.INTEGER, "9999999999", "found 9999999999, wanted a number from -2147483648 to 2147483647"),
        (Sort.PORT, "70000", "found 70000, wanted a number from 0 to 65535"),
        (Sort.NUMBER, "x", "found 'x', wanted a number"),
        (Sort.DURATION, "15", 'time: missing unit in duration "15"'),
        (Sort.ADDRESS, "here", "'here' does not appear to be an IPv4 or IPv6 address"),
    ],
)
def test_what_is_refused(sort: Sort, text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_value(sort, text)
    assert str(refusal.value) == complaint


@pytest.mark.parametrize(
    ("sort", "value", "text"),
    [
        (Sort.SWITCH, True, "true"),
        (Sort.DURATION, 300.0, "5m0s"),
        (Sort.NUMBER, 50.0, "50"),
        (Sort.LIST, ("a", "b"), "[a,b]"),
        (Sort.PAIRS, ("a,b", "c,d"), "[a,b;c,d]"),
        (Sort.TEXT, "", ""),
    ],
)
def test_what_is_shown(sort: Sort, value: FlagValue, text: str) -> None:
    assert shown(sort, value) == text


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
    flags = (Flag("lead", Sort.SWITCH, True, ""), Flag("paths", Sort.LIST, ("x",), ""))
    command = click.Command(
        "c", params=[option_of(flag) for flag in flags], callback=lambda lead, paths: found.append((lead, paths))
    )
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
    option = option_of(Flag("config", Sort.FILE, "", "", endings=(".yaml", ".yml", ".json")))
    kind = option.type
    assert isinstance(kind, ValueType)
    items: list[CompletionItem] = kind.shell_complete(click.Context(click.Command("c")), option, typed)
    assert [item.value for item in items] == offered
