from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.openapi.documents import custom_list_schema, custom_schema, schema_name
from mooring.apiserver.openapi.schemas import SECOND, THIRD
from mooring.apiserver.resources import Resource
from mooring.apiserver.strategy import Strategy

KIND = Kind("stable.example.com/v1", "Widget", "widgets")
RESOURCE = Resource(KIND, Strategy(KIND), None, selectable_fields=frozenset({"spec.color", "metadata.name"}))
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def spec_of(schema: Document) -> Document:
    return {"type": "object", "properties": {"spec": schema}}


@pytest.mark.parametrize(
    ("given", "of_third", "of_second"),
    [
        pytest.param(
            {"type": "integer", "default": 3, "minimum": 1},
            {"type": "integer", "default": 3, "minimum": 1},
            {"type": "integer", "minimum": 1},
            id="a default",
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"x-kubernetes-int-or-string": True},
            id="a number or a text",
        ),
        pytest.param({"type": "string", "nullable": True}, {"type": "string", "nullable": True}, {}, id="maybe null"),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"x-kubernetes-preserve-unknown-fields": True},
            id="fields that nobody knows",
        ),
        pytest.param(
            {"type": "object", "oneOf": [{"required": ["p"]}], "properties": {"p": {"type": "string"}}},
            {"type": "object", "oneOf": [{"required": ["p"]}], "properties": {"p": {"type": "string"}}},
            {"type": "object", "properties": {"p": {"type": "string"}}},
            id="one of several",
        ),
        pytest.param(
            {"type": "object", "required": ["n", "m"], "properties": {"n": {"type": "string", "nullable": True}}},
            {"type": "object", "required": ["n", "m"], "properties": {"n": {"type": "string", "nullable": True}}},
            {"type": "object", "required": ["m"], "properties": {"n": {}}},
            id="required, and maybe null",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "integer", "default": 1}},
            {"type": "array", "items": {"type": "integer", "default": 1}},
            {"type": "array", "items": {"type": "integer"}},
            id="a list",
        ),
    ],
)
def test_what_each_dialect_can_say(given: Document, of_third: Document, of_second: Document) -> None:
    for dialect, wanted in ((THIRD, of_third), (SECOND, of_second)):
        assert custom_schema(RESOURCE, spec_of(given), dialect)["properties"]["spec"] == wanted


def test_an_embedded_object_has_what_every_object_has() -> None:
    given = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    found = custom_schema(RESOURCE, spec_of(given), THIRD)["properties"]["spec"]
    assert list(found["properties"]) == ["apiVersion", "kind", "metadata"]
    assert found["required"] == ["kind", "apiVersion"]
    assert "properties" not in custom_schema(RESOURCE, spec_of(given), SECOND)["properties"]["spec"]


def test_what_every_object_has() -> None:
    schema = {"type": "object", "description": "theirs", "properties": {"spec": {"type": "object"}}}
    found = custom_schema(RESOURCE, schema, THIRD)
    assert found["description"] == "theirs"
    assert list(found["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert found["properties"]["metadata"] == {"allOf": [{"$ref": f"#/components/schemas/{META}"}]}
    assert found["x-kubernetes-group-version-kind"] == [
        {"group": "stable.example.com", "kind": "Widget", "version": "v1"}
    ]
    assert found["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]
    assert schema == {"type": "object", "description": "theirs", "properties": {"spec": {"type": "object"}}}


def test_a_kind_without_a_schema() -> None:
    assert custom_schema(RESOURCE, None, SECOND)["type"] == "object"
    assert "properties" not in custom_schema(RESOURCE, None, SECOND)
    keeps_everything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert "properties" not in custom_schema(RESOURCE, keeps_everything, SECOND)
    assert "metadata" in custom_schema(RESOURCE, keeps_everything, THIRD)["properties"]


def test_lists_and_names() -> None:
    assert schema_name(RESOURCE, "Widget") == "com.example.stable.v1.Widget"
    items = custom_list_schema(RESOURCE, SECOND)["properties"]["items"]
    assert items == {"type": "array", "items": {"$ref": "#/definitions/com.example.stable.v1.Widget"}}
