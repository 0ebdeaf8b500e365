"""Tests of kinds.volume_attributes_class."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import VOLUME_ATTRIBUTES_CLASS
from mooring.apiserver.kinds.volume_attributes_class import (
    validate_volume_attributes_class,
    validate_volume_attributes_class_update,
)
from tests.apiserver.core_documents import changed, created, document
from tests.apiserver.field_errors import messages

GOOD = {"driverName": "csi.example.com", "parameters": {"iops": "1"}}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        pytest.param(GOOD, [], id="a driver and a parameter"),
        pytest.param({**GOOD, "driverName": ""}, ["driverName: Required value"], id="no driver"),
        pytest.param(
            {"driverName": "a"},
            ["parameters: Required value: must contain at least one key/value pair"],
            id="no parameters",
        ),
    ],
)
def test_what_is_wrong_with_a_class(obj: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_volume_attributes_class(obj)) == errors


def test_nothing_changes() -> None:
    assert validate_volume_attributes_class_update(GOOD, GOOD) == []
    assert messages(validate_volume_attributes_class_update({"driverName": "x", "parameters": {}}, GOOD)) == [
        "driverName: Forbidden: updates to driverName are forbidden.",
        "parameters: Forbidden: updates to parameters are forbidden.",
    ]


def test_a_change_is_forbidden_before_it_is_validated() -> None:
    made = document(VOLUME_ATTRIBUTES_CLASS, driverName="a", parameters={"b": "c"})
    assert created(VOLUME_ATTRIBUTES_CLASS, made) == []
    errors, _ = changed(VOLUME_ATTRIBUTES_CLASS, made, parameters={})
    assert errors == [
        "parameters: Forbidden: updates to parameters are forbidden.",
        "parameters: Required value: must contain at least one key/value pair",
    ]
