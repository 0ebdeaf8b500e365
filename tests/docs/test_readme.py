"""The front page shows what really happens."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from mooring.cli.main import main
from tests.docs.pages import ROOT, page

README = page("README.md")
_ELSEWHERE = "…"


def test_the_picture_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    [shown] = README.blocks("console")
    command, *lines = shown.splitlines()
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(main, command.removeprefix("$ mooring ").split())
    assert result.exit_code == 0, result.output
    for part in "\n".join(lines).split(_ELSEWHERE):
        assert part.strip("\n") in result.output, "run the command again and copy what it prints"


def test_the_picture_fits_a_terminal() -> None:
    assert [line for block in README.blocks("console") for line in block.splitlines() if len(line) > 80] == []


def test_the_example_runs() -> None:
    [example] = README.blocks("python")
    exec(compile(example, "README.md", "exec"), {})


def test_the_front_page_is_short() -> None:
    assert len(README.text.splitlines()) <= 150
