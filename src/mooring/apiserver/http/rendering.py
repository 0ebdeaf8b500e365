"""Replies, and the representations of objects: JSON, YAML, Table, PartialObjectMetadata.

Input: stored bytes, documents, lists, errors; the Accept header. Output: replies with code, body, content type and
headers; or a 406.

1. JSON costs nothing: stored bytes are sent as they are, items of a list joined with commas. It ends with a newline,
   indented JSON does not, as in Go.
2. Only the first row of a watched table has the columns.
3. The metadata of one object and of a list have different kinds, which are not interchangeable.
4. Warnings are `Warning` headers of RFC 7234 with code 299. A text with control characters is left out. If all texts
   together exceed `LETTERS_MAX`, each is cut to `LETTERS_CUT_TO`, and the rest is dropped at the limit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import DAEMON_SET, EVENT, Kind
from mooring.apiserver.http.request import IncomingRequest
from mooring.apiserver.resources import Resource
from mooring.apiserver.server import ApiServer
from mooring.apiserver.validation.fields import invalid
from mooring.apiserver.wire.media import (
    JSON,
    SUPPORTED,
    SUPPORTED_STREAMS,
    YAML,
    NotAcceptableError,
    check_producible,
    is_pretty,
    negotiate,
    negotiate_error,
)
from mooring.apiserver.wire.yaml_text import written_yaml
from mooring.client.errors import BadRequestError, ExpiredError, StatusError
from mooring.client.interface import Listing
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


TEXT = "text/plain; charset=utf-8"
NOT_CACHED = (("Cache-Control", "no-cache, private"),)
"""The default Cache-Control header."""

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Reply:
    """A response: code, body, content type and headers."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncGenerator[bytes, None] | None = None
    """The rest of the body, for as long as it lasts: the log of a container."""


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


_decode = msgspec.json.Decoder(dict[str, Any]).decode
_GENERATION = "deprecated.daemonset.template.generation"
METADATA_VERSION = "meta.k8s.io/v1"


class ObjectForm(Enum):
    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


class IncludeObject(Enum):
    """The part of an object that a row of a table includes."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


@dataclass(frozen=True, slots=True)
class Rendering:
    """The format of a reply."""

    now_s: float
    form: ObjectForm = ObjectForm.OBJECT
    version: str = METADATA_VERSION
    """The version of tables and metadata: `meta.k8s.io/v1`, or `v1beta1` for older clients."""
    is_yaml: bool = False
    is_pretty: bool = False
    included: IncludeObject = IncludeObject.METADATA
    is_for_lists: bool = False
    """Whether the client requests a PartialObjectMetadataList."""

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of the store can go out as they are."""
        return self.form is ObjectForm.OBJECT and not self.is_yaml and not self.is_pretty

    # ----------------------------------------------------------------------------------------------- replies

    def stored(self, code: int, resource: Resource, raw: bytes) -> Reply:
        """One object as the store has it."""
        return Reply(code, raw + b"\n") if self.is_plain else self.written(code, resource, _decode(raw))

    def written(self, code: int, resource: Resource, obj: Document) -> Reply:
        """One object as a document."""
        return self.document(code, self._formed(resource, obj))

    def document(self, code: int, document: Document) -> Reply:
        """A reply with a document that needs no conversion."""
        return Reply(code, self._bytes(document), YAML if self.is_yaml else JSON)

    def listing(self, resource: Resource, listing: Listing) -> Reply:
        metadata = _list_metadata(listing)
        if resource.struct is None and self.form is ObjectForm.OBJECT:
            metadata.setdefault("continue", "")  # lists of custom objects have no type that would leave it out
        if self.is_plain:
            return Reply(200, _list_bytes(resource, metadata, listing.items))
        items = [_decode(raw) for raw in listing.items]
        match self.form:
            case ObjectForm.TABLE:
                return self.document(200, self._table(resource, items, metadata))
            case ObjectForm.METADATA:
                if not self.is_for_lists:
                    raise _not_one(resource)
                parts = [self._metadata_of(resource, item) for item in items] or None
                kind = "PartialObjectMetadataList"
                return self.document(
                    200, {"kind": kind, "apiVersion": self.version, "metadata": metadata, "items": parts}
                )
            case ObjectForm.OBJECT:
                if resource.struct is not None:
                    items = [_unnamed(item) for item in items]
                whole = {"kind": resource.list_kind, "apiVersion": resource.kind.api_version}
                return self.document(200, {**whole, "metadata": metadata, "items": items})

    # ----------------------------------------------------------------------------------------------- watches

    def watched(self, resource: Resource, raw: bytes, *, is_first: bool) -> bytes:
        """One object of a watch event. Only the first row of a watched table comes with column definitions."""
        if self.form is ObjectForm.OBJECT:
            return raw
        obj = _decode(raw)
        if self.form is ObjectForm.METADATA:
            return _encode(self._metadata_of(resource, obj))
        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        table = self._table(resource, [obj], metadata)
        if not is_first:
            table["columnDefinitions"] = None
        return _encode(table)

    def bookmark_kind(self, kind: Kind) -> tuple[str, str]:
        match self.form:
            case ObjectForm.OBJECT:
                return kind.kind, kind.api_version
            case ObjectForm.METADATA:
                return "PartialObjectMetadata", self.version
            case ObjectForm.TABLE:
                return "Table", self.version

    # ------------------------------------------------------------------------------------------------- forms

    def _formed(self, resource: Resource, obj: Document) -> Document:
        match self.form:
            case ObjectForm.OBJECT:
                return obj
            case ObjectForm.METADATA:
                if self.is_for_lists:
                    raise _not_a_list(resource)
                return self._metadata_of(resource, obj)
            case ObjectForm.TABLE:
                metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
                return self._table(resource, [obj], {name: text for name, text in metadata.items() if text})

    def _table(self, resource: Resource, items: Sequence[Document], metadata: Document) -> Document:
        rows = [self._row(resource, item) for item in items]
        return {
            "kind": "Table",
            "apiVersion": self.version,
            "metadata": metadata,
            "columnDefinitions": resource.table.columns,
            "rows": rows or resource.table.empty_rows,
        }

    def _row(self, resource: Resource, item: Document) -> Document:
        row = resource.table.row(item, self.now_s)
        match self.included:
            case IncludeObject.OBJECT:
                row["object"] = item
            case IncludeObject.METADATA:
                row["object"] = self._metadata_of(resource, item)
            case IncludeObject.NONE:
                row["object"] = None
        return row

    def _metadata_of(self, resource: Resource, item: Document) -> Document:
        metadata = item["metadata"]
        if resource.kind is DAEMON_SET and _GENERATION in metadata.get("annotations", ()):
            metadata = _without_generation(metadata)
        return {"kind": "PartialObjectMetadata", "apiVersion": self.version, "metadata": metadata}

    def _bytes(self, document: Document) -> bytes:
        if self.is_yaml:
            return written_yaml(document)
        encoded = _encode(document)
        return msgspec.json.format(encoded, indent=2) if self.is_pretty else encoded + b"\n"


