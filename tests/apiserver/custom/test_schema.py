"""Schemas are read once, and know what is below them."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.schema import Pair, Schema, any_schema, read_schema, same_json, schemas_in
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
def test_a_node_knows_what_is_below_it(held: Document, noted: list[str]) -> None:
    for schema in (fields(a=fields(b=held)), fields(a={"type": "array", "items": held})):
        assert [name for name in _NOTES if _notes(read_schema(schema), name)] == noted


_NOTES = ("defaults", "embedded", "list_types", "rules")


def _notes(schema: Schema, name: str) -> bool:
    return bool(getattr(schema, f"has_{name}_below"))


def test_all_nested_schemas_are_found() -> None:
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


def test_fields_go_by_name_and_items_of_maps_by_key() -> None:
    schema = read_schema(fields(l=MAP, s={"type": "array", "items": {"type": "string"}}))
    new = {"l": [{"k": "b", "v": 2}, {"k": "c"}], "s": ["x"], "n": 1}
    pair = Pair(new, {"l": [{"k": "a"}, {"k": "b", "v": 1}], "s": ["x"]}, schema)
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
def test_equality(one: Any, other: Any, is_same: bool) -> None:
    assert same_json(one, other) is is_same
