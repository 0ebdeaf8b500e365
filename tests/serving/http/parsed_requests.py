"""Requests for tests, parsed from bytes."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.serving.http.parser import ParseFailure, RequestParser, ServerLimits
from mooring.serving.http.request import Request


def read(*pieces: bytes, limits: ServerLimits | None = None) -> list[Request | ParseFailure]:
    """The parsed requests and failures of bytes that arrive in pieces."""
    found: list[Request | ParseFailure] = []
    reader = RequestParser(limits or ServerLimits(), found.append)
    for piece in pieces:
        reader.feed(piece)
    return found


def request(method: str, target: str, headers: Mapping[str, str] | None = None) -> Request:
    """One request without a body."""
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {"Host": "h", **(headers or {})}.items()]
    (found,) = read("\r\n".join([*lines, "", ""]).encode())
    assert isinstance(found, Request)
    return found
