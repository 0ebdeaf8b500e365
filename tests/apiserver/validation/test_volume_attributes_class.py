"""Classes of volume attributes name a driver and parameters, and never change."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.volume_attributes_class import (
    volume_attributes_class_faults,
    volume_attributes_class_update_faults,
)
from tests.apiserver.field_errors import messages

GOOD = {"driverName": "csi.example.com", "parameters": {"iops": "1"}}


@pytest.mark.parametrize(
    ("obj", "faults"),
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
def test_what_is_wrong_with_a_class(obj: dict[str, Any], faults: list[str]) -> None:
    assert messages(volume_attributes_class_faults(obj)) == faults


def test_nothing_changes() -> None:
    assert volume_attributes_class_update_faults(GOOD, GOOD) == []
    assert messages(volume_attributes_class_update_faults({"driverName": "x", "parameters": {}}, GOOD)) == [
        "driverName: Forbidden: updates to driverName are forbidden.",
        "parameters: Forbidden: updates to parameters are forbidden.",
    ]
