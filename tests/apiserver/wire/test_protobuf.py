"""Protobuf bodies, built here field by field; the layouts are those of Kubernetes' generated.proto files."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.schema.types import struct_named
from mooring.apiserver.wire.protobuf import MAGIC, ProtobufError, message, open_envelope


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def part(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def entry(field: int, key: str, value: bytes | str) -> bytes:
    return part(field, part(1, key) + part(2, value))


@pytest.mark.parametrize(
    ("type_name", "data", "expected"),
    [
        pytest.param(
            "meta.ObjectMeta", part(1, "a") + number(7, 3), {"name": "a", "generation": 3}, id="strings and numbers"
        ),
        pytest.param(
            "meta.ObjectMeta", entry(11, "a", "b") + entry(11, "c", ""), {"labels": {"a": "b", "c": ""}}, id="maps"
        ),
        pytest.param("meta.ObjectMeta", part(14, "a") + part(14, "b"), {"finalizers": ["a", "b"]}, id="lists"),
        pytest.param(
            "meta.ObjectMeta",
            part(8, number(1, 1_577_934_245) + number(2, 999)),
            {"creationTimestamp": "2020-01-02T03:04:05Z"},
            id="a time",
        ),
        pytest.param("meta.ObjectMeta", part(8, b""), {"creationTimestamp": None}, id="no time"),
        pytest.param(
            "coordination.LeaseSpec",
            part(4, number(1, 1_577_934_245) + number(2, 123_456_789)),
            {"renewTime": "2020-01-02T03:04:05.123456Z"},
            id="a micro time",
        ),
        pytest.param(
            "core.ResourceRequirements",
            entry(2, "cpu", part(1, "500m")),
            {"requests": {"cpu": "500m"}},
            id="quantities",
        ),
        pytest.param(
            "core.HTTPGetAction", part(2, number(1, 0) + number(2, 8080) + part(3, "")), {"port": 8080}, id="a port"
        ),
        pytest.param("core.HTTPGetAction", part(2, number(1, 1) + part(3, "web")), {"port": "web"}, id="a named port"),
        pytest.param(
            "core.Volume",
            part(1, "v") + part(2, part(2, part(1, "Memory"))),
            {"name": "v", "emptyDir": {"medium": "Memory"}},
            id="inlined structs are messages",
        ),
        pytest.param("core.PodSpec", number(25, -5), {"priority": -5}, id="a negative number"),
        pytest.param(
            "core.PodSecurityContext",
            number(4, 1) + number(4, 2) + part(4, varint(3) + varint(-1)),
            {"supplementalGroups": [1, 2, 3, -1]},
            id="lists of numbers, packed or not",
        ),
        pytest.param("core.Secret", entry(2, "k", "abc"), {"data": {"k": "YWJj"}}, id="bytes"),
        pytest.param(
            "meta.ManagedFieldsEntry", part(7, part(1, '{"f:a":{}}')), {"fieldsV1": {"f:a": {}}}, id="JSON in bytes"
        ),
        pytest.param(
            "authentication.UserInfo",
            entry(4, "k", part(1, "a") + part(1, "b")),
            {"extra": {"k": ["a", "b"]}},
            id="a list in a map is a message",
        ),
        pytest.param(
            "apiextensions.JSONSchemaProps",
            part(24, part(1, part(5, "string"))) + part(30, number(1, 1)) + part(8, part(1, "5")),
            {"items": {"type": "string"}, "additionalProperties": True, "default": 5},
            id="schemas",
        ),
        pytest.param("apiextensions.JSONSchemaProps", b"\x59" + bytes(6) + b"\xf8\x3f", {"minimum": 1.5}, id="a float"),
        pytest.param("meta.ObjectMeta", part(99, "x") + part(1, "a"), {"name": "a"}, id="unknown fields are skipped"),
    ],
)
def test_a_message_is_decoded_by_field_numbers(type_name: str, data: bytes, expected: Any) -> None:
    package, _, name = type_name.partition(".")
    assert message(struct_named(package, name), data) == expected


def test_open_envelope_returns_version_kind_and_data() -> None:
    data = MAGIC + part(1, part(1, "apps/v1") + part(2, "Deployment")) + part(2, b"inside") + part(3, "") + part(4, "")
    assert open_envelope(data) == ("apps/v1", "Deployment", b"inside")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "empty data"),
        (MAGIC, "empty body"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (MAGIC + b"\x0a\x05ab", "unexpected EOF"),
        (MAGIC + b"\x0b", "proto: illegal wireType 3"),
        (MAGIC + b"\x00\x00", "proto: illegal tag 0 (wire type 0)"),
        (MAGIC + b"\x08" + b"\xff" * 11, "proto: integer overflow"),
    ],
)
def test_an_invalid_envelope_is_an_error(data: bytes, error: str) -> None:
    with pytest.raises(ProtobufError) as raised:
        open_envelope(data)
    assert str(raised.value) == error
