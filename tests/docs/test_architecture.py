"""ARCHITECTURE.md describes every package and stays short; decisions have all their parts."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, Page, page

SOURCE = ROOT / "src" / "mooring"
ARCHITECTURE = page("ARCHITECTURE.md")
WORDS_MAX = 3_000
DECISIONS = [Page(path) for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]


def test_every_package_is_in_the_table() -> None:
    described = [row.cells[0].strip("`") for row in ARCHITECTURE.rows if row.section == "Packages"]
    packages = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")} - {"."}
    assert sorted(described) == sorted(packages)
    assert [row.cells[0] for row in ARCHITECTURE.rows if not row.cells[1]] == []


def test_it_is_short() -> None:
    assert len(ARCHITECTURE.text.split()) <= WORDS_MAX


@pytest.mark.parametrize("decision", [pytest.param(each, id=each.path.stem) for each in DECISIONS])
def test_a_decision_has_all_its_parts(decision: Page) -> None:
    number = int(decision.path.name.partition("-")[0])
    assert decision.text.startswith(f"# {number}. ")
    headings = re.findall(r"^## (.+)$", decision.prose, re.MULTILINE)
    assert headings == ["Context", "Decision", "Consequences", "What would change our mind"]
    assert re.search(r"^Status: (accepted|replaced by \[.+\])$", decision.text, re.MULTILINE)


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(each.path.name.partition("-")[0]) for each in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))
