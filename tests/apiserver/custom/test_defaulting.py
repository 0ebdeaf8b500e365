"""Defaults are filled in where their parent is."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.defaulting import fill_defaults
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields

RED: Document = {"type": "string", "default": "red"}


@pytest.mark.parametrize(
    ("schema", "before", "after"),
    [
        pytest.param(fields(a=RED), {}, {"a": "red"}, id="absent"),
        pytest.param(fields(a=RED), {"a": "blue"}, {"a": "blue"}, id="said"),
        pytest.param(fields(a=RED), {"a": None}, {"a": "red"}, id="null"),
        pytest.param(fields(a={**RED, "nullable": True}), {"a": None}, {"a": None}, id="a null that is allowed"),
        pytest.param(fields(o=fields(a=RED)), {}, {}, id="no parent is made"),
        pytest.param(fields(o={**fields(a=RED), "default": {}}), {}, {"o": {"a": "red"}}, id="unless it is a default"),
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
def test_defaults(schema: Document, before: Any, after: Any) -> None:
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
