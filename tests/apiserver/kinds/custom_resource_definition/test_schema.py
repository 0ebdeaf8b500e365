"""Tests of kinds.custom_resource_definition.schema."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.kinds.custom_resource_definition.schema import (
    SchemaValidationOptions,
    validate_default,
    validate_schema,
)
from tests.apiserver.custom.definitions import fields, ruled

NUMBER: Document = {"type": "integer"}
EMBEDDED: Document = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


@pytest.mark.parametrize(
    ("held", "found"),
    [
        pytest.param({**NUMBER, "default": 1}, [], id="fine"),
        pytest.param(
            {**NUMBER, "default": "x"},
            ['default: Invalid value: "string": a.default in body must be of type integer: "string"'],
            id="another type",
        ),
        pytest.param(
            {"type": "object", "default": {"x": 1}},
            ['default: Invalid value: {"x":1}: must not have unknown fields'],
            id="unknown fields",
        ),
        pytest.param(
            ruled({**NUMBER, "default": 0}, "self > 1"),
            ["default: Invalid value: 0: failed rule: self > 1"],
            id="a rule",
        ),
        pytest.param(
            {**EMBEDDED, "default": {"kind": 1}},
            ["default.kind: Invalid value: 1: must be a string"],
            id="an embedded resource",
        ),
        pytest.param(
            {"type": "array", "items": {**NUMBER, "default": "x"}},
            ['items.default: Invalid value: "string"'],
            id="of items",
        ),
        pytest.param(
            {**EMBEDDED, "properties": {"metadata": fields(name={"type": "string", "default": "a/b"})}},
            [
                'properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: '
                "metadata.name"
            ],
            id="of embedded metadata",
        ),
    ],
)
def test_defaults_are_validated(held: Document, found: list[str]) -> None:
    errors = validate_default(read_schema(fields(a=held)), "s", needs_pruned=True)
    got = [error.message.removeprefix("s.properties[a].") for error in errors]
    assert len(got) == len(found)
    for text, expected in zip(got, found, strict=True):
        assert text.startswith(expected.partition(": a.default")[0])


TEXT: Document = {"type": "string"}


def messages(raw: Document, *, has_status: bool = False, **options: Any) -> list[str]:
    errors = validate_schema({"openAPIV3Schema": raw}, "s", SchemaValidationOptions(**options), has_status=has_status)
    return [error.message for error in errors]


@pytest.mark.parametrize(
    ("held", "found"),
    [
        pytest.param(TEXT, [], id="fine"),
        pytest.param({**TEXT, "id": "x"}, ["id: Forbidden: id is not supported"], id="id"),
        pytest.param({**TEXT, "$ref": "x"}, ["$ref: Forbidden: $ref is not supported"], id="$ref"),
        pytest.param(
            {"type": "array", "items": TEXT, "additionalItems": True},
            ["additionalItems: Forbidden: additionalItems is not supported"],
            id="additionalItems",
        ),
        pytest.param(
            {"type": "array", "items": [TEXT]},
            ["items: Forbidden: items must be a schema object and not an array"],
            id="several items",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "uniqueItems": True},
            [
                "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
                "quadratic"
            ],
            id="unique items",
        ),
        pytest.param(
            {**fields(b=TEXT), "additionalProperties": TEXT},
            ["additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
            id="fields and a map",
        ),
        pytest.param({**fields(b=TEXT), "additionalProperties": True}, [], id="fields and anything"),
        pytest.param(
            {**TEXT, "default": 1}, ['default: Invalid value: "integer": s.openAPIV3Schema'], id="a wrong default"
        ),
    ],
)
def test_fields_of_schemas_are_validated(held: Document, found: list[str]) -> None:
    prefix = "s.openAPIV3Schema.properties[a]."
    got = [text.removeprefix(prefix) for text in messages(fields(a=held))]
    assert len(got) == len(found)
    assert all(text.startswith(expected) or "default" in expected for text, expected in zip(got, found, strict=True))


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param(
            {"type": "object", "nullable": True},
            ["s.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root"],
            id="nullable",
        ),
        pytest.param(
            fields(kind={**TEXT, "default": "x"}),
            ["s.openAPIV3Schema.properties[kind].default: Forbidden: must not be set in top-level kind"],
            id="a default of the kind",
        ),
        pytest.param(
            {"type": "object", "$schema": "x"},
            ["s.openAPIV3Schema: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"],
            id="$schema",
        ),
    ],
)
def test_the_root_schema_is_validated(raw: Document, found: list[str]) -> None:
    assert messages(raw) == found


def test_with_a_status_only_some_fields_are_allowed_at_the_root() -> None:
    assert messages({"type": "object", "description": "x", "required": ["spec"]}, has_status=True) == []
    (message,) = messages({"type": "object", "maxProperties": 4}, has_status=True)
    assert message.endswith("fields are allowed at the root of the schema if the status subresource is enabled")
    assert "s.openAPIV3Schema.type" in messages({"type": "string"}, has_status=True)[0]


def test_rules_are_validated_only_in_valid_schemas() -> None:
    broken = ruled({"type": "integer"}, "self.nope")
    assert len(messages(fields(a=broken))) == 1
    assert all("x-kubernetes-validations" not in text for text in messages(fields(a={**broken, "uniqueItems": True})))


def test_unknown_types_are_accepted_in_old_schemas() -> None:
    raw = fields(a={"type": "thing"})
    assert len(messages(raw)) == 1
    assert messages(raw, needs_known_types=False) == []
