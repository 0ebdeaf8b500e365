"""Which old value a new one stands for."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.custom.correlation import Pair, same_json
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields

MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": fields(k={"type": "string"}, v={"type": "integer"}),
}


def test_fields_go_by_name_and_items_of_maps_by_key() -> None:
    schema = read_schema(fields(l=MAP, s={"type": "array", "items": {"type": "string"}}))
    new = {"l": [{"k": "b", "v": 2}, {"k": "c"}], "s": ["x"], "n": 1}
    pair = Pair(new, {"l": [{"k": "a"}, {"k": "b", "v": 1}], "s": ["x"]}, schema)
    items = pair.field("l")
    assert items is not None
    found = items.item(0)
    assert found is not None
    assert found.old == {"k": "b", "v": 1}
    assert not found.is_same
    assert items.item(1) is None
    plain = pair.field("s")
    assert plain is not None
    assert plain.is_same
    assert plain.item(0) is None
    assert pair.field("n") is None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param({"a": [1]}, {"a": [1]}, True, id="the same"),
        pytest.param(1, True, False, id="true is not 1"),
        pytest.param(1, 1.0, False, id="1.0 is not 1"),
        pytest.param({"a": None}, {}, False, id="null is not absent"),
        pytest.param([1, 2], [2, 1], False, id="order counts"),
    ],
)
def test_equality(one: Any, other: Any, is_same: bool) -> None:
    assert same_json(one, other) is is_same
