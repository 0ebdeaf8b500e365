"""A custom object as CEL sees it."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.cel.values import Duration, Timestamp
from mooring.api.document import Document
from mooring.apiserver.custom.rule_values import cel_value
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields

TEXT: Document = {"type": "string"}


@pytest.mark.parametrize(
    ("raw", "value", "seen"),
    [
        pytest.param({"type": "number"}, 1, 1.0, id="a number is a double"),
        pytest.param({"type": "integer"}, 3.0, 3, id="a whole number is none"),
        pytest.param({**TEXT, "format": "byte"}, "YWI=", b"ab", id="bytes"),
        pytest.param({**TEXT, "format": "duration"}, "1m", Duration(60 * 10**9), id="a duration"),
        pytest.param({**TEXT, "format": "date"}, "1970-01-02", Timestamp(86400 * 10**9), id="a day"),
        pytest.param({**TEXT, "format": "date-time"}, "never", "never", id="what cannot be read stays"),
        pytest.param(fields(**{"a-b": TEXT}), {"a-b": "x", "z": 1}, {"a__dash__b": "x"}, id="fields that are known"),
        pytest.param({"type": "object", "additionalProperties": TEXT}, {"a-b": "x"}, {"a-b": "x"}, id="a map"),
        pytest.param({"type": "array", "items": {"type": "number"}}, [1, 2], [1.0, 2.0], id="a list"),
        pytest.param({"x-kubernetes-int-or-string": True}, "5%", "5%", id="number or text"),
    ],
)
def test_values(raw: Document, value: Any, seen: object) -> None:
    found = cel_value(value, read_schema(raw))
    assert found == seen
    assert type(found) is type(seen)


def test_the_root_has_its_names() -> None:
    whole = {"kind": "K", "apiVersion": "v", "metadata": {"name": "a", "labels": {}}, "spec": {"x": 1}}
    seen = cel_value(whole, read_schema(fields(spec=fields(x={"type": "integer"}))), is_root=True)
    assert seen == {"kind": "K", "apiVersion": "v", "metadata": {"name": "a"}, "spec": {"x": 1}}
