"""Resources inside of resources have metadata of their own."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.metadata import EmbeddedResourceError, coerce_embedded, validate_embedded
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields

EMBEDDED: Document = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
SCHEMA = read_schema(fields(r=EMBEDDED, l={"type": "array", "items": EMBEDDED}))


def test_metadata_is_canonical_and_unknown_fields_are_reported() -> None:
    value: Any = {"l": [{"kind": "K", "metadata": {"name": "a", "odd": 1, "creationTimestamp": None}}]}
    assert coerce_embedded(value, SCHEMA) == ["l[0].metadata.odd"]
    assert value == {"l": [{"kind": "K", "metadata": {"name": "a"}}]}


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        pytest.param({"kind": 1}, "r.kind: Invalid value: 1: must be a string", id="a kind that is no text"),
        pytest.param(
            {"metadata": {"labels": {"a": 1}}},
            'r.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field '
            "ObjectMeta.labels of type string",
            id="labels that are no texts",
        ),
    ],
)
def test_metadata_that_cannot_be_read(resource: Document, message: str) -> None:
    with pytest.raises(EmbeddedResourceError) as caught:
        coerce_embedded({"r": resource}, SCHEMA)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("resource", "paths"),
    [
        pytest.param({"kind": "K", "apiVersion": "v1"}, [], id="complete"),
        pytest.param({}, ["r.apiVersion", "r.kind"], id="empty"),
        pytest.param({"kind": "A b", "apiVersion": "a/b/c"}, ["r.kind", "r.apiVersion"], id="odd"),
        pytest.param({"kind": "", "apiVersion": ""}, ["r.kind", "r.apiVersion"], id="empty texts"),
        pytest.param({"kind": "K", "apiVersion": "v1", "metadata": {"name": "a/b"}}, ["r.metadata.name"], id="a name"),
        pytest.param(
            {"kind": "K", "apiVersion": "v1", "metadata": {"labels": {"a b": ""}}}, ["r.metadata.labels"], id="labels"
        ),
    ],
)
def test_errors_of_an_embedded_resource(resource: Document, paths: list[str]) -> None:
    assert [error.field for error in validate_embedded({"r": resource}, SCHEMA)] == paths
