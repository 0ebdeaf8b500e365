"""Replies: code, body, content type and headers of a response.

1. JSON ends with a newline, indented JSON does not, as in Go.
2. Warnings are `Warning` headers of RFC 7234 with code 299. A text with control characters is left out. If all texts
   together exceed `LETTERS_MAX`, each is cut to `LETTERS_CUT_TO`, and the rest is dropped at the limit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import msgspec

from mooring.api.document import Document
from mooring.client.errors import ExpiredError, StatusError
from mooring.serving.pages import PageResponse

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


JSON = "application/json"
YAML = "application/yaml"
TEXT = "text/plain; charset=utf-8"
NOT_CACHED = (("Cache-Control", "no-cache, private"),)
"""The default Cache-Control header."""

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Reply:
    """One answer."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncGenerator[bytes, None] | None = None
    """What follows, piece by piece, for as long as it takes: the log of a container."""


def page_reply(response: PageResponse) -> Reply:
    """The response of a page of a component."""
    return Reply(response.code, response.body, response.content_type, list(response.headers), response.stream)


def json_reply(code: int, document: Document) -> Reply:
    return Reply(code, _encode(document) + b"\n")


def text_reply(code: int, text: str) -> Reply:
    return Reply(code, text.encode(), TEXT)


def with_warnings(reply: Reply, warnings: Sequence[str]) -> Reply:
    """A reply with Warning headers."""
    reply.headers += [("Warning", header) for header in warning_headers(warnings)]
    return reply


def page_not_found() -> Reply:
    return text_reply(404, "404 page not found\n")


def error_reply(error: StatusError) -> Reply:
    """An error as a Status."""
    reply = json_reply(error.code, status_document(error))
    if error.retry_after_s is not None:
        reply.headers.append(("Retry-After", str(int(error.retry_after_s))))
    return reply


def status_document(error: StatusError) -> Document:
    """An error as a JSON reply."""
    document: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": _metadata(error),
        "status": "Failure",
        "message": error.message,
    }
    if error.reason:
        document["reason"] = error.reason
    details = _details(error)
    if details or error.has_details:
        document["details"] = details
    document["code"] = error.code
    return document


def _metadata(error: StatusError) -> Document:
    return {"continue": error.continue_token} if isinstance(error, ExpiredError) and error.continue_token else {}


def _details(error: StatusError) -> Document:
    details: Document = {
        name: error.details[name] for name in ("name", "group", "kind", "uid") if name in error.details
    }
    if error.causes:
        details["causes"] = [
            {name: text for name, text in (("reason", c.reason), ("message", c.message), ("field", c.field)) if text}
            for c in error.causes
        ]
    if error.retry_after_s:
        details["retryAfterSeconds"] = int(error.retry_after_s)
    return details


def created_status() -> Document:
    """The body of 201 for a subresource that is no object."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
