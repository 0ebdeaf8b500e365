"""The README beside this file shows what really happens, and what it offers to measure can be measured."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from examples.plugins import cost
from mooring.cli.main import main

HERE = Path(__file__).parent
README = (HERE / "README.md").read_text()
SCREENS = re.findall(r"```console\n\$ mooring (.*?)\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(("command", "output"), [pytest.param(*screen, id=screen[0]) for screen in SCREENS])
def test_the_readme_shows_what_happens(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent.parent)
    monkeypatch.setenv("COLUMNS", "80")
    assert CliRunner().invoke(main, shlex.split(command)).output == output


def test_the_readme_shows_something() -> None:
    assert len(SCREENS) >= 2


def test_the_cost_can_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    cost.main(["20"])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:30].rstrip() for line in lines[1:]] == list(cost.RULES)


def test_the_readme_names_every_file() -> None:
    named = set(re.findall(r"^\| `(.*?)` \|", README, re.MULTILINE))
    assert named == {path.name for path in HERE.iterdir() if path.is_file()} - {"README.md", "test_readme.py"}
