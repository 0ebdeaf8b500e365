"""The map shows every room of the house, and no room that is not there; decisions have all their parts."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, Page, page

SOURCE = ROOT / "src" / "mooring"
ARCHITECTURE = page("ARCHITECTURE.md")
DECISIONS = [Page(path) for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]


def test_the_map_is_complete() -> None:
    """Each file has one line, under the heading of its folder. What is in `__init__.py` is on the folder's heading."""
    mapped = [f"{_folder_of(row.section)}{row.cells[0].strip('`')}" for row in ARCHITECTURE.rows]
    rooms = {path.relative_to(ROOT).as_posix() for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}
    assert sorted(mapped) == sorted(rooms)


def _folder_of(section: str) -> str:
    found = re.match(r"`([^`]+/)`", section)
    assert found is not None, f"a table under {section!r}, which names no folder"
    return found[1]


def test_every_room_says_what_it_is_for() -> None:
    assert [row.cells[0] for row in ARCHITECTURE.rows if not row.cells[1]] == []


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
