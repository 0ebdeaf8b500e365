"""A text inside an object is JSON, and an object if one is wanted."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation.json_text import json_fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("{}", "", id="an object"),
        pytest.param(" null", "", id="null is an object that is not there"),
        pytest.param("x", "invalid character 'x' looking for beginning of value", id="no JSON"),
        pytest.param("", "unexpected end of JSON input", id="nothing"),
        pytest.param("[]", "json: cannot unmarshal array into Go value of type v1.Thing", id="a list"),
        pytest.param("5", "json: cannot unmarshal number into Go value of type v1.Thing", id="a number"),
        pytest.param('"a"', "json: cannot unmarshal string into Go value of type v1.Thing", id="a text"),
        pytest.param("true", "json: cannot unmarshal bool into Go value of type v1.Thing", id="a flag"),
    ],
)
def test_a_text_that_should_be_an_object(text: str, fault: str) -> None:
    assert json_fault(text.encode(), "v1.Thing") == fault
    assert json_fault(b"[]") == ""
