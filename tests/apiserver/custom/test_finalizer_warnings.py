"""Odd finalizers are warned of."""

from __future__ import annotations

import pytest

from mooring.apiserver.custom.finalizer_warnings import finalizer_warnings

PREFER = "to avoid accidental conflicts with other finalizer writers"


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        pytest.param("example.com/x", [], id="qualified"),
        pytest.param("orphan", [], id="a standard one"),
        pytest.param(
            "foo", [f'metadata.finalizers: "foo": prefer a domain-qualified finalizer name {PREFER}'], id="plain"
        ),
        pytest.param(
            "foo.bar",
            [f'metadata.finalizers: "foo.bar": prefer a domain-qualified finalizer name including a path (/) {PREFER}'],
            id="a domain alone",
        ),
    ],
)
def test_warnings(name: str, texts: list[str]) -> None:
    assert finalizer_warnings({"finalizers": [name]}, None) == texts
    assert finalizer_warnings({"finalizers": [name]}, {"finalizers": [name]}) == []
