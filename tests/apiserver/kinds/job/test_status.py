"""Tests of kinds.job.status."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.job.status import is_condition_true, validate_job_status
from tests.apiserver.core_documents import messages

EARLY, LATE = "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"
INDEXED: Document = {"completionMode": "Indexed", "completions": 5, "parallelism": 2, "backoffLimitPerIndex": 1}


def conditions(*kinds: str) -> list[Document]:
    return [{"type": kind, "status": "True"} for kind in kinds]


COMPLETE: Document = {
    "conditions": conditions("SuccessCriteriaMet", "Complete"),
    "startTime": EARLY,
    "completionTime": LATE,
}
FAILED: Document = {"conditions": conditions("FailureTarget", "Failed"), "startTime": EARLY}


def errors_of(new: Document, old: Document | None = None, spec: Document | None = None) -> list[str]:
    return messages(validate_job_status({"spec": spec or {}, "status": new}, {"spec": spec or {}, "status": old or {}}))


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        pytest.param({"active": 2, "ready": 1, "startTime": EARLY}, [], id="running"),
        pytest.param(COMPLETE, [], id="complete"),
        pytest.param(FAILED, [], id="failed"),
        pytest.param(
            {"active": -1}, ["status.active: Invalid value: -1: must be greater than or equal to 0"], id="below zero"
        ),
        pytest.param(
            {"active": 1, "ready": 2},
            ["status.ready: Invalid value: 2: cannot set more ready pods than active"],
            id="more ready than active",
        ),
        pytest.param(
            {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": ["", "a"]}},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "a"',
                'status.uncountedTerminatedPods.failed[0]: Invalid value: "": must not be empty',
                'status.uncountedTerminatedPods.failed[1]: Duplicate value: "a"',
            ],
            id="pods counted twice",
        ),
        pytest.param(
            {"completionTime": LATE},
            [
                f'status.completionTime: Invalid value: "{LATE}": '
                "cannot set completionTime when there is no Complete=True condition"
            ],
            id="completionTime without Complete",
        ),
        pytest.param(
            {**COMPLETE, "startTime": LATE, "completionTime": EARLY},
            [f'status.completionTime: Invalid value: "{EARLY}": must be equal to or after `startTime`'],
            id="completionTime before startTime",
        ),
        pytest.param(
            {"conditions": conditions("Failed"), "startTime": EARLY},
            [
                "status.conditions: Invalid value: "
                "cannot set Failed=True condition without the FailureTarget=true condition"
            ],
            id="Failed without FailureTarget",
        ),
        pytest.param(
            {**FAILED, "active": 1, "terminating": 2},
            [
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.terminating: Invalid value: 2: terminating>0 is invalid for finished job",
            ],
            id="finished with active pods",
        ),
        pytest.param(
            {"completedIndexes": "1"},
            [
                'status.completedIndexes: Invalid value: "1": '
                "cannot set non-empty completedIndexes when non-indexed completion mode"
            ],
            id="completedIndexes without Indexed",
        ),
        pytest.param(
            {"failedIndexes": "1"},
            [
                'status.failedIndexes: Invalid value: "1": '
                "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            ],
            id="failedIndexes without backoffLimitPerIndex",
        ),
    ],
)
def test_job_statuses_are_validated(status: Document, errors: list[str]) -> None:
    assert errors_of(status) == errors


@pytest.mark.parametrize(
    ("new", "old", "errors"),
    [
        pytest.param(
            {},
            FAILED,
            [
                "status.conditions: Invalid value: cannot disable the terminal Failed=True condition",
                "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
                "status.startTime: Invalid value: null: field is immutable for unsuspended job once set",
            ],
            id="terminal conditions removed",
        ),
        pytest.param(
            {"failed": 1},
            {"failed": 2},
            ["status.failed: Invalid value: 1: cannot decrease the failed counter"],
            id="a lower counter",
        ),
        pytest.param(
            {**COMPLETE, "completionTime": "2020-01-03T00:00:00Z"},
            COMPLETE,
            ['status.completionTime: Invalid value: "2020-01-03T00:00:00Z": field is immutable'],
            id="another completionTime",
        ),
        pytest.param(
            {"startTime": LATE},
            {"startTime": EARLY},
            [f'status.startTime: Invalid value: "{LATE}": field is immutable for unsuspended job once set'],
            id="another startTime",
        ),
        pytest.param(
            {"startTime": LATE, "conditions": [{"type": "Suspended", "status": "False"}]},
            {"startTime": EARLY, "conditions": conditions("Suspended")},
            [],
            id="another startTime after a suspension",
        ),
    ],
)
def test_updates_of_job_statuses_are_validated(new: Document, old: Document, errors: list[str]) -> None:
    assert errors_of(new, old) == errors


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        pytest.param({"completedIndexes": "0,2", "failedIndexes": "1"}, [], id="completed and failed indexes"),
        pytest.param(
            {"completedIndexes": "9"},
            ['status.completedIndexes: Invalid value: "9": error parsing completedIndexes: too large index: "9"'],
            id="an index that is too large",
        ),
        pytest.param(
            {"completedIndexes": "1-3", "failedIndexes": "2"},
            ['status.failedIndexes: Invalid value: "2": failedIndexes and completedIndexes overlap at index: 2'],
            id="an index that is completed and failed",
        ),
    ],
)
def test_indexes_in_job_statuses_are_validated(status: Document, errors: list[str]) -> None:
    assert errors_of(status, spec=INDEXED) == errors


def test_an_invalid_status_can_still_be_updated() -> None:
    wrong: Document = {"conditions": conditions("Complete")}
    assert errors_of({**wrong, "succeeded": 1}, wrong) == []


def test_is_condition_true_reads_conditions() -> None:
    assert is_condition_true({"conditions": conditions("Failed")}, "Failed")
    assert not is_condition_true({}, "Failed")
