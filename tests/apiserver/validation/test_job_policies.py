"""What is wrong with the policies of jobs."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.job_policies import (
    failure_policy_faults,
    replacement_policy_faults,
    success_policy_faults,
)
from tests.apiserver.field_errors import messages

POD: Document = {"spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}}


def on_exit(**changes: object) -> Document:
    return {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1], **changes}}


@pytest.mark.parametrize(
    ("rule", "faults"),
    [
        pytest.param(on_exit(), [], id="an exit code"),
        pytest.param(on_exit(containerName="i"), [], id="an exit code of one container"),
        pytest.param(
            on_exit(containerName="z"),
            [
                'p.rules[0].onExitCodes.containerName: Invalid value: "z": '
                "must be one of the container or initContainer names in the pod template"
            ],
            id="an exit code of nobody",
        ),
        pytest.param(
            on_exit(values=[0]),
            ["p.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"],
            id="success is no failure",
        ),
        pytest.param(
            on_exit(values=[3, 1, 1]),
            [
                "p.rules[0].onExitCodes.values[2]: Duplicate value: 1",
                "p.rules[0].onExitCodes.values: Invalid value: [3,1,1]: must be ordered",
            ],
            id="codes in disorder",
        ),
        pytest.param(
            on_exit(operator=""),
            ['p.rules[0].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]'],
            id="no operator",
        ),
        pytest.param(
            {"action": "X", "onPodConditions": [{"type": "Ready", "status": "True"}]},
            ['p.rules[0].action: Unsupported value: "X": supported values: "Count", "FailIndex", "FailJob", "Ignore"'],
            id="an unknown action",
        ),
        pytest.param(
            {"action": "FailIndex", "onPodConditions": [{"type": "Ready", "status": "True"}]},
            ['p.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set'],
            id="an index fails, but none is counted",
        ),
        pytest.param(
            {"action": "Ignore"},
            ["p.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"],
            id="a rule about nothing",
        ),
        pytest.param(
            {**on_exit(), "onPodConditions": [{"type": "Ready", "status": "True"}]},
            ["p.rules[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"],
            id="a rule about two things",
        ),
    ],
)
def test_failure_policies(rule: Document, faults: list[str]) -> None:
    spec = {"template": POD, "podFailurePolicy": {"rules": [rule]}}
    assert messages(failure_policy_faults(spec, "p")) == faults


def test_a_failure_policy_has_few_rules() -> None:
    spec = {"template": POD, "podFailurePolicy": {"rules": [on_exit()] * 21}}
    assert messages(failure_policy_faults(spec, "p")) == ["p.rules: Too many: 21: must have at most 20 items"]


@pytest.mark.parametrize(
    ("rules", "faults"),
    [
        pytest.param([{"succeededCount": 2}], [], id="so many"),
        pytest.param([{"succeededIndexes": "0,2-3"}], [], id="these"),
        pytest.param(
            [],
            ["p.rules: Required value: at least one rules must be specified when the successPolicy is specified"],
            id="no rule",
        ),
        pytest.param(
            [{}],
            ["p.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"],
            id="an empty rule",
        ),
        pytest.param(
            [{"succeededCount": 9}],
            [
                "p.rules[0].succeededCount: Invalid value: 9: "
                "must be less than or equal to 5 (the number of specified completions)"
            ],
            id="more than there are",
        ),
        pytest.param(
            [{"succeededIndexes": "1-2", "succeededCount": 3}],
            [
                "p.rules[0].succeededCount: Invalid value: 3: "
                "must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)"
            ],
            id="more than are named",
        ),
        pytest.param(
            [{"succeededIndexes": "7"}],
            ['p.rules[0].succeededIndexes: Invalid value: "7": error parsing succeededIndexes: too large index: "7"'],
            id="an index that is not there",
        ),
    ],
)
def test_success_policies(rules: list[Document], faults: list[str]) -> None:
    assert messages(success_policy_faults({"completions": 5, "successPolicy": {"rules": rules}}, "p")) == faults


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"podReplacementPolicy": "TerminatingOrFailed"}, [], id="early"),
        pytest.param(
            {"podReplacementPolicy": "X"},
            ['p: Unsupported value: "X": supported values: "Failed", "TerminatingOrFailed"'],
            id="unknown",
        ),
        pytest.param(
            {"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": {}},
            ['p: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
            id="early, although failures are judged",
        ),
    ],
)
def test_replacement_policies(spec: Document, faults: list[str]) -> None:
    assert messages(replacement_policy_faults(spec, "p")) == faults
