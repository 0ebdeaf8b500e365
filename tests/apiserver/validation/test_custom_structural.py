"""Is a schema structural?"""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.custom_structural import structural_faults, unsupported
from tests.apiserver.custom.definitions import fields

TEXT: Document = {"type": "string"}
EITHER = [{"type": "integer"}, {"type": "string"}]
INSIDE = {"x-kubernetes-embedded-resource": True}


@pytest.mark.parametrize(
    ("held", "found"),
    [
        pytest.param(TEXT, [], id="fine"),
        pytest.param({}, ["a.type: Required value: must not be empty for specified object fields"], id="no type"),
        pytest.param({"type": "array"}, ["a.items: Required value: must be specified"], id="a list of nothing"),
        pytest.param(
            {"type": "array", "items": {}},
            ["a.items.type: Required value: must not be empty for specified array items"],
            id="items without a type",
        ),
        pytest.param({"x-kubernetes-int-or-string": True, "anyOf": EITHER}, [], id="number or text"),
        pytest.param(
            {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": EITHER}, {"pattern": "a"}]}, [], id="and more"
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
            [
                "a.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
                "x-kubernetes-int-or-string is true"
            ],
            id="number, text or anything",
        ),
        pytest.param(
            {**TEXT, "anyOf": [{"type": "string", "nullable": True}]},
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
            {**TEXT, "pattern": "("},
            [
                'a.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: '
                "missing closing ): `(`"
            ],
            id="a broken pattern",
        ),
        pytest.param(
            {**TEXT, "pattern": "(((a|b){100}){100}){100}"},
            [
                'a.pattern: Invalid value: "(((a|b){100}){100}){100}": must be a valid regular expression, but isn\'t: '
                "error parsing regexp: invalid repeat count: `{100}`"
            ],
            id="a pattern with nested repeats",
        ),
        pytest.param(
            {**TEXT, **INSIDE},
            [
                "a.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields",
                'a.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
            ],
            id="a resource that is a text",
        ),
        pytest.param(
            {**fields(kind={"type": "integer"}, metadata=TEXT), **INSIDE},
            [
                'a.properties[kind].type: Invalid value: "integer": must be string',
                'a.properties[metadata].type: Invalid value: "string": must be object',
            ],
            id="a resource with odd metadata",
        ),
    ],
)
def test_fields(held: Document, found: list[str]) -> None:
    faults = structural_faults(fields(a=held), "r")
    assert [fault.message.removeprefix("r.properties[a]").removeprefix(".") for fault in faults] == [
        text.removeprefix("a.") for text in found
    ]


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param(TEXT, ['r.type: Invalid value: "string": must be object at the root'], id="a text"),
        pytest.param({}, ["r.type: Required value: must not be empty at the root"], id="nothing"),
        pytest.param(
            {"type": "object", "additionalProperties": TEXT},
            ["r.additionalProperties: Forbidden: must not be used at the root"],
            id="a map",
        ),
        pytest.param(fields(metadata={"type": "object"}), [], id="metadata"),
        pytest.param(fields(metadata=fields(name={**TEXT, "maxLength": 3})), [], id="restricted names"),
        pytest.param(
            fields(metadata=fields(labels={"type": "object"})),
            [
                "r.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but "
                "metadata is implicitly specified"
            ],
            id="restricted labels",
        ),
        pytest.param(
            {**fields(a=TEXT), "oneOf": [{"properties": {"b": {"pattern": "x"}}}]},
            ["r.properties[b]: Required value: because it is defined in r.oneOf[0].properties[b]"],
            id="restricted but not defined",
        ),
    ],
)
def test_roots(raw: Document, found: list[str]) -> None:
    assert [fault.message for fault in structural_faults(raw, "r")] == found


@pytest.mark.parametrize(
    ("held", "why"),
    [
        pytest.param(TEXT, "", id="fine"),
        pytest.param({**TEXT, "$schema": "x"}, "OpenAPIV3Schema 'schema' is not supported", id="$schema"),
        pytest.param(
            {"items": [TEXT]}, "OpenAPIV3Schema 'items' must be a schema, but is an array", id="several items"
        ),
    ],
)
def test_what_cannot_be_structural_at_all(held: Document, why: str) -> None:
    assert unsupported(fields(a=held)) == why
