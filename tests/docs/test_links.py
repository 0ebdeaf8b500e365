"""Every link, file name and command on a page exists; ARCHITECTURE.md names every package."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from bench.__main__ import main as bench
from bench.workload import workload_names
from mooring.cli.main import main as mooring
from tests.docs.pages import ROOT, Page, all_pages, page

PAGES = [pytest.param(each, id=each.name) for each in all_pages()]
_MAKE = re.compile(r"\bmake ([a-z]+)\b(?=`|\s|$)")
_PLACEHOLDERS = {"FAMILY", "NAME", "FILE", "TheKind"}


def test_there_are_pages() -> None:
    names = {each.name for each in all_pages()}
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/README.md"} <= names


@pytest.mark.parametrize("each", PAGES)
def test_links_have_a_target(each: Page) -> None:
    assert [link for link in each.links if not _has_target(each, link)] == []


def _has_target(each: Page, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (each.path.parent / path).resolve() if path else each.path
    if not target.exists():
        return False
    return not anchor or anchor in Page(target).anchors


@pytest.mark.parametrize("each", PAGES)
def test_files_that_are_named_exist(each: Page) -> None:
    assert [path for path in each.paths if not _exists(each, path)] == []


def _exists(each: Page, path: str) -> bool:
    """In the root of the repository, beside the page, in the package, in tests, or in a folder that the page names."""
    if any(word in path for word in _PLACEHOLDERS) or path == "utils.py":
        return True
    package = ROOT / "src" / "mooring"
    homes = [ROOT, each.path.parent, package, ROOT / "tests", *(ROOT / folder for folder in _folders_of(each))]
    return any((home / path).exists() for home in homes)


def _folders_of(each: Page) -> list[str]:
    return [path for path in each.paths if path.endswith("/")]


@pytest.mark.parametrize("each", PAGES)
def test_make_has_the_targets_that_are_named(each: Page) -> None:
    in_code = [*each.codes, *re.findall(r"^    (.+)$", each.text, re.MULTILINE), *each.blocks("console")]
    named = {target for code in in_code for target in _MAKE.findall(code)}
    assert named - _targets() == set()


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("each", PAGES)
def test_commands_have_the_options_that_are_shown(each: Page) -> None:
    for line in _command_lines(each):
        words = shlex.split(line, comments=True)
        command, arguments = _command_of(words)
        if command is not None:
            parameters = command.get_params(click.Context(command))
            known = {option for parameter in parameters for option in parameter.opts} | {"-h", "--help"}
            options = [
                word.partition("=")[0] for word in arguments if re.fullmatch(r"-[a-z]|--[a-z][\w-]*(=.*)?", word)
            ]
            assert [option for option in options if option not in known] == [], line


def _command_lines(each: Page) -> list[str]:
    """Commands: indented, in a shell block, or in code font."""
    lines = re.findall(r"^    (?:\$ )?(\S.*)$", each.prose, re.MULTILINE)
    for block in (*each.blocks("console"), *each.blocks("sh"), *each.blocks("bash"), *each.blocks("shell")):
        lines += [line.removeprefix("$ ") for line in block.splitlines()]
    lines += [code for code in each.codes if " " in code]
    return [line for line in lines if re.match(r"(\S*/)?(mooring|python) ", line) and line.count('"') % 2 == 0]


def _command_of(words: list[str]) -> tuple[click.Command | None, list[str]]:
    name = Path(words[0]).name
    if name == "mooring" and len(words) > 1 and not words[1].startswith("-") and words[1] != "…":
        assert isinstance(mooring, click.Group)
        assert words[1] in mooring.commands, f"mooring has no command {words[1]!r}"
        return mooring.commands[words[1]], words[2:]
    if words[1:3] == ["-m", "bench"]:
        assert all(word in workload_names() for word in words[3:4] if not word.startswith(("-", "NAME", "[")))
        return bench, words[3:]
    return None, []


def test_the_index_lists_every_page_of_docs() -> None:
    index = page("docs/README.md")
    listed = {(index.path.parent / link.partition("#")[0]).resolve() for link in index.links}
    assert [
        each.name for each in all_pages() if each.path.is_relative_to(ROOT / "docs") and each.path not in listed
    ] == ["docs/README.md"]


# --- architecture ----------------------------------------------------------------------------------------------------
# ARCHITECTURE.md covers the packages and is short; the glossary fits on a screen; decisions have all their parts


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
