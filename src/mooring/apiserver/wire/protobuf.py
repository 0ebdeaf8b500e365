"""Protobuf bodies of kubectl and Go clients.

Input: the bytes: a magic number, an envelope with the kind, and the object. Output: the object as JSON would have it,
for `canonical`; or `ProtobufError` with Go's message.

1. Fields are found by their numbers in the schema. Unknown numbers are skipped.
2. A map is a list of entries, each a message of a key and a value. A list of numbers may be packed.
3. Some types have a layout of their own (`_SPECIAL`): a quantity is a string, a time seconds and nanoseconds, JSON is
   in bytes.
4. There are no strict errors: unknown fields are no error, and repeated ones do not exist. A caller that must lose
   nothing passes `unknown`, which gets every number without a field.
"""

from __future__ import annotations

import binascii
import struct as binary
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.api.schema.types import Basic, Field, ListOf, MapOf, Scalar, Struct, Type

MAGIC = b"k8s\x00"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_EPOCH = datetime(1970, 1, 1)
_UNEXPECTED_END = "unexpected EOF"

Wire = int | bytes
"""A field's value as it is on the wire: a number, or bytes."""
_Unknown = list[str] | None


class ProtobufError(Exception):
    """Bytes that are no object; the message is Go's."""


def open_envelope(data: bytes) -> tuple[str, str, bytes]:
    """The apiVersion, the kind and the bytes of the object in a body."""
    if not data:
        raise ProtobufError("empty data")
    if not data.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if len(data) == len(MAGIC):
        raise ProtobufError("empty body")
    api_version, kind, raw = "", "", b""
    for number, value in _fields(data[len(MAGIC) :]):
        if number == 1:
            identity = dict(_fields(_as_bytes(value)))
            api_version, kind = _text(identity.get(1, b"")), _text(identity.get(2, b""))
        elif number == 2:
            raw = _as_bytes(value)
    return api_version, kind, raw


def message(struct: Struct, data: bytes, unknown: list[str] | None = None) -> Document:
    """The object in the bytes, with fields named as in JSON."""
    document: Document = {}
    for number, value in _fields(data):
        part = struct.messages.get(number)
        if part is None:
            if unknown is not None:
                unknown.append(f"{struct.name}.{number}")
        elif isinstance(part, Struct):
            document.update(message(part, _as_bytes(value), unknown))
        else:
            _put(document, struct, part, value, unknown)
    return document


def _put(document: Document, struct: Struct, field: Field, value: Wire, unknown: _Unknown) -> None:
    match field.type:
        case MapOf():
            key, item = _entry(field.type.value, _as_bytes(value), unknown)
            document.setdefault(field.name, {})[key] = item
        case ListOf():
            document.setdefault(field.name, []).extend(_items(field.type.item, value, unknown))
        case _ if struct.name == "JSONSchemaProps" and field.name in _SCHEMA_VALUES:
            document[field.name] = _SCHEMA_VALUES[field.name](struct, _as_bytes(value), unknown)
        case _:
            document[field.name] = _value(field.type, value, unknown)


def _items(item: Type, value: Wire, unknown: _Unknown) -> list[Any]:
    if isinstance(item, Scalar) and item.basic in _INTEGERS and isinstance(value, bytes):
        return [_SPECIAL[item.basic](number) for number in _packed(value)]
    return [_value(item, value, unknown)]


def _entry(item: Type, data: bytes, unknown: _Unknown) -> tuple[str, Any]:
    key, value = "", None
    for number, part in _fields(data):
        if number == 1:
            key = _text(part)
        elif number == 2:
            value = _value(item, part, unknown)
    return key, value


def _value(kind: Type, value: Wire, unknown: _Unknown) -> Any:
    match kind:
        case Struct():
            return message(kind, _as_bytes(value), unknown)
        case Scalar():
            return _SPECIAL[kind.basic](value)
        case ListOf():  # a list inside of a map is a message of its own, with the items as field 1
            return [item for _, part in _fields(_as_bytes(value)) for item in _items(kind.item, part, unknown)]
        case MapOf():
            return dict(_entry(kind.value, _as_bytes(part), unknown) for _, part in _fields(_as_bytes(value)))


# --- single values ----------------------------------------------------------------------------------------------


