"""Warnings: what a client should know although he gets what he wants, as headers of his answer.

Comes in   the texts of a call
Goes out   the values of `Warning` headers, as RFC 7234 writes them; 299 is Kubernetes' code for all

 1. A text with control characters cannot be a header, and is left out.
 2. Headers have a limit. Where all texts together are longer than `LETTERS_MAX`, each is cut to `LETTERS_CUT_TO`, and
    those that come after the limit is reached are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LETTERS_MAX = 4 * 1024
LETTERS_CUT_TO = 256

_has_control_characters = re.compile(r"[\x00-\x1f\x7f-\x9f]").search


def warning_headers(texts: Sequence[str]) -> list[str]:
    """The values of the headers for these texts."""
    if not texts:
        return []
    sendable = [text for text in texts if text and not _has_control_characters(text)]
    if sum(map(len, sendable)) > LETTERS_MAX:
        sendable = _cut([text for text in texts if text])
    return [_header(text) for text in sendable]


def _cut(texts: Sequence[str]) -> list[str]:
    cut: list[str] = []
    letters = 0
    for text in texts:
        short = text[:LETTERS_CUT_TO]
        if letters < LETTERS_MAX and not _has_control_characters(short):
            cut.append(short)
            letters += len(short)
    return cut


def _header(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
