"""The plan of a Job, and completion indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.controllers.job.failures import NO_FAILURES, FailureRecord
from mooring.controllers.job.indexes import (
    Intervals,
    completion_index,
    count_indexes,
    first_pending,
    has_index,
    indexes_text,
    merged,
    overlap,
    parse_indexes,
    with_indexes,
)
from mooring.controllers.job.plan import (
    CreatePods,
    RemovePods,
    WaitForBackoff,
    completion_of,
    end_of,
    plan_pods,
    pods_to_remove,
    summarize_pods,
)
from mooring.kit.clock import format_rfc3339
from tests.controllers.batch_builders import INDEX, job_pod, job_view
from tests.controllers.builders import NOW_S

NOW = format_rfc3339(NOW_S)
INDEXED: dict[str, Any] = {"completionMode": "Indexed", "completions": 4, "parallelism": 4}


def names(pods: Sequence[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


@pytest.mark.parametrize(
    ("spec", "status", "pods", "expected"),
    [
        pytest.param({"parallelism": 3, "completions": 9}, {}, [], CreatePods(3), id="as many as run at once"),
        pytest.param(
            {"parallelism": 3, "completions": 9}, {"succeeded": 8}, [], CreatePods(1), id="as many as are missing"
        ),
        pytest.param(
            {"parallelism": 9, "completions": 9}, {}, [job_pod("a")], CreatePods(8), id="but for those at work"
        ),
        pytest.param({"parallelism": 900, "completions": 900}, {}, [], CreatePods(500), id="at most a burst"),
        pytest.param({"parallelism": 2, "completions": None}, {}, [], CreatePods(2), id="a work queue"),
        pytest.param(
            {"parallelism": 2, "completions": None},
            {"succeeded": 1},
            [job_pod("a")],
            None,
            id="a work queue that is done",
        ),
        pytest.param({"parallelism": 0, "completions": 9}, {}, [], None, id="none at once"),
        pytest.param({"completions": 2}, {}, [job_pod("a", going=True)], CreatePods(1), id="one that goes is replaced"),
        pytest.param(
            {"podReplacementPolicy": "Failed"}, {}, [job_pod("a", going=True)], None, id="unless it has to have ended"
        ),
        pytest.param(INDEXED, {"completedIndexes": "1"}, [job_pod("a", index=0)], CreatePods(2, [2, 3]), id="by index"),
        pytest.param(
            {**INDEXED, "backoffLimitPerIndex": 0},
            {"failedIndexes": "0-2"},
            [],
            CreatePods(1, [3]),
            id="no index that has failed",
        ),
    ],
)
def test_creating(spec: dict[str, Any], status: Document, pods: list[Pod], expected: object) -> None:
    summary = summarize_pods(job_view(status=status, **spec), pods, frozenset())
    assert plan_pods(summary, NO_FAILURES, NOW_S) == expected


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        pytest.param({"suspend": True}, [job_pod("a"), job_pod("b")], ["a", "b"], id="suspended: all"),
        pytest.param({}, [job_pod("a", ready=True), job_pod("b")], ["b"], id="too many: who is not ready"),
        pytest.param({}, [job_pod("a"), job_pod("b", on="")], ["b"], id="too many: who has no node"),
        pytest.param(INDEXED, [job_pod("a", index=1), job_pod("b", index=1, ready=True)], ["a"], id="a doubled index"),
        pytest.param(
            INDEXED, [job_pod("a"), job_pod("b", index=4), job_pod("c", index=0)], ["a", "b"], id="no valid index"
        ),
    ],
)
def test_removing(spec: dict[str, Any], pods: list[Pod], expected: list[str]) -> None:
    plan = plan_pods(summarize_pods(job_view(**spec), pods, frozenset()), NO_FAILURES, NOW_S)
    assert isinstance(plan, RemovePods)
    assert names(plan.pods) == expected


def test_a_replacement_waits_for_the_backoff() -> None:
    summary = summarize_pods(job_view(), [], frozenset())
    assert plan_pods(summary, FailureRecord(1, NOW_S - 4), NOW_S) == WaitForBackoff(6.0)
    assert plan_pods(summary, FailureRecord(1, NOW_S - 10), NOW_S) == CreatePods(1)


def test_an_index_waits_for_its_own_backoff() -> None:
    wanted = job_view(**INDEXED, backoffLimitPerIndex=2)
    failed_indexes = job_pod("a", "Failed", index=1, exit_code=1, ended_ago_s=4)
    others = [job_pod(f"p{index}", index=index) for index in (0, 2, 3)]
    summary = summarize_pods(wanted, [failed_indexes, *others], frozenset())
    assert plan_pods(summary, NO_FAILURES, NOW_S) == WaitForBackoff(6.0)
    assert plan_pods(summary, NO_FAILURES, NOW_S + 6) == CreatePods(1, [1])
    assert summary.delayed == {1: failed_indexes}


@pytest.mark.parametrize(
    ("spec", "status", "pods", "expected"),
    [
        pytest.param({}, {}, [job_pod("a")], None, id="it goes on"),
        pytest.param(
            {"backoffLimit": 1},
            {"failed": 1},
            [job_pod("a", "Failed")],
            ("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            id="one failure too many",
        ),
        pytest.param(
            {"backoffLimit": 1}, {"failed": 1}, [job_pod("a", "Failed", counted=True)], None, id="counted already"
        ),
        pytest.param(
            {"restart": "OnFailure", "backoffLimit": 3},
            {},
            [job_pod("a", restarts=2), job_pod("b", restarts=1)],
            ("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            id="restarted too often",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 60},
            {"startTime": format_rfc3339(NOW_S - 60)},
            [],
            ("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"),
            id="the deadline",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 60, "suspend": True},
            {"startTime": format_rfc3339(NOW_S - 60)},
            [],
            None,
            id="suspended",
        ),
        pytest.param(
            {**INDEXED, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
            {"failedIndexes": "0"},
            [job_pod("a", "Failed", index=1)],
            (
                "FailureTarget",
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            ),
            id="too many failed indexes",
        ),
        pytest.param(
            {**INDEXED, "backoffLimitPerIndex": 0},
            {"failedIndexes": "0", "completedIndexes": "1-3"},
            [],
            ("FailureTarget", "FailedIndexes", "Job has failed indexes"),
            id="all ended, one failed",
        ),
        pytest.param(
            {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 1}]}},
            {},
            [job_pod("a", "Succeeded", index=2)],
            ("SuccessCriteriaMet", "SuccessPolicy", "Matched rules at index 0"),
            id="enough has succeeded",
        ),
        pytest.param(
            {},
            {"conditions": [{"type": "FailureTarget", "status": "True", "reason": "Why", "message": "so"}]},
            [],
            ("Failed", "Why", "so"),
            id="it was decided before",
        ),
    ],
)
def test_the_end(
    spec: dict[str, Any], status: Document, pods: list[Pod], expected: tuple[str, str, str] | None
) -> None:
    wanted = job_view(status=status, **spec)
    end = end_of(summarize_pods(wanted, pods, frozenset()), wanted.status.start_time, NOW, NOW_S)
    assert (end and (end.type, end.reason, end.message)) == expected


@pytest.mark.parametrize(
    ("spec", "pods", "is_complete"),
    [
        pytest.param({}, [job_pod("a", "Succeeded")], True, id="all have succeeded"),
        pytest.param({"completions": 2}, [job_pod("a", "Succeeded")], False, id="one of two"),
        pytest.param(
            {"completions": None}, [job_pod("a", "Succeeded"), job_pod("b")], False, id="one is still at work"
        ),
        pytest.param(
            {"completions": None}, [job_pod("a", "Succeeded"), job_pod("b", "Failed")], True, id="the first will do"
        ),
    ],
)
def test_completion(spec: dict[str, Any], pods: list[Pod], is_complete: bool) -> None:
    assert (completion_of(summarize_pods(job_view(**spec), pods, frozenset()), NOW) is not None) == is_complete


def test_the_pods_that_are_least_far_are_deleted_first() -> None:
    pods = [
        job_pod("ready", ready=True),
        job_pod("running"),
        job_pod("restarted", restarts=3),
        job_pod("pending", "Pending"),
        job_pod("nowhere", "Pending", on=""),
    ]
    assert names(pods_to_remove(job_view(), pods, 5)) == ["nowhere", "pending", "restarted", "running", "ready"]


# --- Completion indexes, written as intervals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "completions", "expected"),
    [
        pytest.param("", 5, (), id="none"),
        pytest.param("1,3-5,7", 9, ((1, 1), (3, 5), (7, 7)), id="single ones and intervals"),
        pytest.param("1,2,3", 9, ((1, 3),), id="neighbours are joined"),
        pytest.param("1,3-5,7", 5, ((1, 1), (3, 4)), id="indexes beyond the completions are cut off"),
        pytest.param("x,2,3-y,4", 9, ((2, 2), (4, 4)), id="what cannot be read is left out"),
    ],
)
def test_reading(text: str, completions: int, expected: Intervals) -> None:
    assert parse_indexes(text, completions) == expected


@pytest.mark.parametrize(
    ("intervals", "text"),
    [
        pytest.param((), "", id="none"),
        pytest.param(((3, 3),), "3", id="one"),
        pytest.param(((3, 4),), "3,4", id="two with a comma"),
        pytest.param(((3, 5), (8, 8)), "3-5,8", id="three with a hyphen"),
    ],
)
def test_writing(intervals: Intervals, text: str) -> None:
    assert indexes_text(intervals) == text


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.integers(0, 45), st.integers(0, 10))
def test_intervals_are_sets(one: set[int], other: set[int], index: int, count: int) -> None:
    left, right = with_indexes((), one), with_indexes((), other)
    both = merged(left, right)
    assert both == with_indexes((), one | other)
    assert count_indexes(both) == len(one | other)
    assert has_index(left, index) == (index in one)
    assert overlap(left, right) == len(one & other)
    assert parse_indexes(indexes_text(left), 100) == left
    assert first_pending(left, count, 41) == sorted(set(range(41)) - one)[:count]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [("3", 3), ("0", 0), ("-1", -1), ("three", -1), (None, -1)],
)
def test_the_index_of_a_pod(annotation: str | None, expected: int) -> None:
    assert completion_index(job_pod("p", annotations={INDEX: annotation} if annotation is not None else {})) == expected
