"""Schemas of custom kinds: features below a node, correlated old and new values, and paths to fields."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document, same_json
from mooring.apiserver.custom.schema import (
    CorrelatedValue,
    FieldPathError,
    Schema,
    any_schema,
    read_field_path,
    read_schema,
    schemas_in,
)
from tests.apiserver.custom.definitions import fields, ruled


@pytest.mark.parametrize(
    ("held", "noted"),
    [
        pytest.param({"type": "string"}, [], id="nothing special"),
        pytest.param({"type": "string", "default": "x"}, ["defaults"], id="a default"),
        pytest.param({"type": "object", "x-kubernetes-embedded-resource": True}, ["embedded"], id="a resource"),
        pytest.param({"type": "array", "x-kubernetes-list-type": "set"}, ["list_types"], id="a set"),
        pytest.param({"type": "array", "x-kubernetes-list-type": "atomic"}, [], id="an atomic list"),
        pytest.param(ruled({"type": "integer"}, "self > 1"), ["rules"], id="a rule"),
    ],
)
def test_a_schema_records_the_features_below_it(held: Document, noted: list[str]) -> None:
    for schema in (fields(a=fields(b=held)), fields(a={"type": "array", "items": held})):
        assert [name for name in _NOTES if _notes(read_schema(schema), name)] == noted


_NOTES = ("defaults", "embedded", "list_types", "rules")


def _notes(schema: Schema, name: str) -> bool:
    return bool(getattr(schema, f"has_{name}_below"))


def test_schemas_in_returns_all_nested_schemas() -> None:
    raw = fields(a={"anyOf": [{"pattern": "x"}], "not": {"enum": [1]}}, b={"additionalProperties": {"format": "f"}})
    assert len(list(schemas_in(raw))) == 6
    assert any_schema(raw, lambda schema: schema.get("format") == "f")
    assert not any_schema(raw, lambda schema: "default" in schema)


MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": fields(k={"type": "string"}, v={"type": "integer"}),
}


def test_correlated_values_match_fields_by_name_and_map_items_by_key() -> None:
    schema = read_schema(fields(l=MAP, s={"type": "array", "items": {"type": "string"}}))
    new = {"l": [{"k": "b", "v": 2}, {"k": "c"}], "s": ["x"], "n": 1}
    pair = CorrelatedValue(new, {"l": [{"k": "a"}, {"k": "b", "v": 1}], "s": ["x"]}, schema)
    items = pair.field("l")
    assert items is not None
    found = items.item(0)
    assert found is not None
    assert found.old == {"k": "b", "v": 1}
    assert not found.is_same
    assert items.item(1) is None
    plain = pair.field("s")
    assert plain is not None
    assert plain.is_same
    assert plain.item(0) is None
    assert pair.field("n") is None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param({"a": [1]}, {"a": [1]}, True, id="the same"),
        pytest.param(1, True, False, id="true is not 1"),
        pytest.param(1, 1.0, False, id="1.0 is not 1"),
        pytest.param({"a": None}, {}, False, id="null is not absent"),
        pytest.param([1, 2], [2, 1], False, id="order counts"),
    ],
)
def test_same_json_compares_types_and_order(one: Any, other: Any, is_same: bool) -> None:
    assert same_json(one, other) is is_same


TEXT = {"type": "string"}
SCHEMA = read_schema(
    fields(spec=fields(a=TEXT, m={"type": "object", "additionalProperties": TEXT}, o=fields(**{"b.c": TEXT})))
)


@pytest.mark.parametrize(
    ("text", "path"),
    [(".spec.a", "spec.a"), (".spec['a']", "spec.a"), (".spec.m.key", "spec.m[key]"), (".spec.o['b.c']", "spec.o.b.c")],
    ids=str,
)
def test_read_field_path_finds_fields(text: str, path: str) -> None:
    found = read_field_path(text, SCHEMA)
    assert (found.path, found.root) == (path, "spec")
    assert found.schema is not None
    assert found.schema.type == "string"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".spec.zz", "does not refer to a valid field"),
        ("spec.a", "expected [ or . but got: spec"),
        (".", "unexpected end of JSON path"),
        (".spec[0]", "expected single quoted string but got 0"),
        (".spec['a'", "unexpected end of JSON path"),
        (r".spec['\q']", r"invalid string literal: invalid escape char \q"),
    ],
    ids=str,
)
def test_read_field_path_rejects_invalid_paths(text: str, why: str) -> None:
    with pytest.raises(FieldPathError) as caught:
        read_field_path(text, SCHEMA)
    assert str(caught.value) == why


def test_read_field_path_can_forbid_brackets() -> None:
    with pytest.raises(FieldPathError, match="array notation is not allowed"):
        read_field_path(".spec['a']", SCHEMA, may_index=False)
