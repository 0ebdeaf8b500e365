"""The status of a Job: counts, conditions, finalizers."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import JobCondition
from mooring.controllers.documents import finished_condition
from mooring.controllers.job.plan import new_condition, summarize_pods
from mooring.controllers.job.status import (
    UNCOUNTED_MAX,
    Progress,
    UncountedPods,
    final_condition,
    finish,
    progress_document,
    progress_of,
    track,
)
from tests.controllers.batch_builders import job_pod, job_view

NOW = "2026-01-01T00:00:00Z"
WHOLE: Document = {
    "active": 1,
    "succeeded": 2,
    "failed": 3,
    "startTime": NOW,
    "completedIndexes": "0-1",
    "terminating": 0,
    "ready": 0,
    "failedIndexes": "",
    "uncountedTerminatedPods": {"succeeded": ["a"]},
    "conditions": [
        {
            "type": "Suspended",
            "status": "False",
            "lastProbeTime": NOW,
            "lastTransitionTime": NOW,
            "reason": "R",
            "message": "m",
        }
    ],
}
FAILURE = new_condition("FailureTarget", "R", "m", NOW)
SUCCESS = new_condition("SuccessCriteriaMet", "R", "m", NOW)


def test_nothing_is_lost_on_the_way() -> None:
    assert progress_document(progress_of(job_view(status=WHOLE).status)) == WHOLE


def test_an_empty_list_of_uncounted_is_reported_as_such() -> None:
    assert progress_document(Progress(conditions=[])) == {"uncountedTerminatedPods": {}}


def test_pods_without_the_finalizer_are_counted() -> None:
    progress = Progress(succeeded=1, uncounted=UncountedPods(["a", "b"], ["c"]))
    assert progress.count_released({"b", "c"})
    assert (progress.succeeded, progress.failed, progress.uncounted_count) == (2, 0, 2)
    assert not progress.count_released({"b", "c"})


@pytest.mark.parametrize(
    ("known", "status", "is_changed"),
    [
        pytest.param([], "True", True, id="new"),
        pytest.param([], "False", False, id="never was true"),
        pytest.param([new_condition("Suspended", "R", "m", NOW)], "True", False, id="the same"),
        pytest.param([new_condition("Suspended", "R", "m", NOW)], "False", True, id="not any more"),
    ],
)
def test_conditions(known: list[JobCondition], status: str, is_changed: bool) -> None:
    progress = Progress(known)
    assert progress.set_condition("Suspended", status, "R", "m", NOW) == is_changed
    assert [condition.status for condition in progress.conditions] == ([status] if known or is_changed else [])


@pytest.mark.parametrize(
    ("interim", "final"),
    [("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete"), ("Failed", "Failed")],
)
def test_the_last_condition(interim: str, final: str) -> None:
    condition = final_condition(new_condition(interim, "R", "m", "earlier"), NOW)
    assert condition == new_condition(final, "R", "m", NOW)
    finished = job_view(status={"conditions": [{"type": final, "status": "True"}]})
    assert finished_condition(finished) is not None
    assert finished_condition(job_view()) is None


@pytest.mark.parametrize(
    ("spec", "status", "end", "pods", "released", "succeeded", "failed"),
    [
        pytest.param({}, {}, None, [job_pod("a")], [], [], [], id="at work"),
        pytest.param({}, {}, None, [job_pod("a", "Succeeded")], ["a"], ["uid-a"], [], id="succeeded"),
        pytest.param({}, {}, None, [job_pod("a", "Failed")], ["a"], [], ["uid-a"], id="failed"),
        pytest.param({}, {}, None, [job_pod("a", going=True)], ["a"], [], ["uid-a"], id="deleted"),
        pytest.param({}, {}, None, [job_pod("a", "Failed", counted=True)], [], [], [], id="counted already"),
        pytest.param({}, {}, FAILURE, [job_pod("a")], ["a"], [], ["uid-a"], id="at work when all has failed"),
        pytest.param({}, {}, SUCCESS, [job_pod("a")], ["a"], [], [], id="at work when all has succeeded"),
        pytest.param(
            {},
            {"uncountedTerminatedPods": {"failed": ["uid-a"]}},
            None,
            [job_pod("a", "Failed")],
            ["a"],
            [],
            ["uid-a"],
            id="on the list already",
        ),
        pytest.param(
            {"podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [9]}}]}},
            {},
            None,
            [job_pod("a", "Failed", exit_code=9)],
            ["a"],
            [],
            [],
            id="ignored",
        ),
        pytest.param(
            {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 3},
            {},
            None,
            [job_pod("a", "Failed", index=0)],
            [],
            [],
            [],
            id="its replacement is still to come",
        ),
    ],
)
def test_counting(
    spec: dict[str, Any],
    status: Document,
    end: JobCondition | None,
    pods: list[Pod],
    released: list[str],
    succeeded: list[str],
    failed: list[str],
) -> None:
    wanted = job_view(status=status, **spec)
    progress = progress_of(wanted.status)
    tracking = track(summarize_pods(wanted, pods, frozenset()), end, progress)
    assert [pod.metadata.name for pod in tracking.to_release] == released
    assert (progress.uncounted.succeeded, progress.uncounted.failed) == (succeeded, failed)


def test_indexes_need_no_list() -> None:
    wanted = job_view(completionMode="Indexed", completions=5, status={"completedIndexes": "0", "succeeded": 1})
    pods = [job_pod("c", "Succeeded", index=2), job_pod("b", "Succeeded", index=1), job_pod("x", "Succeeded", index=9)]
    progress = progress_of(wanted.status)
    tracking = track(summarize_pods(wanted, pods, frozenset()), None, progress)
    assert tracking.is_changed
    assert (progress.completed_indexes, progress.succeeded, progress.uncounted_count) == ("0-2", 3, 0)
    assert [pod.metadata.name for pod in tracking.to_release] == ["b", "c", "x"]


def test_a_list_that_is_full_leaves_the_rest_for_later() -> None:
    pods = [job_pod(f"p{number}", "Succeeded") for number in range(UNCOUNTED_MAX + 5)]
    wanted = job_view(completions=1000)
    progress = progress_of(wanted.status)
    tracking = track(summarize_pods(wanted, pods, frozenset()), None, progress)
    assert tracking.is_full
    assert len(tracking.to_release) == progress.uncounted_count == UNCOUNTED_MAX


def test_a_removal_under_way_is_not_counted_again() -> None:
    wanted = job_view()
    progress = progress_of(wanted.status)
    tracking = track(summarize_pods(wanted, [job_pod("a", "Succeeded")], {"uid-a"}), None, progress)
    assert not tracking.to_release
    assert not tracking.is_changed


@pytest.mark.parametrize(
    ("end", "uncounted", "terminating", "expected"),
    [
        pytest.param(None, [], 0, None, id="it goes on"),
        pytest.param(SUCCESS, ["a"], 0, None, id="a pod is not counted yet"),
        pytest.param(SUCCESS, [], 1, None, id="a pod is still terminating"),
        pytest.param(SUCCESS, [], 0, "Complete", id="done"),
        pytest.param(FAILURE, [], 0, "Failed", id="failed"),
    ],
)
def test_the_end(end: JobCondition | None, uncounted: list[str], terminating: int, expected: str | None) -> None:
    progress = progress_of(job_view().status)
    progress.uncounted.succeeded = uncounted
    final = finish(end, progress, terminating, NOW)
    assert (final.type if final is not None else None) == expected
    assert (progress.completion_time == NOW) == (expected == "Complete")
