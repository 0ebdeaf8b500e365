"""A shared capacity says what can be taken of it, and what is taken by who says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.device_capacity import shared_capacity_faults, whole_capacity_faults
from tests.apiserver.field_errors import messages

UNFIT = "default value is not valid according to the requestPolicy"


@pytest.mark.parametrize(
    ("policy", "faults"),
    [
        pytest.param({}, [], id="anything"),
        pytest.param({"default": "1"}, [], id="anything, and one for who says nothing"),
        pytest.param({"default": "1", "validValues": ["1", "2"]}, [], id="some amounts"),
        pytest.param(
            {"validValues": ["1"]}, [".default: Required value: required when validValues is defined"], id="no default"
        ),
        pytest.param(
            {"default": "3", "validValues": ["1"]}, [f'.validValues: Invalid value: "3": {UNFIT}'], id="not this one"
        ),
        pytest.param(
            {"default": "1", "validValues": ["2", "1"]},
            ['.validValues[1]: Invalid value: "1": values must be sorted in ascending order'],
            id="in disorder",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "1"]}, ['.validValues[1]: Duplicate value: "1"'], id="one twice"
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "11"]},
            ['.validValues[1]: Invalid value: "11": option is larger than capacity value: 10'],
            id="more than there is",
        ),
        pytest.param(
            {"default": "1", "validValues": [str(number) for number in range(1, 12)]},
            [
                ".validValues: Too many: 11: must have at most 10 items",
                f'.validValues: Invalid value: "1": {UNFIT}',
            ],
            id="too many to look for the default",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}},
            [
                ': Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" '
                "at the same time"
            ],
            id="amounts and a range",
        ),
        pytest.param({"default": "4", "validRange": {"min": "2", "max": "8", "step": "2"}}, [], id="a range"),
        pytest.param(
            {"default": "1", "validRange": {}},
            [".validRange.min: Required value: required when validRange is defined"],
            id="a range without a beginning",
        ),
        pytest.param(
            {"default": "5", "validRange": {"min": "2", "max": "1"}},
            [
                '.validRange.max: Invalid value: "2": min is larger than max: 1',
                '.validRange.max: Invalid value: "5": default is more than max: 1',
            ],
            id="a range upside down",
        ),
        pytest.param(
            {"default": "1", "validRange": {"min": "11"}},
            [
                '.validRange.min: Invalid value: "11": min is larger than capacity value: 10',
                '.validRange.min: Invalid value: "1": default is less than min: 11',
            ],
            id="a range beyond what there is",
        ),
        pytest.param(
            {"default": "3", "validRange": {"min": "2", "step": "20"}},
            [
                '.validRange.step: Invalid value: "20": one step 22 is larger than capacity value: 10',
                '.validRange.step: Invalid value: "3": value is not a multiple of a given step (20) from (2)',
            ],
            id="a large step",
        ),
        pytest.param({"default": "3", "validRange": {"min": "2", "step": "0"}}, [], id="a step of nothing"),
    ],
)
def test_what_is_wrong_with_a_policy(policy: dict[str, Any], faults: list[str]) -> None:
    capacity = {"value": "10", "requestPolicy": policy}
    assert messages(shared_capacity_faults(capacity, "c")) == [f"c.requestPolicy{fault}" for fault in faults]


def test_only_what_is_shared_needs_a_policy() -> None:
    assert whole_capacity_faults({"value": "10"}, "c") == []
    assert messages(whole_capacity_faults({"value": "10", "requestPolicy": {}}, "c")) == [
        "c.requestPolicy: Forbidden: allowMultipleAllocations must be true"
    ]
