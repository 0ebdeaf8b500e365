"""Where an object was written: the file, and the line of any of its fields.

Comes in   the piece of a file that an object was read from
Goes out   `FILE:LINE` for messages

 1. Lines are looked up by reading the piece again, so that nobody pays for them until something is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from mooring.api.yaml import YamlError, load_documents


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
