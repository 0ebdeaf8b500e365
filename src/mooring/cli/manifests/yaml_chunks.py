"""Splits large YAML files into documents and list items, and finds the line of a field.

A dump of 5,000 nodes is one document with 5,000 items and takes seconds to parse. Item by item it can be parsed with a
progress bar and less memory, and finding the line of a field parses one item again instead of the whole dump.

 1. Splitting never changes the meaning: an unexpected list is left whole, and a chunk that does not parse makes the
    reader parse the whole document (an alias may refer to another item).
 2. A line that starts with `---` always starts a document: YAML forbids it even inside texts.
 3. Lines are looked up by parsing a chunk again, only when there is an error to report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from mooring.api.yaml import YamlError, load_documents

CUT_FROM = 1 << 18
"""Shorter documents are not split."""

_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_ITEMS = re.compile(r"^items:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*(?P<indent> *)- ", re.MULTILINE)
_OTHER_KEY = re.compile(r"^[^\s#-]", re.MULTILINE)


class Chunk(NamedTuple):
    """A part of a file that is a document of its own."""

    text: str
    lines_before: int


class SplitList(NamedTuple):
    """A list: everything but its items, and the items, each a YAML sequence with one entry."""

    head: str
    items: list[Chunk]


def documents_of(text: str) -> list[Chunk]:
    """One chunk for each document; the whole text if it has directives (`%YAML`)."""
    starts = [match.start() for match in _DOCUMENT_START.finditer(text)]
    if not starts or _DIRECTIVE.search(text):
        return [Chunk(text, 0)]
    if text[: starts[0]].strip():
        starts.insert(0, 0)
    return _cut(text, starts, len(text), 0)


def split_list(chunk: Chunk) -> SplitList | None:
    """The parts of a long list in block style, as kubectl prints it; None if it is short or looks different."""
    text = chunk.text
    if len(text) < CUT_FROM:
        return None
    found = _ITEMS.search(text)
    if found is None or _ITEMS.search(text, found.end()):
        return None
    first = found.start("indent")
    other = _OTHER_KEY.search(text, first)
    end = other.start() if other is not None else len(text)
    item_start = re.compile(rf"^{found['indent']}- ", re.MULTILINE)
    starts = [match.start() for match in item_start.finditer(text, first, end)]
    return SplitList(text[: found.start()] + text[end:], _cut(text, starts, end, chunk.lines_before))


def _cut(text: str, starts: list[int], end: int, lines_before: int) -> list[Chunk]:
    chunks = []
    lines = lines_before + text.count("\n", 0, starts[0])
    for start, stop in zip(starts, [*starts[1:], end]):
        piece = text[start:stop]
        chunks.append(Chunk(piece, lines))
        lines += piece.count("\n")
    return chunks


class Origin(Protocol):
    """Where an object and its fields were found."""

    def at(self, path: str = "") -> str:
        """`FILE:LINE` of a field, or of its nearest existing parent."""
        ...


@dataclass(frozen=True, slots=True)
class TextOrigin:
    """An object in a text: the number of its document and its path in it."""

    file: str
    text: str
    lines_before: int = 0
    number: int = 0
    prefix: str = ""

    def item(self, index: int) -> TextOrigin:
        """The origin of an item of this list."""
        return replace(self, prefix=f"{self.prefix}.items[{index}]" if self.prefix else f"items[{index}]")

    def at(self, path: str = "") -> str:
        spelled = path.replace('["', ".").replace('"]', "")
        whole = f"{self.prefix}.{spelled}" if self.prefix and spelled else self.prefix or spelled
        documents = load_documents(self.text, self.file)
        line = documents[self.number].line_of(whole) if self.number < len(documents) else 1  # `null` is no document
        return f"{self.file}:{line + self.lines_before}"


@dataclass(frozen=True, slots=True)
class JsonOrigin:
    """An object in a large JSON text, by its bytes."""

    file: str
    source: bytes
    raw: bytes | memoryview

    def as_text(self) -> TextOrigin:
        raw = bytes(self.raw)
        lines_before = self.source.count(b"\n", 0, max(self.source.find(raw), 0))
        return TextOrigin(self.file, raw.decode(errors="replace"), lines_before)

    def at(self, path: str = "") -> str:
        text = self.as_text()
        try:
            return text.at(path)
        except YamlError:  # JSON accepts duplicate keys, YAML does not
            return f"{self.file}:{text.lines_before + 1}"