def _not_one(resource: Resource) -> NotAcceptableError:
    found = f"the requested object is a list ({_go_type(resource, is_list=True)})"
    return NotAcceptableError(f"you requested PartialObjectMetadata, but {found}")


def _not_a_list(resource: Resource) -> NotAcceptableError:
    found = f"the requested object is not a list ({_go_type(resource, is_list=False)})"
    return NotAcceptableError(f"you requested PartialObjectMetadataList, but {found}")


def _go_type(resource: Resource, *, is_list: bool) -> str:
    if resource.struct is None:
        return f"*unstructured.Unstructured{'List' if is_list else ''}"
    package = "core" if resource.kind is EVENT else resource.kind.group.partition(".")[0] or "core"
    return f"*{package}.{resource.list_kind if is_list else resource.kind.kind}"


def _list_metadata(listing: Listing) -> Document:
    metadata: Document = {"resourceVersion": listing.revision}
    if listing.continue_token:
        metadata["continue"] = listing.continue_token
    if listing.remaining:
        metadata["remainingItemCount"] = listing.remaining
    return metadata


def _without_generation(metadata: Document) -> Document:
    """kube-apiserver keeps this one as a field of its own, and writes the annotation only with the whole object."""
    annotations = {name: text for name, text in metadata["annotations"].items() if name != _GENERATION}
    kept = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**kept, "annotations": annotations} if annotations else kept


def _unnamed(item: Document) -> Document:
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}


def _list_bytes(resource: Resource, metadata: Document, items: Sequence[bytes]) -> bytes:
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        resource.list_kind.encode(),
        resource.kind.api_version.encode(),
        _encode(metadata),
    )
    if resource.struct is not None:
        # Items of a typed list have no kind and apiVersion, with which a stored object begins.
        named = b'{"kind":"%b","apiVersion":"%b",' % (resource.kind.kind.encode(), resource.kind.api_version.encode())
        items = [b"{" + raw.removeprefix(named) if raw.startswith(named) else raw for raw in items]
    return b"%b%b]}\n" % (head, b",".join(items))


def negotiated(
    api_server: ApiServer, incoming: IncomingRequest, *, is_watch: bool = False, is_list: bool = False
) -> Rendering:
    """The form that the client requests. Raises a 406."""
    accept = incoming.header(b"accept")
    check_producible(accept, (*SUPPORTED, *SUPPORTED_STREAMS) if is_watch or is_list else SUPPORTED)
    negotiated = negotiate(accept, is_watch=is_watch)
    form = ObjectForm.OBJECT
    included = IncludeObject.METADATA
    if negotiated.conversion is not None:
        form = ObjectForm.TABLE if negotiated.is_table else ObjectForm.METADATA
        if form is ObjectForm.TABLE:
            included = _included(incoming.query.text("includeObject"))
    pretty = incoming.query.texts("pretty")
    return Rendering(
        now_s=api_server.clock.wall_s(),
        form=form,
        version=negotiated.conversion.api_version if negotiated.conversion is not None else "meta.k8s.io/v1",
        is_yaml=negotiated.content_type == YAML,
        is_pretty=negotiated.is_pretty or is_pretty(pretty[0] if pretty else None, incoming.header(b"user-agent")),
        included=included,
        is_for_lists=negotiated.conversion is not None and negotiated.conversion.kind.endswith("List"),
    )


def negotiated_error(incoming: IncomingRequest, error: StatusError) -> Reply:
    """An error in the representation that the client accepts."""
    negotiated = negotiate_error(incoming.header(b"accept"))
    reply = error_reply(error)
    if negotiated.content_type == YAML:
        return replace(reply, body=written_yaml(status_document(error)), content_type=YAML)
    if negotiated.is_pretty or is_pretty(incoming.query.text("pretty"), incoming.header(b"user-agent")):
        return replace(reply, body=msgspec.json.format(reply.body, indent=2))
    return reply


def _included(text: str) -> IncludeObject:
    try:
        return IncludeObject(text or "Metadata")
    except ValueError:
        error = invalid("includeObject", text, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequestError(f"Unable to convert to Table as requested: {error.message}") from None