def _text(value: Wire) -> str:
    return _as_bytes(value).decode("utf-8", "replace")


def _integer(value: Wire) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 2 for a number")
    return value - (1 << 64) if value >= 1 << 63 else value


def _integer32(value: Wire) -> int:
    number = _integer(value) & 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def _floating(value: Wire) -> float:
    number: float = binary.unpack("<d", binary.pack("<Q", value if isinstance(value, int) else 0))[0]
    return number


def _time(value: Wire) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment[0].isoformat()}Z"


def _micro_time(value: Wire) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment[0].isoformat()}.{moment[1] // 1000:06d}Z"


def _moment(value: Wire) -> tuple[datetime, int] | None:
    parts = dict(_fields(_as_bytes(value)))
    if not parts:
        return None
    try:
        return _EPOCH + timedelta(seconds=_integer(parts.get(1, 0))), _integer32(parts.get(2, 0))
    except OverflowError as error:
        raise ProtobufError("a time is out of range") from error


def _duration(value: Wire) -> str:
    nanoseconds = _integer(dict(_fields(_as_bytes(value))).get(1, 0))
    return f"{nanoseconds / 1e9:g}s"


def _quantity(value: Wire) -> str:
    return _text(dict(_fields(_as_bytes(value))).get(1, b"")) or "0"


def _int_or_string(value: Wire) -> int | str:
    parts = dict(_fields(_as_bytes(value)))
    return _text(parts.get(3, b"")) if parts.get(1, 0) else _integer32(parts.get(2, 0))


def _json(value: Wire) -> Any:
    raw = _as_bytes(dict(_fields(_as_bytes(value))).get(1, b""))
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtobufError(f"json: {error}") from error


def _base64(value: Wire) -> str:
    return binascii.b2a_base64(_as_bytes(value), newline=False).decode()


_INTEGERS = frozenset({Basic.INT, Basic.INT32, Basic.INT64, Basic.BOOL})

_SPECIAL: dict[Basic, Callable[[Wire], Any]] = {
    Basic.STRING: _text,
    Basic.BOOL: bool,
    Basic.INT: _integer,
    Basic.INT32: _integer32,
    Basic.INT64: _integer,
    Basic.FLOAT64: _floating,
    Basic.BYTES: _base64,
    Basic.TIME: _time,
    Basic.MICRO_TIME: _micro_time,
    Basic.DURATION: _duration,
    Basic.QUANTITY: _quantity,
    Basic.INT_OR_STRING: _int_or_string,
    Basic.RAW_EXTENSION: _json,
    Basic.FIELDS_V1: _json,
    Basic.ANY: _json,
}


def _schema_or_array(struct: Struct, data: bytes, unknown: _Unknown) -> Any:
    parts = list(_fields(data))
    schemas = [message(struct, _as_bytes(part), unknown) for number, part in parts if number == 2]
    return schemas or next((message(struct, _as_bytes(part), unknown) for number, part in parts if number == 1), None)


def _schema_or_bool(struct: Struct, data: bytes, unknown: _Unknown) -> Any:
    parts = dict(_fields(data))
    return message(struct, _as_bytes(parts[2]), unknown) if 2 in parts else bool(parts.get(1, 0))


_SCHEMA_VALUES: dict[str, Callable[[Struct, bytes, _Unknown], Any]] = {
    "items": _schema_or_array,
    "additionalProperties": _schema_or_bool,
    "additionalItems": _schema_or_bool,
}


# --- the wire ---------------------------------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """Numbers and values of the fields in a message, in order."""
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise ProtobufError(f"proto: illegal tag {number} (wire type {wire_type})")
        value: Wire
        if wire_type == _VARINT:
            value, position = _varint(data, position)
        elif wire_type == _BYTES:
            length, position = _varint(data, position)
            value, position = data[position : position + length], position + length
        elif wire_type in (_FIXED64, _FIXED32):
            width = 8 if wire_type == _FIXED64 else 4
            value, position = int.from_bytes(data[position : position + width], "little"), position + width
        else:
            raise ProtobufError(f"proto: illegal wireType {wire_type}")
        if position > end:
            raise ProtobufError(_UNEXPECTED_END)
        yield number, value


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise ProtobufError(_UNEXPECTED_END)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")


def _as_bytes(value: Wire) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType = 0 for bytes")
    return value
