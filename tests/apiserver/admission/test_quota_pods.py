"""What pods use."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.admission.quota_pods import PodMeasure, pod_usage
from tests.apiserver.admission.builders import NOW_S, Known, attempt, container, pod, wait

MEASURE = PodMeasure(POD)


def scoped(name: str, made: Document) -> bool:
    return MEASURE.is_in_scope({"scopeName": name, "operator": "Exists"}, made)


def test_requests_and_limits_under_all_their_names() -> None:
    requests = {"cpu": "1", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    used = pod_usage(pod(containers=[container("a", requests, {"cpu": "2", "hugepages-2Mi": "4Mi"})]), NOW_S)
    assert {name: str(amount) for name, amount in used.items()} == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "limits.cpu": "2",
        "requests.example.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
    }


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        pytest.param({}, {"phase": "Succeeded"}, id="it has ended well"),
        pytest.param({}, {"phase": "Failed"}, id="or not"),
        pytest.param(
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30},
            {},
            id="its time is long over",
        ),
    ],
)
def test_a_pod_that_has_ended_uses_nothing_but_its_place(metadata: Document, status: Document) -> None:
    made = pod(containers=[container("a", {"cpu": "1"})])
    made["metadata"] |= metadata
    assert list(pod_usage({**made, "status": status}, NOW_S)) == ["count/pods"]


@pytest.mark.parametrize(
    ("made", "scopes"),
    [
        pytest.param(pod(), {"BestEffort", "NotTerminating"}, id="a plain pod"),
        pytest.param(
            pod(containers=[container("a", {"cpu": "1"})]), {"NotBestEffort", "NotTerminating"}, id="with requests"
        ),
        pytest.param(pod(activeDeadlineSeconds=5), {"BestEffort", "Terminating"}, id="with a deadline"),
        pytest.param(pod(priorityClassName="a"), {"BestEffort", "NotTerminating", "PriorityClass"}, id="of a class"),
        pytest.param(
            pod(
                affinity={
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaceSelector": {}}]}
                }
            ),
            {"BestEffort", "NotTerminating", "CrossNamespacePodAffinity"},
            id="looking elsewhere",
        ),
    ],
)
def test_scopes(made: Document, scopes: set[str]) -> None:
    everything = (
        "BestEffort",
        "NotBestEffort",
        "Terminating",
        "NotTerminating",
        "PriorityClass",
        "CrossNamespacePodAffinity",
    )
    assert {name for name in (*everything, "VolumeAttributesClass") if scoped(name, made)} == scopes


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(pod(containers=[container("a", {"cpu": "1"}, {"memory": "1"})]), "", id="all is said"),
        pytest.param(
            pod(containers=[container("b"), container("a", {"cpu": "1"})]),
            "must specify limits.memory for: a,b; requests.cpu for: b",
            id="by resource, with the containers that are silent",
        ),
        pytest.param(pod(resources={"limits": {"cpu": "1"}}), "", id="the pod as a whole says it"),
    ],
)
def test_what_must_be_said(made: Document, expected: str) -> None:
    assert MEASURE.unspecified(["requests.cpu", "limits.memory", "pods", "requests.example.com/gpu"], made) == expected


def test_names_that_pods_use() -> None:
    names = [
        "pods",
        "cpu",
        "limits.memory",
        "requests.example.com/gpu",
        "requests.hugepages-2Mi",
        "services",
        "requests.storage",
    ]
    assert wait(MEASURE.counted(names, Known())) == names[:5]


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
