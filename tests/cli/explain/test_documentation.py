"""docs/explain.md, held against the command."""

from __future__ import annotations

import re

import pytest

from mooring.api.kinds import kind_of_view
from mooring.cli.asked_cluster.live import KINDS_READ
from mooring.cli.explain.command import explain
from mooring.cli.explain.report import Outcome
from mooring.cli.explain.text import HEADINGS
from mooring.scheduler.framework.obstacle import ObstacleKind
from tests.cli.screens import PROMPT, ROOT, command_of, run, screen_of

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
        *(f"| `{kind.value}` |" for kind in ObstacleKind),
        *(f"| {heading} | {plugin} |" for plugin, heading in HEADINGS.items()),
        "`POD`",
    ],
)
def test_the_page_speaks_of_everything(word: str) -> None:
    assert word in PAGE


def test_the_page_shows_screens() -> None:
    assert len(SHOWN) >= 2


def test_the_dump_that_is_documented_holds_every_kind_that_is_read() -> None:
    wanted = {kind_of_view(view).plural for view in KINDS_READ}
    command = next(line for line in PAGE.splitlines() if line.startswith("kubectl get -A -o json nodes,"))
    assert set(command.split()[5].split(",")) == wanted
    shown = run("explain", "--help").stdout.partition("kubectl get -A -o json ")[2].partition(" > cluster.json")[0]
    assert set(re.sub(r"[\s\\]", "", shown).split(",")) == wanted
