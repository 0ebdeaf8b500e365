"""The documentation as data: pages with their links, paths, commands, tables and code, and the names of tests.

Inputs: Markdown and Python files of the repository. Outputs: their contents, for comparison with the code.

1. Markdown is not rendered.
2. Tests are found by parsing their files, not by running them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PATH = re.compile(r"\.?[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|yaml|toml|txt|svg|xz|jsonl))")


class Row(NamedTuple):
    """A row of a table, and the heading above it."""

    section: str
    cells: tuple[str, ...]


class Page:
    """One Markdown file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.prose = _FENCE.sub("", self.text)
        """Everything outside of code blocks."""

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def links(self) -> list[str]:
        """The targets of the page's links, without those to other sites."""
        return [target for target in _LINK.findall(self.prose) if not target.startswith(("http://", "https://"))]

    @property
    def anchors(self) -> set[str]:
        """The headings, as GitHub spells them in links."""
        plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(self.prose))
        return {heading.strip().replace(" ", "-") for heading in plain}

    @property
    def paths(self) -> list[str]:
        """Names in code font that look like files or folders."""
        return [code for code in _CODE.findall(self.prose) if _PATH.fullmatch(code)]

    @property
    def codes(self) -> list[str]:
        """Everything in code font."""
        return _CODE.findall(self.prose)

    def blocks(self, language: str) -> list[str]:
        """The code blocks in one language."""
        return [body for written, body in _FENCE.findall(self.text) if written == language]

    @property
    def rows(self) -> list[Row]:
        """The rows of all tables, without their headers."""
        found, section, lines = [], "", self.prose.splitlines()
        for index, line in enumerate(lines):
            if line.startswith("#"):
                section = line.lstrip("# ")
            below = lines[index + 1] if index + 1 < len(lines) else ""
            if line.startswith("|") and not _is_rule(line) and not _is_rule(below):
                found.append(Row(section, tuple(cell.strip() for cell in line.strip("|").split("|"))))
        return found


def _is_rule(line: str) -> bool:
    return bool(re.fullmatch(r"\|[-:| ]+\|", line))


@cache
def page(name: str) -> Page:
    return Page(ROOT / name)


@cache
def all_pages() -> tuple[Page, ...]:
    """All pages: in the root, in docs/, and beside the code that they describe."""
    folders = ("docs", "examples", "tests", "bench")
    found = [*ROOT.glob("*.md"), *(path for folder in folders for path in (ROOT / folder).rglob("*.md"))]
    return tuple(Page(path) for path in sorted(found))


def names_of_tests(path: Path) -> set[str]:
    """The tests of a file, alone and with each literal id: `test_x`, `test_x[an id]`."""
    return set(_test_names(path))


def _test_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name
            for decorator in node.decorator_list:
                yield from (f"{node.name}[{written}]" for written in _written_ids(decorator))


def _written_ids(decorator: ast.expr) -> Iterator[str]:
    for node in ast.walk(decorator):
        if isinstance(node, ast.keyword) and node.arg == "id" and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
        elif isinstance(node, ast.keyword) and node.arg == "ids" and isinstance(node.value, ast.List):
            yield from (str(elt.value) for elt in node.value.elts if isinstance(elt, ast.Constant))
