"""YAML as Go writes it."""

from __future__ import annotations

import pytest

from mooring.apiserver.wire.yaml_writing import written_yaml


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("web", "web", id="a text"),
        pytest.param("7", '"7"', id="a text of digits"),
        pytest.param("1e3", '"1e3"', id="a text that Go takes for a number"),
        pytest.param("", '""', id="an empty text"),
        pytest.param("y", '"y"', id="yes, in short"),
        pytest.param("null", '"null"', id="nothing, as a text"),
        pytest.param("2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"', id="a time"),
        pytest.param("a: b", "'a: b'", id="a text with a colon"),
        pytest.param("a\nb\n", "|\n  a\n  b", id="lines"),
        pytest.param(7, "7", id="a number"),
        pytest.param(None, "null", id="nothing"),
        pytest.param([], "[]", id="an empty list"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert written_yaml({"key": value}) == f"key: {text}\n".encode()


def test_what_stands_in_two_places_is_written_twice() -> None:
    shared = {"version": "v1"}
    assert written_yaml({"preferred": shared, "all": [shared]}) == b"all:\n- version: v1\npreferred:\n  version: v1\n"
