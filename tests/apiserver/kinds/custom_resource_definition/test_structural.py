"""Tests of kinds.custom_resource_definition.structural."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.custom_resource_definition.structural import (
    has_unatomic_set,
    unsupported,
    validate_list,
    validate_map_set,
    validate_structural,
)
from tests.apiserver.custom.definitions import fields

TEXT: Document = {"type": "string"}
LIST, KEYS, MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
KEYED = {**fields(k=TEXT), "required": ["k"]}


def array(items: Document | None, kind: str | None, *keys: str) -> Document:
    found: Document = {"type": "array"}
    found |= {"items": items} if items is not None else {}
    found |= {LIST: kind} if kind is not None else {}
    return found | ({KEYS: list(keys)} if keys else {})


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param(array(TEXT, "set"), [], id="a set"),
        pytest.param(array(KEYED, "map", "k"), [], id="a map"),
        pytest.param(
            {**TEXT, LIST: "set"},
            [f'p.type: Invalid value: "string": must be array if {LIST} is specified'],
            id="no list",
        ),
        pytest.param({LIST: "set"}, [f"p.type: Required value: must be array if {LIST} is specified"], id="no type"),
        pytest.param(
            array(TEXT, "foo"),
            [f'p.{LIST}: Unsupported value: "foo": supported values: "atomic", "set", "map"'],
            id="unknown",
        ),
        pytest.param(
            array({"type": "object"}, "set"),
            [f"p.items.{MAP}: Invalid value: null: must be atomic as item of a list with {LIST}=set"],
            id="a set of objects",
        ),
        pytest.param(
            array(KEYED, None, "k"),
            [f"p.{LIST}: Required value: must be map if {KEYS} is non-empty"],
            id="keys of no map",
        ),
        pytest.param(
            array(KEYED, "map"), [f"p.{KEYS}: Required value: must not be empty if {LIST} is map"], id="no keys"
        ),
        pytest.param(
            array(None, "map", "k"), [f"p.items: Required value: must have a schema if {LIST} is map"], id="no items"
        ),
        pytest.param(
            array(TEXT, "map", "k"),
            [f'p.items.type: Invalid value: "string": must be object if parent array\'s {LIST} is map'],
            id="a map of strings",
        ),
        pytest.param(
            array(KEYED, "map", "z"),
            [f'p.{KEYS}: Invalid value: ["z"]: entries must all be names of item properties'],
            id="unknown keys",
        ),
        pytest.param(
            array(KEYED, "map", "k", "k"),
            [f'p.{KEYS}: Invalid value: ["k","k"]: must not contain duplicate entries'],
            id="a key twice",
        ),
        pytest.param(
            {**TEXT, MAP: "atomic"},
            [f'p.type: Invalid value: "string": must be object if {MAP} is specified'],
            id="no map",
        ),
        pytest.param(
            {"type": "object", MAP: "x"},
            [f'p.{MAP}: Unsupported value: "x": supported values: "atomic", "granular"'],
            id="unknown map",
        ),
        pytest.param(
            {"x-kubernetes-preserve-unknown-fields": False},
            ["p.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
            id="preserve unknown fields is false",
        ),
    ],
)
def test_list_and_map_types_are_validated(raw: Document, found: list[str]) -> None:
    assert [error.message for error in validate_list(raw, "p", needs_atomic_sets=True)] == found


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        pytest.param(array(KEYED, "map", "k"), [], id="required"),
        pytest.param(array(fields(k={**TEXT, "default": "x"}), "map", "k"), [], id="with a default"),
        pytest.param(array(fields(k=TEXT), "map", "k"), ["p.items.properties[k].default"], id="optional"),
        pytest.param(
            array({**fields(k={**TEXT, "nullable": True}), "required": ["k"]}, "map", "k"),
            ["p.items.properties[k].nullable"],
            id="null",
        ),
        pytest.param(array({**TEXT, "nullable": True}, "set"), ["p.items.nullable"], id="null in a set"),
    ],
)
def test_map_keys_and_set_items_are_validated(raw: Document, paths: list[str]) -> None:
    assert [error.field for error in validate_map_set(raw, "p")] == paths


def test_has_unatomic_set_finds_sets_of_granular_objects() -> None:
    assert has_unatomic_set(array({"type": "object"}, "set"))
    assert not has_unatomic_set(array({"type": "object", MAP: "atomic"}, "set"))


STRING_SCHEMA: Document = {"type": "string"}
EITHER = [{"type": "integer"}, {"type": "string"}]
EMBEDDED = {"x-kubernetes-embedded-resource": True}


@pytest.mark.parametrize(
    ("held", "found"),
    [
        pytest.param(STRING_SCHEMA, [], id="fine"),
        pytest.param({}, ["a.type: Required value: must not be empty for specified object fields"], id="no type"),
        pytest.param({"type": "array"}, ["a.items: Required value: must be specified"], id="a list without items"),
        pytest.param(
            {"type": "array", "items": {}},
            ["a.items.type: Required value: must not be empty for specified array items"],
            id="items without a type",
        ),
        pytest.param({"x-kubernetes-int-or-string": True, "anyOf": EITHER}, [], id="int or string"),
        pytest.param(
            {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": EITHER}, {"pattern": "a"}]},
            [],
            id="int or string with allOf",
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
            [
                "a.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
                "x-kubernetes-int-or-string is true"
            ],
            id="int or string with unknown fields",
        ),
        pytest.param(
            {**STRING_SCHEMA, "anyOf": [{"type": "string", "nullable": True}]},
            [
                "a.anyOf[0].nullable: Forbidden: must be false to be structural",
                "a.anyOf[0].type: Forbidden: must be empty to be structural",
            ],
            id="types in restrictions",
        ),
        pytest.param(
            {"type": "object", "not": {"properties": {"metadata": {}}}},
            ["a.not.properties[metadata]: Forbidden: must not be specified in a nested context"],
            id="metadata in restrictions",
        ),
        pytest.param(
            {**STRING_SCHEMA, "pattern": "("},
            [
                'a.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: '
                "missing closing ): `(`"
            ],
            id="a broken pattern",
        ),
        pytest.param(
            {**STRING_SCHEMA, "pattern": "(((a|b){100}){100}){100}"},
            [
                'a.pattern: Invalid value: "(((a|b){100}){100}){100}": must be a valid regular expression, but isn\'t: '
                "error parsing regexp: invalid repeat count: `{100}`"
            ],
            id="a pattern with nested repeats",
        ),
        pytest.param(
            {**STRING_SCHEMA, **EMBEDDED},
            [
                "a.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields",
                'a.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
            ],
            id="an embedded resource that is a string",
        ),
        pytest.param(
            {**fields(kind={"type": "integer"}, metadata=STRING_SCHEMA), **EMBEDDED},
            [
                'a.properties[kind].type: Invalid value: "integer": must be string',
                'a.properties[metadata].type: Invalid value: "string": must be object',
            ],
            id="an embedded resource with invalid metadata",
        ),
    ],
)
def test_structural_schemas_of_fields_are_validated(held: Document, found: list[str]) -> None:
    errors = validate_structural(fields(a=held), "r")
    assert [error.message.removeprefix("r.properties[a]").removeprefix(".") for error in errors] == [
        text.removeprefix("a.") for text in found
    ]


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param(
            STRING_SCHEMA,
            ['r.type: Invalid value: "string": must be object at the root'],
            id="a string",
        ),
        pytest.param({}, ["r.type: Required value: must not be empty at the root"], id="empty"),
        pytest.param(
            {"type": "object", "additionalProperties": STRING_SCHEMA},
            ["r.additionalProperties: Forbidden: must not be used at the root"],
            id="a map",
        ),
        pytest.param(fields(metadata={"type": "object"}), [], id="metadata"),
        pytest.param(
            fields(metadata=fields(name={**STRING_SCHEMA, "maxLength": 3})),
            [],
            id="restricted names",
        ),
        pytest.param(
            fields(metadata=fields(labels={"type": "object"})),
            [
                "r.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but "
                "metadata is implicitly specified"
            ],
            id="restricted labels",
        ),
        pytest.param(
            {**fields(a=STRING_SCHEMA), "oneOf": [{"properties": {"b": {"pattern": "x"}}}]},
            ["r.properties[b]: Required value: because it is defined in r.oneOf[0].properties[b]"],
            id="restricted but not defined",
        ),
    ],
)
def test_the_structural_schema_of_the_root_is_validated(raw: Document, found: list[str]) -> None:
    assert [error.message for error in validate_structural(raw, "r")] == found


@pytest.mark.parametrize(
    ("held", "why"),
    [
        pytest.param(STRING_SCHEMA, "", id="fine"),
        pytest.param(
            {**STRING_SCHEMA, "$schema": "x"},
            "OpenAPIV3Schema 'schema' is not supported",
            id="$schema",
        ),
        pytest.param(
            {"items": [STRING_SCHEMA]},
            "OpenAPIV3Schema 'items' must be a schema, but is an array",
            id="several items",
        ),
    ],
)
def test_unsupported_finds_fields_without_a_structural_form(held: Document, why: str) -> None:
    assert unsupported(fields(a=held)) == why
