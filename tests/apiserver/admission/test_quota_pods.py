"""What quotas are asked about pods."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.views.administration import ScopeRequirement
from mooring.apiserver.admission.resource_quota import PodMeasure
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import Known, attempt, container, pod, wait

MEASURE = PodMeasure(POD)


def test_a_pod_is_measured_as_it_is_now() -> None:
    made = pod(containers=[container("a", {"cpu": "1"})])
    made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert str(wait(MEASURE.usage(made, attempt(POD, made), Known()))["requests.cpu"]) == "1"
    made["metadata"] |= {"deletionGracePeriodSeconds": 30}
    assert list(wait(MEASURE.usage(made, attempt(POD, made), Known()))) == ["count/pods"]


@pytest.mark.parametrize(("scope", "expected"), [("Terminating", True), ("NotTerminating", False)])
def test_a_scope_means_a_pod(scope: str, expected: bool) -> None:
    requirement = ScopeRequirement(scope_name=scope, operator="Exists")
    assert MEASURE.is_in_scope(requirement, pod(activeDeadlineSeconds=5)) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(pod(containers=[container("a", {"cpu": "1"}, {"memory": "1"})]), "", id="all is said"),
        pytest.param(
            pod(containers=[container("b"), container("a", {"cpu": "1"})]),
            "must specify limits.memory for: a,b; requests.cpu for: b",
            id="by resource, with the containers that are silent",
        ),
        pytest.param(
            pod(containers=[], initContainers=[container("i", {"cpu": "1"})]),
            "must specify limits.memory for: i",
            id="init containers too",
        ),
        pytest.param(pod(resources={"limits": {"cpu": "1"}}), "", id="the pod as a whole says it"),
    ],
)
def test_what_must_be_said(made: Document, expected: str) -> None:
    assert MEASURE.unspecified(["requests.cpu", "limits.memory", "pods", "requests.example.com/gpu"], made) == expected


def test_names_that_pods_use() -> None:
    assert wait(MEASURE.counted(["pods", "limits.memory", "services"], Known())) == ["pods", "limits.memory"]


@pytest.mark.parametrize(
    ("subresource", "operation", "expected"),
    [
        ("", Operation.CREATE, True),
        ("", Operation.UPDATE, True),
        ("resize", Operation.UPDATE, True),
        ("status", Operation.UPDATE, False),
        ("", Operation.DELETE, False),
    ],
)
def test_writes_that_can_change_what_is_used(subresource: str, operation: Operation, expected: bool) -> None:
    assert MEASURE.handles(subresource, operation) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"activeDeadlineSeconds": 1}, True),
        ({}, {}, False),
        ({"activeDeadlineSeconds": 1}, {"activeDeadlineSeconds": 2}, False),
    ],
)
def test_an_update_concerns_quotas_only_if_the_scope_changes(old: Any, new: Any, expected: bool) -> None:
    assert MEASURE.concerns(attempt(POD, pod(**new), pod(**old))) is expected
