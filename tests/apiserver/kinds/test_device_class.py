"""Tests of kinds.device_class."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import DEVICE_CLASS
from mooring.apiserver.kinds.device_class import validate_device_class
from tests.apiserver.core_documents import changed, created, document
from tests.apiserver.field_errors import messages

LARGE = {"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="every device"),
        pytest.param({"extendedResourceName": "example.com/gpu"}, [], id="an extended resource"),
        pytest.param(
            {"extendedResourceName": "gpu"},
            ['spec.extendedResourceName: Invalid value: "gpu": must be a valid extended resource name'],
            id="one of Kubernetes' own",
        ),
        pytest.param({"selectors": [{}]}, ["spec.selectors[0].cel: Required value"], id="no selector"),
        pytest.param({"config": [{}] * 33}, ["spec.config: Too many: 33: must have at most 32 items"], id="too many"),
        pytest.param(
            {"config": [LARGE]},
            ["spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"],
            id="too large",
        ),
    ],
)
def test_what_is_wrong_with_a_class(spec: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_device_class(spec, None, "spec")) == errors


def test_what_was_stored_stays() -> None:
    assert validate_device_class({"config": [LARGE]}, {"config": [LARGE]}, "spec") == []
    assert len(validate_device_class({"config": [LARGE, LARGE]}, {"config": [LARGE]}, "spec")) == 2


def test_a_prefix_is_not_validated_but_the_name_is() -> None:
    made = document(DEVICE_CLASS, {"name": "A_x", "generateName": "A_"})
    (error,) = created(DEVICE_CLASS, made)
    assert error.startswith('metadata.name: Invalid value: "A_x"')


def test_changes_are_counted() -> None:
    old = document(DEVICE_CLASS, {"generation": 1})
    spec = {"extendedResourceName": "a.b/c"}
    errors, new = changed(DEVICE_CLASS, old, spec=spec)
    assert (errors, new["metadata"]["generation"]) == ([], 2)
    assert changed(DEVICE_CLASS, new, spec=spec)[1]["metadata"]["generation"] == 2
    assert changed(DEVICE_CLASS, old, spec={"selectors": [{}]})[0] == ["spec.selectors[0].cel: Required value"]
