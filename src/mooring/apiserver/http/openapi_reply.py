"""OpenAPI over HTTP.

Comes in   paths below /openapi
Goes out   the documents, or 304 to those who have them already

 1. An address with the right hash may be kept for ever, because another document has another address; one with an old
    hash is sent on to the right one.
 2. The index calls itself text, as kube-apiserver's does.
"""

from __future__ import annotations

import msgspec

from mooring.apiserver.http.reply import JSON, TEXT, Reply, page_not_found
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.openapi.documents import OpenApi, Written

_ACCEPTED = frozenset({"application/json", "application/*", "*/*", ""})
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_PROTOBUF_ANSWERED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The name with an `@`, by which it is asked for, is no valid media type."""


def openapi_reply(openapi: OpenApi, path: str, incoming: Incoming) -> Reply:
    """The reply for a path below /openapi."""
    if path == "/openapi/v2":
        if _only_protobuf(incoming):
            return Reply(200, _NO_SCHEMAS, _PROTOBUF_ANSWERED, [("Vary", "Accept")])
        return _document(openapi.second(), incoming)
    if path == "/openapi/v3":
        return Reply(200, msgspec.json.encode(openapi.index()), TEXT)
    if not path.startswith("/openapi/v3/"):
        return page_not_found()
    written = openapi.third(path.removeprefix("/openapi/v3/"))
    return Reply(404, b"", "") if written is None else _at_its_hash(written, path, incoming)


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf that is a message or a text."""
    return bytes([number << 3 | 2, len(content)]) + content


_NO_SCHEMAS = _field(1, b"2.0") + _field(2, _field(1, b"Kubernetes") + _field(2, b"v1.36.4")) + _field(8, b"")
"""A document of version 2 without schemas, in protobuf. kubectl asks for it in this form only about kinds that it has
not found in version 3, to see whether there is anything to check; there never is."""


def _only_protobuf(incoming: Incoming) -> bool:
    clauses = [clause.partition(";")[0].strip() for clause in incoming.header(b"accept").split(",")]
    return PROTOBUF in clauses and not any(clause in _ACCEPTED for clause in clauses)


def _at_its_hash(written: Written, path: str, incoming: Incoming) -> Reply:
    wanted = incoming.query.text("hash")
    if not wanted:
        return _document(written, incoming)
    if wanted != written.digest:
        return Reply(301, b"", "", [("Location", f"{path}?hash={written.digest}"), ("ETag", f'"{written.digest}"')])
    return _document(written, incoming, [("Cache-Control", "public, immutable")])


def _document(written: Written, incoming: Incoming, headers: list[tuple[str, str]] | None = None) -> Reply:
    clauses = (clause.partition(";")[0].strip() for clause in incoming.header(b"accept").split(","))
    if not any(clause in _ACCEPTED for clause in clauses):
        return Reply(406, b"", "", [("Vary", "Accept")])
    headers = [*(headers or ()), ("ETag", f'"{written.digest}"'), ("Vary", "Accept")]
    if f'"{written.digest}"' in incoming.header(b"if-none-match"):
        return Reply(304, b"", "", headers)
    return Reply(200, written.body, JSON, headers)
