"""Paths to fields, as selectable fields and rules write them."""

from __future__ import annotations

import pytest

from mooring.apiserver.custom.schema import FieldPathError, read_field_path, read_schema
from tests.apiserver.custom.definitions import fields

TEXT = {"type": "string"}
SCHEMA = read_schema(
    fields(spec=fields(a=TEXT, m={"type": "object", "additionalProperties": TEXT}, o=fields(**{"b.c": TEXT})))
)


@pytest.mark.parametrize(
    ("text", "path"),
    [(".spec.a", "spec.a"), (".spec['a']", "spec.a"), (".spec.m.key", "spec.m[key]"), (".spec.o['b.c']", "spec.o.b.c")],
    ids=str,
)
def test_paths(text: str, path: str) -> None:
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
def test_paths_that_lead_nowhere(text: str, why: str) -> None:
    with pytest.raises(FieldPathError) as caught:
        read_field_path(text, SCHEMA)
    assert str(caught.value) == why


def test_brackets_can_be_forbidden() -> None:
    with pytest.raises(FieldPathError, match="array notation is not allowed"):
        read_field_path(".spec['a']", SCHEMA, may_index=False)
