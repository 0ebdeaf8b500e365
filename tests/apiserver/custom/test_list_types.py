"""Sets and maps hold nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.custom.list_types import validate_list_type
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields

SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
SCHEMA = read_schema(
    fields(
        s=SET,
        one={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": fields(t=SET),
        },
        two={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b", "a"]},
        m={"type": "object", "additionalProperties": SET},
    )
)


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        pytest.param({"s": ["a", "b"]}, [], id="all different"),
        pytest.param({"s": ["a", "a", "a"]}, ['s[1]: Duplicate value: "a"'], id="the third one is not told"),
        pytest.param({"one": [{"k": 1}, {"k": 1}]}, ['one[1]: Duplicate value: {"k":1}'], id="one key"),
        pytest.param({"one": [{}, {}]}, ["one[1]: Duplicate value: {}"], id="no key"),
        pytest.param(
            {"two": [{"a": 1, "b": 2, "c": 3}, {"b": 2, "a": 1}]}, ['two[1]: Duplicate value: {"a":1,"b":2}'], id="keys"
        ),
        pytest.param(
            {"one": [1]}, ["one[0]: Invalid value: 1: must be an object for an array of list-type map"], id="no object"
        ),
        pytest.param(
            {"one": [{"k": 1, "t": ["x", "x"]}]}, ['one[0].t[1]: Duplicate value: "x"'], id="inside of an item"
        ),
        pytest.param({"m": {"k": ["x", "x"]}}, ['m[k][1]: Duplicate value: "x"'], id="inside of a map"),
    ],
)
def test_lists(value: Any, messages: list[str]) -> None:
    assert [error.message for error in validate_list_type(value, SCHEMA)] == messages
