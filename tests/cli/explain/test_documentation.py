"""docs/explain.md, held against the command."""

from __future__ import annotations

import re

import pytest

from mooring.cli.explain.command import explain
from mooring.cli.explain.report import Outcome
from mooring.cli.explain.text import HEADINGS
from mooring.scheduler.cycle.obstacle import Kind
from tests.cli.screens import PROMPT, ROOT, command_of, screen_of

PAGE = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("screen", SHOWN, ids=[command_of(screen) for screen in SHOWN])
def test_what_the_page_shows_is_what_happens(screen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert screen.startswith(PROMPT)
    assert screen_of(command_of(screen)) == screen


@pytest.mark.parametrize(
    "word",
    [
        *(f"`{option}" for parameter in explain.params for option in parameter.opts if option.startswith("-")),
        *(f"| `{outcome.value}` |" for outcome in Outcome),
        *(f"| `{kind.value}` |" for kind in Kind),
        *(f"| {heading} | {plugin} |" for plugin, heading in HEADINGS.items()),
        "`POD`",
    ],
)
def test_the_page_speaks_of_everything(word: str) -> None:
    assert word in PAGE


def test_the_page_shows_screens() -> None:
    assert len(SHOWN) >= 2
