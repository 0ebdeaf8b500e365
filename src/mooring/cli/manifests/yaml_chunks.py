"""Large YAML in pieces: one for each document, and one for each item of a long list.

Comes in   the text of a file
Goes out   `Chunk`s that are YAML documents of their own, with the number of lines before them

A dump of 5,000 nodes is one document with 5,000 items, and takes seconds to read. Cut into items it can be read with
a progress bar, the plain data of an item is gone before the next one is read, and finding the line of a field in it
means reading that item again instead of the whole dump.

 1. Cutting never changes the meaning: a list that does not look just as expected is left in one piece, and a piece
    that does not parse sends the reader back to the whole (aliases may reach from one item into another).
 2. No line of a document can begin with `---` but a document's first: YAML forbids it even inside of texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from mooring.api.yaml import YamlError, load_documents

CUT_FROM = 1 << 18
"""Shorter documents are read in one piece: cutting saves nothing there."""

_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_ITEMS = re.compile(r"^items:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*(?P<indent> *)- ", re.MULTILINE)
_OTHER_KEY = re.compile(r"^[^\s#-]", re.MULTILINE)


class Chunk(NamedTuple):
    """A piece of a file that is a document of its own."""

    text: str
    lines_before: int


class CutList(NamedTuple):
    """A list in pieces: everything but its items, and the items, each a YAML sequence with one entry."""

    head: str
    items: list[Chunk]


def documents_of(text: str) -> list[Chunk]:
    """One chunk for each document; the whole text if it says something to the parser (`%YAML`)."""
    starts = [match.start() for match in _DOCUMENT_START.finditer(text)]
    if not starts or _DIRECTIVE.search(text):
        return [Chunk(text, 0)]
    if text[: starts[0]].strip():
        starts.insert(0, 0)
    return _cut(text, starts, len(text), 0)


def cut_list(chunk: Chunk) -> CutList | None:
    """The pieces of a long list in block style, as kubectl prints it; None if it is none, or short."""
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
    return CutList(text[: found.start()] + text[end:], _cut(text, starts, end, chunk.lines_before))


def _cut(text: str, starts: list[int], end: int, lines_before: int) -> list[Chunk]:
    chunks = []
    lines = lines_before + text.count("\n", 0, starts[0])
    for start, stop in zip(starts, [*starts[1:], end]):
        piece = text[start:stop]
        chunks.append(Chunk(piece, lines))
        lines += piece.count("\n")
    return chunks


class Origin(Protocol):
    """Knows where an object, and each of its fields, stands."""

    def at(self, path: str = "") -> str:
        """`FILE:LINE` of a field, or of its nearest parent that is there."""
        ...


@dataclass(frozen=True, slots=True)
class TextOrigin:
    """An object inside of a text: the document's number, and the path to the object in it."""

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
        line = load_documents(self.text, self.file)[self.number].line_of(whole)
        return f"{self.file}:{line + self.lines_before}"


@dataclass(frozen=True, slots=True)
class JsonOrigin:
    """An object inside of a large JSON text, by its own bytes."""

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
        except YamlError:  # what JSON accepts and YAML does not: a key that appears twice
            return f"{self.file}:{text.lines_before + 1}"
