"""Conditions to wait for, and conditions that end the wait, come together and apart."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation.device_conditions import binding_conditions_faults
from tests.apiserver.field_errors import messages


@pytest.mark.parametrize(
    ("awaited", "failures", "faults"),
    [
        pytest.param([], [], [], id="none"),
        pytest.param(["a"], ["b"], [], id="both"),
        pytest.param(
            ["a"],
            [],
            [
                "d.bindingFailureConditions: Invalid value: null: "
                "bindingFailureConditions are required to use bindingConditions"
            ],
            id="an endless wait",
        ),
        pytest.param(
            [],
            ["a"],
            [
                "d.bindingConditions: Invalid value: null: "
                "bindingConditions are required to use bindingFailureConditions"
            ],
            id="a wait for nothing",
        ),
        pytest.param(
            ["a", "a"],
            ["a", "b", "b"],
            [
                'd.bindingConditions[1]: Duplicate value: "a"',
                'd.bindingFailureConditions[0]: Invalid value: "a": '
                "bindingFailureConditions must not overlap with bindingConditions",
                'd.bindingFailureConditions[2]: Duplicate value: "b"',
            ],
            id="twice, and of both sorts",
        ),
        pytest.param(
            list("abcde"), ["z"], ["d.bindingConditions: Too many: 5: must have at most 4 items"], id="too many"
        ),
    ],
)
def test_what_is_wrong_with_conditions(awaited: list[str], failures: list[str], faults: list[str]) -> None:
    holder = {"bindingConditions": awaited, "bindingFailureConditions": failures}
    assert messages(binding_conditions_faults(holder, "d")) == faults
