"""The stored form of an object: JSON with every field, which is served without being decoded.

1. A stored object begins with its kind, apiVersion and metadata, in this order. It holds no resourceVersion: that is
   the revision of its record, which is known only after the write.
2. So the resourceVersion is inserted after the first `"metadata":{` of the bytes. A stored object has a name: its
   metadata is never empty.
3. A partly decoded object has `msgspec.Raw` where a field was not asked for. The encoder writes the bytes of a
   `msgspec.Raw` unchanged, so a partly decoded object is stored like a decoded one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import msgspec

from mooring.api.kinds import Kind

PlainObject: TypeAlias = dict[str, object]

_METADATA = b'"metadata":{'
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[PlainObject] = msgspec.json.Decoder(dict[str, object])
_decode_sections = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw] | str | None]).decode
_decode_value = msgspec.json.Decoder().decode


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


def partly_decoded(value: bytes, fields: Mapping[str, Collection[str]]) -> PlainObject:
    """An object of which only the given fields of metadata, spec and status are decoded.

    `fields` has the names by section. For kinds whose sections are maps, such as pods.
    """
    whole: dict[str, Any] = _decode_sections(value)
    for section, names in fields.items():
        part = whole.get(section)
        if part is not None:
            for name in names:
                if name in part:
                    part[name] = _decode_value(part[name])
    return whole


def with_revision(value: bytes, revision: int) -> bytes:
    """What clients get."""
    return value.replace(_METADATA, b'"metadata":{"resourceVersion":"%d",' % revision, 1)
