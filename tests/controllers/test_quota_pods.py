"""What pods use of a quota, and which ones a scope means."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.quotas import ScopeRequirement
from mooring.controllers.quota_pods import is_alive, is_pod_in_scope, is_pod_name, pod_usage

NOW_S = 1_000_000.0


def pod(name: str = "p", *, phase: str = "Running", **spec: Any) -> Document:
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    containers = [{"name": "c", "image": "a", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("document", "amounts"),
    [
        pytest.param(
            pod(),
            {
                "count/pods": "1",
                "pods": "1",
                "cpu": "250m",
                "requests.cpu": "250m",
                "memory": "64Mi",
                "requests.memory": "64Mi",
                "limits.memory": "128Mi",
            },
            id="one that runs",
        ),
        pytest.param(pod(phase="Failed"), {"count/pods": "1"}, id="one that has ended"),
        pytest.param(
            pod(overhead={"memory": "1Mi"}, containers=[{"name": "c", "resources": {"limits": {"memory": "2Mi"}}}]),
            {"count/pods": "1", "pods": "1", "memory": "1Mi", "requests.memory": "1Mi", "limits.memory": "3Mi"},
            id="overhead is on top",
        ),
        pytest.param(
            pod(containers=[{"name": "c", "resources": {"requests": {"example.com/gpu": "2"}}}]),
            {"count/pods": "1", "pods": "1", "requests.example.com/gpu": "2"},
            id="a vendor's resource",
        ),
    ],
)
def test_a_pod_uses(document: Document, amounts: dict[str, str]) -> None:
    found = pod_usage(convert_as(Pod, document), NOW_S)
    assert {name: str(amount) for name, amount in found.items()} == amounts


@pytest.mark.parametrize(
    ("scope", "spec", "is_meant"),
    [
        pytest.param(("Terminating", "Exists"), {"activeDeadlineSeconds": 0}, True, id="a deadline"),
        pytest.param(("NotTerminating", "Exists"), {}, True, id="no deadline"),
        pytest.param(("BestEffort", "Exists"), {}, False, id="it asks for something"),
        pytest.param(("BestEffort", "Exists"), {"containers": [{"name": "c"}]}, True, id="it asks for nothing"),
        pytest.param(("PriorityClass", "In"), {"priorityClassName": "high"}, True, id="its priority class"),
        pytest.param(("PriorityClass", "In"), {}, False, id="no priority class"),
        pytest.param(("Other", "Exists"), {}, False, id="a scope that is not about pods"),
    ],
)
def test_a_scope_means_a_pod(scope: tuple[str, str], spec: dict[str, Any], is_meant: bool) -> None:
    requirement = ScopeRequirement(scope_name=scope[0], operator=scope[1], values=("high",))
    assert is_pod_in_scope(requirement, convert_as(Pod, pod(**spec))) is is_meant


@pytest.mark.parametrize(
    ("name", "is_theirs"),
    [
        pytest.param("pods", True, id="pods"),
        pytest.param("limits.cpu", True, id="limits"),
        pytest.param("requests.hugepages-2Mi", True, id="huge pages"),
        pytest.param("requests.example.com/gpu", True, id="a vendor's resource"),
        pytest.param("requests.storage", False, id="storage is for claims"),
        pytest.param("services", False, id="services"),
    ],
)
def test_pods_are_measured_by(name: str, is_theirs: bool) -> None:
    assert is_pod_name(name) is is_theirs


def test_a_pod_whose_time_to_end_is_over_uses_nothing() -> None:
    document = pod()
    document["metadata"] |= {"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 30}
    found = convert_as(Pod, document)
    assert is_alive(found, 40.0)
    assert not is_alive(found, 41.0)
