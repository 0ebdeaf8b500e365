"""YAML answers: documents as Go writes them.

Comes in   a document
Goes out   its YAML

 1. Everything is written in full, wherever else it stands: no aliases.
 2. A text that would be read as something else (a number, a time, `yes`) stands in double quotes; one of several lines
    is written line by line.
"""

from __future__ import annotations

import yaml

from mooring.api.document import Document
from mooring.api.yamlscalars import resolve_scalar

_TEXT = "tag:yaml.org,2002:str"


def written_yaml(document: Document) -> bytes:
    """The YAML of a document."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True).encode()


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if _is_text(dumper, text) else '"'
    return dumper.represent_scalar(_TEXT, text, style)


def _is_text(dumper: _Dumper, text: str) -> bool:
    """Whether it is read as text without quotes: by YAML's own rules, and by those of Go's readers."""
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return tag == _TEXT and isinstance(resolve_scalar(text, None, is_plain=True), str)


_Dumper.add_representer(str, _represented)
