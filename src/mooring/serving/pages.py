"""Answers: what is sent back, as values.

Comes in   what a page has to say, or why a request is refused
Goes out   `Answer`: a code, a content type and a body, as kube-scheduler words them
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BINARY = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with."""

    body: bytes
    code: int = 200
    content_type: str = TEXT
    file_name: str = ""
    """For downloads."""
    stream: AsyncIterator[bytes] | None = None
    """Instead of a body: what comes when it comes."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request, as far as pages read it."""

    method: str
    path: str
    query: dict[str, list[str]]
    accept: str = ""
    body: bytes = b""

    def has(self, name: str) -> bool:
        return name in self.query

    def number(self, name: str, default: float) -> float:
        """A number of the query; the default if it is absent or none."""
        try:
            return float(self.query[name][0])
        except (KeyError, IndexError, ValueError):
            return default


def text(content: str, code: int = 200) -> Answer:
    return Answer(content.encode(), code)


def as_json(content: object) -> Answer:
    return Answer(json.dumps(content, ensure_ascii=False).encode(), content_type=JSON)


def not_found() -> Answer:
    return text("404 page not found\n", 404)


def unauthorized() -> Answer:
    return _status("Unauthorized", "Unauthorized", 401)


def forbidden(user: str, verb: str, path: str, reason: str = "") -> Answer:
    message = f'forbidden: User "{_harmless(user)}" cannot {_harmless(verb)} path "{_harmless(path)}"'
    return _status(f"{message}: {reason}" if reason else message, "Forbidden", 403, details={})


def failed(message: str) -> Answer:
    return _status(f"Internal error occurred: {message}", "InternalError", 500)


def _status(message: str, reason: str, code: int, details: object | None = None) -> Answer:
    status: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details is not None:
        status["details"] = details
    status["code"] = code
    return Answer(json.dumps(status, indent=2).encode(), code, JSON)


def _harmless(text: str) -> str:
    """As Kubernetes: nothing that a browser might take for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
