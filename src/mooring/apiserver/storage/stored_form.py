"""The stored form of an object: JSON with every field, which is served without being decoded.

1. A stored object begins with its kind, apiVersion and metadata, in this order. It holds no resourceVersion: that is
   the revision of its record, which is known only after the write.
2. So the resourceVersion is inserted after the first `"metadata":{` of the bytes. A stored object has a name: its
   metadata is never empty.
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
