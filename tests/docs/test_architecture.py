"""ARCHITECTURE.md covers the packages and is short; the glossary fits on a screen; decisions have all their parts."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, Page, page

SOURCE = ROOT / "src" / "mooring"
ARCHITECTURE = page("ARCHITECTURE.md")
WORDS_MAX = 2_500
GLOSSARY_LINES_MAX = 60
DECISIONS = [Page(path) for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]


def test_every_component_is_in_the_table_of_packages() -> None:
    """Sub-packages are listed only where a newcomer needs them."""
    rows = [row for row in ARCHITECTURE.rows if row.section == "Packages"]
    described = [row.cells[0].strip("`") for row in rows]
    packages = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")} - {"."}
    assert {package for package in packages if "/" not in package} <= set(described) <= packages
    assert len(described) == len(set(described))
    assert [row.cells[0] for row in rows if not row.cells[1]] == []


def test_it_is_short() -> None:
    assert len(ARCHITECTURE.text.split()) <= WORDS_MAX


def test_the_glossary_fits_on_a_screen() -> None:
    assert len(page("docs/glossary.md").text.splitlines()) <= GLOSSARY_LINES_MAX


@pytest.mark.parametrize("decision", [pytest.param(each, id=each.path.stem) for each in DECISIONS])
def test_a_decision_has_all_its_parts(decision: Page) -> None:
    number = int(decision.path.name.partition("-")[0])
    assert decision.text.startswith(f"# {number}. ")
    status = re.search(r"^Status: (accepted|replaced by \[.+\](?:\(.+\))?)$", decision.text, re.MULTILINE)
    assert status is not None
    if status[1] == "accepted":
        headings = re.findall(r"^## (.+)$", decision.prose, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences", "What would change our mind"]


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(each.path.name.partition("-")[0]) for each in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))
