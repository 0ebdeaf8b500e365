"""Schemas are read once, and know what is below them."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.schema import Schema, any_schema, read_schema, schemas_in
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
