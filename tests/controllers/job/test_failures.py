"""Failure policies and success policies of Jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.well_known import JOB_INDEX_FAILURES, JOB_INDEX_IGNORED_FAILURES
from mooring.controllers.job.failures import (
    NO_FAILURES,
    FailurePolicyResult,
    FailureRecord,
    failure_annotations,
    finished_at_s,
    is_failed,
    match_failure_policy,
    met_success_rule,
    next_record,
    remaining_for_index_s,
    remaining_s,
)
from mooring.controllers.job.indexes import parse_indexes
from tests.controllers.batch_builders import job_pod, job_view
from tests.controllers.builders import NOW_S


def exit_codes(action: str, operator: str, *values: int, **more: str) -> Document:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


def pod_condition(action: str, type: str) -> Document:
    return {"action": action, "onPodConditions": [{"type": type, "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "pod", "result"),
    [
        pytest.param(None, job_pod("p", exit_code=1), FailurePolicyResult(), id="without a policy it counts"),
        pytest.param(
            [exit_codes("Ignore", "In", 42)], job_pod("p", exit_code=1), FailurePolicyResult(), id="no rule matches"
        ),
        pytest.param(
            [exit_codes("Ignore", "In", 42)],
            job_pod("p", exit_code=42),
            FailurePolicyResult(is_counted=False, action="Ignore"),
            id="ignored",
        ),
        pytest.param(
            [exit_codes("FailJob", "NotIn", 1, 2)],
            job_pod("p", exit_code=3),
            FailurePolicyResult(
                action="FailJob",
                failure_message="Container c for pod default/p failed with exit code 3 "
                "matching FailJob rule at index 0",
            ),
            id="the whole Job fails",
        ),
        pytest.param(
            [exit_codes("FailJob", "NotIn", 1)], job_pod("p", exit_code=0), FailurePolicyResult(), id="0 never matches"
        ),
        pytest.param(
            [exit_codes("FailJob", "In", 3, containerName="other")],
            job_pod("p", exit_code=3),
            FailurePolicyResult(),
            id="of another container",
        ),
        pytest.param(
            [pod_condition("Ignore", "DisruptionTarget"), exit_codes("Count", "In", 3)],
            job_pod("p", exit_code=3, condition="DisruptionTarget"),
            FailurePolicyResult(is_counted=False, action="Ignore"),
            id="the first rule decides",
        ),
        pytest.param(
            [exit_codes("Count", "In", 9), pod_condition("FailJob", "ConfigIssue")],
            job_pod("p", exit_code=3, condition="ConfigIssue"),
            FailurePolicyResult(
                action="FailJob",
                failure_message="Pod default/p has condition ConfigIssue matching FailJob rule at index 1",
            ),
            id="a condition",
        ),
        pytest.param(
            [exit_codes("FailIndex", "In", 3)],
            job_pod("p", exit_code=3),
            FailurePolicyResult(action="FailIndex"),
            id="its index",
        ),
    ],
)
def test_failures(rules: list[Document] | None, pod: Pod, result: FailurePolicyResult) -> None:
    policy = job_view(podFailurePolicy={"rules": rules} if rules is not None else None).spec.pod_failure_policy
    assert match_failure_policy(policy, pod) == result


@pytest.mark.parametrize(
    ("spec", "pod", "expected"),
    [
        pytest.param({}, job_pod("p", "Failed"), True, id="its phase says so"),
        pytest.param({}, job_pod("p", going=True), True, id="it is going"),
        pytest.param({}, job_pod("p", "Succeeded", going=True), False, id="it is going but has succeeded"),
        pytest.param({"podReplacementPolicy": "Failed"}, job_pod("p", going=True), False, id="only the phase counts"),
        pytest.param(
            {"podFailurePolicy": {"rules": []}}, job_pod("p", going=True), False, id="with a failure policy too"
        ),
    ],
)
def test_whether_a_pod_has_failed(spec: dict[str, Any], pod: Pod, expected: bool) -> None:
    assert is_failed(pod, job_view(**spec)) == expected


@pytest.mark.parametrize(
    ("rules", "succeeded", "expected"),
    [
        pytest.param([{"succeededIndexes": "0,2"}], "0-1", None, id="one is missing"),
        pytest.param([{"succeededIndexes": "0,2"}], "0-3", "Matched rules at index 0", id="all are there"),
        pytest.param([{"succeededIndexes": "0-5", "succeededCount": 2}], "1,7", None, id="one of two"),
        pytest.param(
            [{"succeededIndexes": "0-5", "succeededCount": 2}], "1,4", "Matched rules at index 0", id="two of six"
        ),
        pytest.param([{"succeededCount": 3}, {"succeededCount": 2}], "8,9", "Matched rules at index 1", id="any two"),
        pytest.param([{"succeededIndexes": "x"}], "0-9", None, id="a rule that cannot be read"),
        pytest.param([{"succeededCount": 0}], "", None, id="nothing has succeeded"),
    ],
)
def test_success(rules: list[Document], succeeded: str, expected: str | None) -> None:
    wanted = job_view(completions=10, completionMode="Indexed", successPolicy={"rules": rules})
    assert met_success_rule(wanted, parse_indexes(succeeded, 10)) == expected


def failed(ago_s: float, **parts: str) -> Pod:
    return job_pod(f"f{ago_s}", "Failed", exit_code=1, ended_ago_s=ago_s, annotations=parts)


def succeeded(ago_s: float) -> Pod:
    return job_pod(f"s{ago_s}", "Succeeded", exit_code=0, ended_ago_s=ago_s)


@pytest.mark.parametrize(
    ("known", "good", "bad", "expected"),
    [
        pytest.param(FailureRecord(2, 7.0), [], [], FailureRecord(2, 7.0), id="nothing new"),
        pytest.param(
            NO_FAILURES, [], [failed(9), failed(3)], FailureRecord(2, NOW_S - 3), id="two more, the last counts"
        ),
        pytest.param(FailureRecord(2, 7.0), [succeeded(5)], [], NO_FAILURES, id="a success begins anew"),
        pytest.param(
            FailureRecord(2, 7.0),
            [succeeded(5)],
            [failed(9), failed(3), failed(4)],
            FailureRecord(2, NOW_S - 3),
            id="what failed after it counts",
        ),
        pytest.param(FailureRecord(2, 7.0), [succeeded(1)], [failed(9)], NO_FAILURES, id="what failed before does not"),
    ],
)
def test_records(known: FailureRecord, good: Sequence[Pod], bad: Sequence[Pod], expected: FailureRecord) -> None:
    assert next_record(known, good, bad) == expected


@pytest.mark.parametrize(
    ("failures", "ago_s", "expected"),
    [(0, 0, 0.0), (1, 0, 10.0), (1, 4, 6.0), (2, 4, 16.0), (1, 40, 0.0), (9, 0, 600.0)],
)
def test_waiting(failures: int, ago_s: float, expected: float) -> None:
    assert remaining_s(failures, NOW_S - ago_s, NOW_S) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(None, 0.0, id="no failure yet"),
        pytest.param(failed(4), 6.0, id="the first"),
        pytest.param(failed(4, **{JOB_INDEX_FAILURES: "1", JOB_INDEX_IGNORED_FAILURES: "1"}), 36.0, id="after two"),
    ],
)
def test_waiting_for_an_index(pod: Pod | None, expected: float) -> None:
    assert remaining_for_index_s(pod, NOW_S) == expected


def test_the_count_travels_to_the_replacement() -> None:
    ignore = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}
    known = failed(0, **{JOB_INDEX_FAILURES: "2"})
    assert failure_annotations(job_view(), None) == {JOB_INDEX_FAILURES: "0"}
    assert failure_annotations(job_view(), known) == {JOB_INDEX_FAILURES: "3"}
    assert failure_annotations(job_view(podFailurePolicy=ignore), known) == {
        JOB_INDEX_FAILURES: "2",
        JOB_INDEX_IGNORED_FAILURES: "1",
    }


@pytest.mark.parametrize(
    ("pod", "ago_s"),
    [
        pytest.param(failed(30), 30, id="its containers ended"),
        pytest.param(job_pod("p", going=True), 0, id="its deletion"),
        pytest.param(job_pod("p"), 3600, id="its creation"),
    ],
)
def test_when_it_ended(pod: Pod, ago_s: float) -> None:
    assert finished_at_s(pod) == NOW_S - ago_s
