"""The scale subresource of custom objects."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.custom.scaling import scale_rules, validate_actual, validate_wanted
from mooring.apiserver.custom.version import ScalePaths
from mooring.client.errors import BadRequestError, ServerError

PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")
KIND = Kind("example.com/v1", "Widget", "widgets")
METADATA = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"}}


def widget(spec: Document | None = None, status: Document | None = None) -> Document:
    return {"metadata": METADATA, "spec": spec or {}, "status": status or {}}


def test_scale_rules_read_and_write_the_replicas() -> None:
    rules = scale_rules(PATHS)
    assert rules.shown is not None
    shown = rules.shown(KIND, widget({"replicas": 2}, {"replicas": 1, "selector": "a=b"}))
    assert shown == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a=b"},
    }
    scaled = rules.scaled(widget({"x": 1}), {"metadata": {"resourceVersion": "9"}, "spec": {"replicas": 5}})
    assert scaled["spec"] == {"x": 1, "replicas": 5}
    assert scaled["metadata"]["resourceVersion"] == "9"
    assert rules.replicas_path == ("f:spec", "f:replicas")


def test_absent_replicas_are_errors() -> None:
    rules = scale_rules(PATHS)
    assert rules.shown is not None
    with pytest.raises(ServerError, match=r'the spec replicas field ".spec.replicas" does not exist'):
        rules.shown(KIND, widget())
    without_replicas = rules.scale_of(KIND, widget())
    with pytest.raises(BadRequestError, match="cannot be empty"):
        rules.scaled(widget(), without_replicas)


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        pytest.param(None, "", id="null"),
        pytest.param(3, "", id="three"),
        pytest.param(-1, ".spec.replicas: Invalid value: -1: should be a non-negative integer", id="too few"),
        pytest.param(
            2**31,
            ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
            id="too many",
        ),
    ],
)
def test_replicas_in_the_spec_are_validated(replicas: Any, message: str) -> None:
    spec = {} if replicas is None else {"replicas": replicas}
    assert [error.message for error in validate_wanted(widget(spec), PATHS)] == ([message] if message else [])


def test_replicas_and_selector_in_the_status_are_validated() -> None:
    errors = validate_actual(widget(status={"replicas": -1, "selector": 5}), PATHS)
    assert [error.message for error in errors] == [
        ".status.replicas: Invalid value: -1: should be a non-negative integer",
        '.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string',
    ]
