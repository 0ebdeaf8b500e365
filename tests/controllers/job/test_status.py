"""The status of a Job while it is being worked on."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.views.batch import JobCondition
from mooring.controllers.job.status import (
    Progress,
    final_condition,
    finished_condition,
    new_condition,
    progress_document,
    progress_of,
)
from tests.controllers.batch_builders import job_view

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


def test_nothing_is_lost_on_the_way() -> None:
    assert progress_document(progress_of(job_view(status=WHOLE).status)) == WHOLE


def test_an_empty_list_of_uncounted_is_told_as_such() -> None:
    assert progress_document(Progress(conditions=[])) == {"uncountedTerminatedPods": {}}


def test_who_lost_the_finalizer_is_counted() -> None:
    progress = Progress([], succeeded=1, uncounted_succeeded=["a", "b"], uncounted_failed=["c"])
    assert progress.count_released({"b", "c"})
    assert (progress.succeeded, progress.failed, progress.uncounted) == (2, 0, 2)
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
    assert [each.status for each in progress.conditions] == ([status] if known or is_changed else [])


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
