"""The stored form of an object: JSON in which every field is kept, and which nobody decodes to pass it on.

Comes in   objects as dictionaries, or as stored bytes with their revision
Goes out   stored bytes; and the bytes that clients get, with the resourceVersion in them

 1. A stored object begins with its kind, its apiVersion and its metadata, in this order, and holds no resourceVersion:
    that is the revision of the record, which is known only after it is written.
 2. So the resourceVersion can be put in behind the first `"metadata":{` of the bytes. A stored object has a name,
    and so its metadata is never empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mooring.api.kinds import Kind

PlainObject: TypeAlias = dict[str, object]

_METADATA = b'"metadata":{'
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[PlainObject] = msgspec.json.Decoder(dict[str, object])


def stored_form(kind: Kind, body: Mapping[str, object], metadata: PlainObject) -> bytes:
    """`body` with that metadata, as it is stored."""
    # The first three keys fix the order; what `body` says of them is then overruled.
    whole: PlainObject = {"kind": None, "apiVersion": None, "metadata": None}
    whole.update(body)
    whole["kind"], whole["apiVersion"], whole["metadata"] = kind.kind, kind.api_version, metadata
    return _encode(whole)


def encoded(whole: Mapping[str, object]) -> bytes:
    """An object that was decoded from its stored form and changed in place: its order is right already."""
    return _encode(whole)


def decoded(value: bytes) -> PlainObject:
    return _decoder.decode(value)


def with_revision(value: bytes, revision: int) -> bytes:
    """What clients get."""
    return value.replace(_METADATA, b'"metadata":{"resourceVersion":"%d",' % revision, 1)


def metadata_of(plain: Mapping[str, object]) -> PlainObject:
    """The metadata of an object, as a copy to be changed; empty if there is none."""
    metadata = plain.get("metadata")
    if isinstance(metadata, dict):  # as nearly always, and told at once: whether something is a Mapping is not
        return metadata.copy()
    return dict(metadata) if isinstance(metadata, Mapping) else {}


def part_of(plain: Mapping[str, object], field: str) -> Mapping[str, object]:
    """The spec, the status, ... of an object, to be read; empty if there is none."""
    part = plain.get(field)
    return part if isinstance(part, Mapping) else {}
