"""Tests of kinds.job.policies."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.job.policies import (
    IndexesError,
    count_indexes,
    first_overlap,
    validate_failure_policy,
    validate_replacement_policy,
    validate_success_policy,
)
from tests.apiserver.core_documents import messages


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("", 0, id="none"),
        pytest.param("3", 1, id="one"),
        pytest.param("0,2-4,6", 5, id="some, and a range"),
    ],
)
def test_count_indexes_counts_numbers_and_ranges(text: str, count: int) -> None:
    assert count_indexes(text, 10) == count


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("10", 'too large index: "10"', id="an index that is too large"),
        pytest.param("a", 'cannot convert string to integer for index: "a"', id="no number"),
        pytest.param("1,,2", 'cannot convert string to integer for index: ""', id="a gap"),
        pytest.param("3-1", "non-increasing order, previous: 3, current: 1", id="a range backwards"),
        pytest.param("2,2", "non-increasing order, previous: 2, current: 2", id="twice the same"),
        pytest.param(
            "1-2-3",
            'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts '
            "separated by '-'",
            id="two ranges in one",
        ),
    ],
)
def test_count_indexes_rejects_invalid_text(text: str, error: str) -> None:
    with pytest.raises(IndexesError) as caught:
        count_indexes(text, 10)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        pytest.param("0,2", "1,3", None, id="alternating"),
        pytest.param("1-4", "3", 3, id="inside of a range"),
        pytest.param("0,x,5", "5", 5, id="after an invalid part"),
        pytest.param("", "1", None, id="empty"),
    ],
)
def test_first_overlap_returns_the_first_common_index(one: str, other: str, index: int | None) -> None:
    assert first_overlap(one, other, 10) == index


POD: Document = {"spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}}


def on_exit(**changes: object) -> Document:
    return {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1], **changes}}


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        pytest.param(on_exit(), [], id="an exit code"),
        pytest.param(on_exit(containerName="i"), [], id="an exit code of one container"),
        pytest.param(
            on_exit(containerName="z"),
            [
                'p.rules[0].onExitCodes.containerName: Invalid value: "z": '
                "must be one of the container or initContainer names in the pod template"
            ],
            id="an exit code of an unknown container",
        ),
        pytest.param(
            on_exit(values=[0]),
            ["p.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"],
            id="exit code 0",
        ),
        pytest.param(
            on_exit(values=[3, 1, 1]),
            [
                "p.rules[0].onExitCodes.values[2]: Duplicate value: 1",
                "p.rules[0].onExitCodes.values: Invalid value: [3,1,1]: must be ordered",
            ],
            id="unsorted exit codes",
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
            id="FailIndex without backoffLimitPerIndex",
        ),
        pytest.param(
            {"action": "Ignore"},
            ["p.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"],
            id="an empty rule",
        ),
        pytest.param(
            {**on_exit(), "onPodConditions": [{"type": "Ready", "status": "True"}]},
            ["p.rules[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"],
            id="exit codes and conditions",
        ),
    ],
)
def test_pod_failure_policies_are_validated(rule: Document, errors: list[str]) -> None:
    spec = {"template": POD, "podFailurePolicy": {"rules": [rule]}}
    assert messages(validate_failure_policy(spec, "p")) == errors


def test_a_pod_failure_policy_has_at_most_20_rules() -> None:
    spec = {"template": POD, "podFailurePolicy": {"rules": [on_exit()] * 21}}
    assert messages(validate_failure_policy(spec, "p")) == ["p.rules: Too many: 21: must have at most 20 items"]


@pytest.mark.parametrize(
    ("rules", "errors"),
    [
        pytest.param([{"succeededCount": 2}], [], id="a count"),
        pytest.param([{"succeededIndexes": "0,2-3"}], [], id="indexes"),
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
            id="a count above the completions",
        ),
        pytest.param(
            [{"succeededIndexes": "1-2", "succeededCount": 3}],
            [
                "p.rules[0].succeededCount: Invalid value: 3: "
                "must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)"
            ],
            id="a count above the number of indexes",
        ),
        pytest.param(
            [{"succeededIndexes": "7"}],
            ['p.rules[0].succeededIndexes: Invalid value: "7": error parsing succeededIndexes: too large index: "7"'],
            id="an unknown index",
        ),
    ],
)
def test_success_policies_are_validated(rules: list[Document], errors: list[str]) -> None:
    assert messages(validate_success_policy({"completions": 5, "successPolicy": {"rules": rules}}, "p")) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"podReplacementPolicy": "TerminatingOrFailed"}, [], id="TerminatingOrFailed"),
        pytest.param(
            {"podReplacementPolicy": "X"},
            ['p: Unsupported value: "X": supported values: "Failed", "TerminatingOrFailed"'],
            id="unknown",
        ),
        pytest.param(
            {"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": {}},
            ['p: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
            id="TerminatingOrFailed with a failure policy",
        ),
    ],
)
def test_pod_replacement_policies_are_validated(spec: Document, errors: list[str]) -> None:
    assert messages(validate_replacement_policy(spec, "p")) == errors
