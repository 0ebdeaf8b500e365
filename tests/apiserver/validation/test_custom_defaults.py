"""Defaults of schemas."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.validation.custom_defaults import default_faults
from tests.apiserver.custom.definitions import fields, ruled

NUMBER: Document = {"type": "integer"}
INSIDE: Document = {
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
            {**INSIDE, "default": {"kind": 1}}, ["default.kind: Invalid value: 1: must be a string"], id="a resource"
        ),
        pytest.param(
            {"type": "array", "items": {**NUMBER, "default": "x"}},
            ['items.default: Invalid value: "string"'],
            id="of items",
        ),
        pytest.param(
            {**INSIDE, "properties": {"metadata": fields(name={"type": "string", "default": "a/b"})}},
            [
                'properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: '
                "metadata.name"
            ],
            id="of metadata inside",
        ),
    ],
)
def test_defaults(held: Document, found: list[str]) -> None:
    faults = default_faults(read_schema(fields(a=held)), "s", needs_pruned=True)
    got = [fault.message.removeprefix("s.properties[a].") for fault in faults]
    assert len(got) == len(found)
    for text, wanted in zip(got, found, strict=True):
        assert text.startswith(wanted.partition(": a.default")[0])
