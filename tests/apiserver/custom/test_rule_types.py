"""What CEL knows of a custom object."""

from __future__ import annotations

import pytest

from mooring.api.cel import types
from mooring.api.cel.call_estimates import Span
from mooring.api.cel.types import CelType
from mooring.api.document import Document
from mooring.apiserver.custom.rule_types import REQUEST_BYTES_MAX, declared_type, escaped, size_at
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields

TEXT: Document = {"type": "string"}


@pytest.mark.parametrize(
    ("raw", "type_", "size_max"),
    [
        pytest.param({"type": "integer"}, types.INT, 0, id="a whole number"),
        pytest.param({"type": "number"}, types.DOUBLE, 0, id="a number"),
        pytest.param({"type": "boolean"}, types.BOOL, 0, id="a flag"),
        pytest.param(TEXT, types.STRING, REQUEST_BYTES_MAX - 2, id="a text as long as a request"),
        pytest.param({**TEXT, "maxLength": 5}, types.STRING, 20, id="a letter takes up to four bytes"),
        pytest.param({**TEXT, "enum": ["a", "bbb"]}, types.STRING, 3, id="choices"),
        pytest.param({**TEXT, "format": "date-time"}, types.TIMESTAMP, 32, id="a moment"),
        pytest.param({**TEXT, "format": "duration"}, types.DURATION, 32, id="a time"),
        pytest.param({**TEXT, "format": "byte", "maxLength": 5}, types.BYTES, 5, id="bytes"),
        pytest.param({"x-kubernetes-int-or-string": True}, types.DYN, REQUEST_BYTES_MAX - 2, id="number or text"),
        pytest.param({"type": "array", "maxItems": 3, "items": TEXT}, types.list_of(types.STRING), 3, id="a list"),
        pytest.param(
            {"type": "array", "items": {"type": "integer"}},
            types.list_of(types.INT),
            1_572_863,
            id="a list without end",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": TEXT},
            types.map_of(types.STRING, types.STRING),
            393_215,
            id="a map without end",
        ),
    ],
)
def test_types(raw: Document, type_: CelType, size_max: int) -> None:
    declared = declared_type(read_schema(raw), is_root=False)
    assert declared is not None
    assert (declared.type, declared.size_max) == (type_, size_max)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, id="anything"),
        pytest.param({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}, id="a list of it"),
    ],
)
def test_what_has_no_type_does_not_exist(raw: Document) -> None:
    assert declared_type(read_schema(raw), is_root=False) is None


def test_a_resource_has_a_name_whatever_its_schema_says() -> None:
    declared = declared_type(read_schema(fields(spec=fields())), is_root=True)
    assert declared is not None
    assert sorted(declared.fields) == ["apiVersion", "kind", "metadata", "spec"]
    assert sorted(declared.fields["metadata"].fields) == ["generateName", "name"]


def test_what_must_be_there_takes_room() -> None:
    raw = {**fields(name=TEXT, other=TEXT), "required": ["name"]}
    declared = declared_type(read_schema(raw), is_root=False)
    assert declared is not None
    assert declared.bytes_min == 2 + 4 + 2 + 4


def test_sizes_are_found_by_path() -> None:
    raw = fields(l={"type": "array", "maxItems": 4, "items": fields(a={**TEXT, "maxLength": 2})})
    declared = declared_type(read_schema(raw), is_root=False)
    assert declared is not None
    assert size_at(declared, ("self", "l")) == Span(0, 4)
    assert size_at(declared, ("self", "l", "@items", "a")) == Span(0, 8)
    assert size_at(declared, ("self", "nope")) is None


@pytest.mark.parametrize(
    ("name", "cel_name"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("1a", ""),
        ("a b", ""),
        ("", ""),
    ],
    ids=str,
)
def test_names_that_cel_can_write(name: str, cel_name: str) -> None:
    assert escaped(name) == cel_name
