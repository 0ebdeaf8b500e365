"""Requests and responses of pages, and the error responses of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BINARY = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class PageResponse:
    """The response to a request."""

    body: bytes
    code: int = 200
    content_type: str = TEXT
    file_name: str = ""
    """For downloads."""
    stream: AsyncIterator[bytes] | None = None
    """A body of unknown length, instead of `body`."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The part of a request that pages read."""

    method: str
    path: str
    query: dict[str, list[str]]
    accept: str = ""
    body: bytes = b""

    def has(self, name: str) -> bool:
        return name in self.query

    def number(self, name: str, default: float) -> float:
        """A number of the query; the default if it is absent or invalid."""
        try:
            return float(self.query[name][0])
        except (KeyError, IndexError, ValueError):
            return default


def text(content: str, code: int = 200) -> PageResponse:
    return PageResponse(content.encode(), code)


def as_json(content: object) -> PageResponse:
    return PageResponse(json.dumps(content, ensure_ascii=False).encode(), content_type=JSON)


def not_found() -> PageResponse:
    return text("404 page not found\n", 404)


def unauthorized() -> PageResponse:
    return _status("Unauthorized", "Unauthorized", 401)


def forbidden(user: str, verb: str, path: str, reason: str = "") -> PageResponse:
    message = f'forbidden: User "{_harmless(user)}" cannot {_harmless(verb)} path "{_harmless(path)}"'
    return _status(f"{message}: {reason}" if reason else message, "Forbidden", 403, details={})


def failed(message: str) -> PageResponse:
    return _status(f"Internal error occurred: {message}", "InternalError", 500)


def _status(message: str, reason: str, code: int, details: object | None = None) -> PageResponse:
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
    return PageResponse(json.dumps(status, indent=2).encode(), code, JSON)


def _harmless(text: str) -> str:
    """Escapes HTML, as Kubernetes does."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
