"""Field sets that clients wrote by hand."""

from __future__ import annotations

import pytest

from mooring.apiserver.apply.fields_v1 import read_fields
from mooring.apiserver.apply.path_elements import ElementError


@pytest.mark.parametrize(
    ("json", "found"),
    [
        pytest.param(None, {}, id="nothing"),
        pytest.param({}, {}, id="an empty set"),
        pytest.param({"f:b": {}, "f:a": {}}, {"f:a": {}, "f:b": {}}, id="sorted"),
        pytest.param({"f:a": {".": {}}}, {"f:a": {}}, id="a dot alone says nothing new"),
        pytest.param({"f:a": None}, {"f:a": {}}, id="null is an end"),
        pytest.param({"x:later": {"f:a": {}}, "f:b": {}}, {"f:b": {}}, id="what nobody knows is dropped"),
        pytest.param({".": {}, "f:a": {}}, {"f:a": {}}, id="nobody owns the whole object"),
        pytest.param({"f:a": {'k:{"y":1,"x":2}': {}}}, {"f:a": {'k:{"x":2,"y":1}': {}}}, id="keys sorted"),
    ],
)
def test_is_read(json: object, found: object) -> None:
    assert str(read_fields(json)) == str(found)


@pytest.mark.parametrize("json", ["text", [], {"f:a": "text"}, {"data": {}}])
def test_is_rejected(json: object) -> None:
    with pytest.raises(ElementError):
        read_fields(json)
