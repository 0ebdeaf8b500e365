"""Unchanged parts: what a write leaves as it was is not read a second time.

Comes in   the body of a PUT, and the object that it replaces, as it is stored
Goes out   the document that the body means; its unchanged parts are the very ones of the old document

Whoever replaces an object sends back what he read with a small change, mostly in the status. The spec of a workload is
most of its bytes, and all that is known of it holds as long as they are the same.

 1. A part (`spec`, `status`, `data`) is unchanged if it has the bytes with which it is stored. What is stored is
    canonical and has its defaults.
 2. Metadata is never taken over as a whole: it is written to on every way. Its parts are.
 3. A body goes this way only if nothing in it needs a second look, as with `moulds`: who goes the other way finds the
    same answer there, or the words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.api.schema.model import Struct
from mooring.apiserver.wire.canonical import canonical
from mooring.apiserver.wire.decode import BodyKind
from mooring.apiserver.wire.moulds import BLANKS, plain_parts, plain_value
from mooring.apiserver.wire.scalars import Irregular, ScalarFault

_NEVER_SHARED = ("kind", "apiVersion", "metadata")

_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def parts_to_share(old: Document) -> Mapping[str, Any]:
    """What an object that replaces `old` may have in common with it."""
    return {**old, "metadata": dict(old["metadata"])}


def read_beside(data: bytes, struct: Struct, kind: BodyKind, old: Document, stored: bytes) -> Document | None:
    """The document of a body which replaces `old`, whose bytes are `stored`; None if it has to be read with care."""
    parts, before = plain_parts(data.rstrip(BLANKS)), _parts(stored)
    fields = plain_parts(bytes(parts["metadata"])) if parts is not None and "metadata" in parts else None
    if parts is None or fields is None:
        return None
    unchanged = _unchanged(parts, before, old)
    fields_unchanged = _unchanged(fields, _parts(before["metadata"]), old["metadata"])
    changed: dict[str, object] = {name: part for name, part in parts.items() if name not in unchanged}
    changed["metadata"] = {name: part for name, part in fields.items() if name not in fields_unchanged}
    rest = plain_value(_encode(changed))
    if rest is None or rest.get("kind") != kind.kind or rest.get("apiVersion") != kind.api_version:
        return None
    rest["metadata"] |= fields_unchanged
    dropped: list[str] = []
    try:
        document = canonical(struct, rest | unchanged, dropped, parts_to_share(old))
    except (Irregular, ScalarFault):
        return None
    return None if dropped else document


def _unchanged(parts: Mapping[str, msgspec.Raw], before: Mapping[str, msgspec.Raw], old: Document) -> Document:
    return {name: old[name] for name, part in parts.items() if name not in _NEVER_SHARED and part == before.get(name)}
