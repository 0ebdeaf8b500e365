"""Pruning and defaulting of custom objects, and the embedded resources in them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.pruning import (
    DefaultsTooLargeError,
    EmbeddedResourceError,
    coerce_embedded,
    fill_defaults,
    prune,
    prune_nulls,
    validate_embedded,
)
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields

KEEPS: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Document = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "before", "after", "unknown"),
    [
        pytest.param(fields(a=TEXT), {"a": 1, "b": 2}, {"a": 1}, ["b"], id="an unknown field"),
        pytest.param(fields(a=fields(b=TEXT)), {"a": {"c": 1}}, {"a": {}}, ["a.c"], id="deeper"),
        pytest.param(
            fields(a={"type": "array", "items": fields(b=TEXT)}),
            {"a": [{"b": 1}, {"c": 1}]},
            {"a": [{"b": 1}, {}]},
            ["a[1].c"],
            id="in a list",
        ),
        pytest.param(fields(), {"kind": "K", "x": 1}, {"kind": "K"}, ["x"], id="kind is kept"),
        pytest.param(
            {"type": "object", "additionalProperties": fields(b=TEXT)},
            {"k": {"b": 1, "c": 1}},
            {"k": {"b": 1}},
            ["k.c"],
            id="in a map",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": True},
            {"k": 1, "m": {"x": 1}},
            {"k": 1, "m": {}},
            ["m.x"],
            id="a map of anything keeps plain values",
        ),
        pytest.param(
            fields(a=KEEPS), {"a": {"x": {"y": 1}}}, {"a": {"x": {"y": 1}}}, [], id="unknown fields are preserved"
        ),
        pytest.param(
            fields(a={**KEEPS, "properties": {"b": fields(c=TEXT)}}),
            {"a": {"x": 1, "b": {"c": 1, "d": 1}}},
            {"a": {"x": 1, "b": {"c": 1}}},
            ["a.b.d"],
            id="not preserved below specified properties",
        ),
        pytest.param(
            fields(a={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": fields()}}),
            {"a": {"kind": "K", "metadata": {"q": 1}, "spec": {"x": 1}, "y": 1}},
            {"a": {"kind": "K", "metadata": {"q": 1}, "spec": {}}},
            ["a.spec.x", "a.y"],
            id="an embedded resource",
        ),
    ],
)
def test_prune_drops_and_reports_unknown_fields(
    schema: Document, before: Document, after: Document, unknown: list[str]
) -> None:
    value = copy.deepcopy(before)
    assert prune(value, read_schema(schema), is_root=True) == unknown
    assert value == after


def test_prune_without_a_schema_keeps_only_type_and_metadata() -> None:
    value = {"kind": "K", "apiVersion": "v", "metadata": {"name": "a"}, "spec": {}}
    assert prune(value, None, is_root=True) == ["spec"]
    assert value == {"kind": "K", "apiVersion": "v", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("held", "after"),
    [
        pytest.param(TEXT, {}, id="dropped"),
        pytest.param({**TEXT, "nullable": True}, {"a": None}, id="allowed"),
        pytest.param({**TEXT, "default": "x"}, {"a": None}, id="left for the default"),
    ],
)
def test_prune_nulls_drops_nulls_that_are_neither_nullable_nor_defaulted(held: Document, after: Document) -> None:
    value: Any = {"l": [{"a": None}]}
    prune_nulls(value, read_schema(fields(l={"type": "array", "items": fields(a=held)})))
    assert value == {"l": [after]}


RED: Document = {"type": "string", "default": "red"}


@pytest.mark.parametrize(
    ("schema", "before", "after"),
    [
        pytest.param(fields(a=RED), {}, {"a": "red"}, id="absent"),
        pytest.param(fields(a=RED), {"a": "blue"}, {"a": "blue"}, id="set"),
        pytest.param(fields(a=RED), {"a": None}, {"a": "red"}, id="null"),
        pytest.param(fields(a={**RED, "nullable": True}), {"a": None}, {"a": None}, id="a null that is allowed"),
        pytest.param(fields(o=fields(a=RED)), {}, {}, id="parents are not created"),
        pytest.param(
            fields(o={**fields(a=RED), "default": {}}), {}, {"o": {"a": "red"}}, id="parents with a default are created"
        ),
        pytest.param(
            fields(l={"type": "array", "items": fields(a=RED)}),
            {"l": [{}, {"a": "x"}]},
            {"l": [{"a": "red"}, {"a": "x"}]},
            id="items",
        ),
        pytest.param(
            fields(m={"type": "object", "additionalProperties": fields(a=RED)}),
            {"m": {"k": {}}},
            {"m": {"k": {"a": "red"}}},
            id="entries",
        ),
    ],
)
def test_fill_defaults_sets_absent_and_null_fields(schema: Document, before: Any, after: Any) -> None:
    fill_defaults(before, read_schema(schema))
    assert before == after


def test_a_default_is_copied() -> None:
    schema = read_schema(fields(o={"type": "object", "default": {"list": []}}))
    one: Document = {}
    fill_defaults(one, schema)
    one["o"]["list"].append(1)
    other: Document = {}
    fill_defaults(other, schema)
    assert other == {"o": {"list": []}}


def test_the_size_of_the_defaults_of_one_object_is_limited() -> None:
    large = {"type": "string", "default": "x" * 100_000}
    schema = read_schema(fields(l={"type": "array", "items": fields(a=large)}))
    fits: Document = {"l": [{} for _ in range(30)]}
    fill_defaults(fits, schema)
    assert fits["l"][-1] == {"a": "x" * 100_000}
    with pytest.raises(DefaultsTooLargeError) as refused:
        fill_defaults({"l": [{} for _ in range(40)]}, schema)
    assert refused.value.code == 413


EMBEDDED: Document = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
SCHEMA = read_schema(fields(r=EMBEDDED, l={"type": "array", "items": EMBEDDED}))


def test_coerce_embedded_makes_metadata_canonical_and_reports_unknown_fields() -> None:
    value: Any = {"l": [{"kind": "K", "metadata": {"name": "a", "odd": 1, "creationTimestamp": None}}]}
    assert coerce_embedded(value, SCHEMA) == ["l[0].metadata.odd"]
    assert value == {"l": [{"kind": "K", "metadata": {"name": "a"}}]}


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        pytest.param({"kind": 1}, "r.kind: Invalid value: 1: must be a string", id="a kind that is no string"),
        pytest.param(
            {"metadata": {"labels": {"a": 1}}},
            'r.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field '
            "ObjectMeta.labels of type string",
            id="labels that are no strings",
        ),
    ],
)
def test_coerce_embedded_rejects_invalid_kinds_and_metadata(resource: Document, message: str) -> None:
    with pytest.raises(EmbeddedResourceError) as caught:
        coerce_embedded({"r": resource}, SCHEMA)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("resource", "paths"),
    [
        pytest.param({"kind": "K", "apiVersion": "v1"}, [], id="complete"),
        pytest.param({}, ["r.apiVersion", "r.kind"], id="empty"),
        pytest.param({"kind": "A b", "apiVersion": "a/b/c"}, ["r.kind", "r.apiVersion"], id="invalid"),
        pytest.param({"kind": "", "apiVersion": ""}, ["r.kind", "r.apiVersion"], id="empty strings"),
        pytest.param({"kind": "K", "apiVersion": "v1", "metadata": {"name": "a/b"}}, ["r.metadata.name"], id="a name"),
        pytest.param(
            {"kind": "K", "apiVersion": "v1", "metadata": {"labels": {"a b": ""}}}, ["r.metadata.labels"], id="labels"
        ),
    ],
)
def test_validate_embedded_reports_invalid_fields(resource: Document, paths: list[str]) -> None:
    assert [error.field for error in validate_embedded({"r": resource}, SCHEMA)] == paths
