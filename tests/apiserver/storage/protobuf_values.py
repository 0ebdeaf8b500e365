"""Writes objects as kube-apiserver stores them in protobuf: a `runtime.Unknown` behind the prefix `k8s\\0`."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.api.schema.model import Basic, ListOf, MapOf, Scalar, Struct, Type
from mooring.api.schema.tables import struct_of_kind

PREFIX = b"k8s\x00"


def protobuf_value(document: Document, extra: bytes = b"") -> bytes:
    """A stored value. `extra` are further fields of the object."""
    struct = struct_of_kind(document["apiVersion"], document["kind"])
    assert struct is not None
    raw = _message(struct, document) + extra
    return PREFIX + envelope(document["apiVersion"], document["kind"], raw)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return part(1, part(1, api_version.encode()) + part(2, kind.encode())) + part(2, raw) + part(3, b"") + part(4, b"")


def part(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _message(struct: Struct, document: Document) -> bytes:
    out = b""
    for number, each in struct.messages.items():
        if isinstance(each, Struct):
            inlined = _message(each, document)
            out += part(number, inlined) if inlined else b""
        elif document.get(each.name) is not None:
            out += b"".join(_field(number, each.type, document[each.name]))
    return out


def _field(number: int, kind: Type, value: Any) -> list[bytes]:
    match kind:
        case ListOf():
            return [_single(number, kind.item, item) for item in value]
        case MapOf():
            return [part(number, part(1, key.encode()) + _single(2, kind.value, item)) for key, item in value.items()]
        case _:
            return [_single(number, kind, value)]


def _single(number: int, kind: Type, value: Any) -> bytes:
    if isinstance(kind, Struct):
        return part(number, _message(kind, value))
    assert isinstance(kind, Scalar), kind
    match kind.basic:
        case Basic.STRING:
            return part(number, value.encode())
        case Basic.BOOL | Basic.INT | Basic.INT32 | Basic.INT64:
            return _varint(number << 3) + _varint(int(value))
        case Basic.BYTES:
            return part(number, base64.b64decode(value))
        case Basic.QUANTITY:
            return part(number, part(1, value.encode()))
        case Basic.TIME:
            return part(number, _varint(8) + _varint(int(datetime.fromisoformat(value).timestamp())))
        case Basic.INT_OR_STRING if isinstance(value, int):
            return part(number, _varint(8) + _varint(0) + _varint(16) + _varint(value))
        case Basic.INT_OR_STRING:
            return part(number, _varint(8) + _varint(1) + part(3, value.encode()))
        case Basic.FIELDS_V1 | Basic.RAW_EXTENSION | Basic.ANY:
            return part(number, part(1, msgspec.json.encode(value)))
        case _:
            raise NotImplementedError(kind.basic)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
