"""What pods use of a quota, and which ones a scope means."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.quota.pods import container_usage, is_alive, is_pod_in_scope, is_pod_name, pod_usage
from mooring.api.views.pod import Pod, ResourceRequirements
from mooring.api.views.quotas import ScopeRequirement
from tests.api.quota.builders import container, pod, texts

NOW_S = 1_000_000.0
ASKING = container("c", {"cpu": "250m", "memory": "64Mi"}, {"memory": "128Mi"})


@pytest.mark.parametrize(
    ("found", "amounts"),
    [
        pytest.param(
            pod(ASKING, status={"phase": "Running"}),
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
        pytest.param(pod(ASKING, status={"phase": "Failed"}), {"count/pods": "1"}, id="one that has failed"),
        pytest.param(pod(ASKING, status={"phase": "Succeeded"}), {"count/pods": "1"}, id="one that has ended well"),
        pytest.param(
            pod(container("c", {}, {"memory": "2Mi"}), overhead={"memory": "1Mi"}),
            {"count/pods": "1", "pods": "1", "memory": "1Mi", "requests.memory": "1Mi", "limits.memory": "3Mi"},
            id="overhead is on top",
        ),
        pytest.param(
            pod(container("c", {"example.com/gpu": "2", "weird": "1"}, {"hugepages-2Mi": "4Mi"})),
            {"count/pods": "1", "pods": "1", "requests.example.com/gpu": "2"},
            id="a vendor's resource",
        ),
        pytest.param(
            pod(container("c", {"hugepages-2Mi": "4Mi"})),
            {"count/pods": "1", "pods": "1", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"},
            id="huge pages",
        ),
        pytest.param(
            pod(container("a", {"memory": "0"}), container("b", {"memory": "1Gi"})),
            {"count/pods": "1", "pods": "1", "memory": "1Gi", "requests.memory": "1Gi"},
            id="written as the first that asks for anything",
        ),
    ],
)
def test_a_pod_uses(found: Pod, amounts: dict[str, str]) -> None:
    assert texts(pod_usage(found, NOW_S)) == amounts
    assert texts(pod_usage(found, NOW_S)) == amounts, "remembered"


def test_pods_are_told_apart_by_what_they_have_been_given() -> None:
    status = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    resized = {"containerStatuses": [status]}
    infeasible = {**resized, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    asking = container("c", {"cpu": "2"})
    assert str(pod_usage(pod(asking, status=resized), NOW_S)["cpu"]) == "2"
    assert str(pod_usage(pod(asking, status=infeasible), NOW_S)["cpu"]) == "1"


def test_a_container_uses_what_it_says() -> None:
    resources = ResourceRequirements(requests={"cpu": "1"}, limits={"memory": "1Gi"})
    assert texts(container_usage(resources)) == {"pods": "1", "cpu": "1", "requests.cpu": "1", "limits.memory": "1Gi"}


OTHER_NAMESPACES: Document = {
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaceSelector": {}}]}
}


@pytest.mark.parametrize(
    ("scope", "found", "is_meant"),
    [
        pytest.param("Terminating", pod(activeDeadlineSeconds=0), True, id="a deadline"),
        pytest.param("NotTerminating", pod(), True, id="no deadline"),
        pytest.param("BestEffort", pod(ASKING), False, id="it asks for something"),
        pytest.param("NotBestEffort", pod(ASKING), True, id="and is not of the best effort"),
        pytest.param("BestEffort", pod(container()), True, id="it asks for nothing"),
        pytest.param("BestEffort", pod(container("c", {"cpu": "0"})), True, id="it asks for zero"),
        pytest.param("BestEffort", pod(overhead={"cpu": "1"}), True, id="overhead is nothing that it asks for"),
        pytest.param("BestEffort", pod(ASKING, resources={}), True, id="as a whole it asks for nothing"),
        pytest.param("BestEffort", pod(status={"qosClass": "Burstable"}), False, id="its class is known"),
        pytest.param("PriorityClass", pod(priorityClassName="high"), True, id="its priority class"),
        pytest.param("PriorityClass", pod(), False, id="no priority class"),
        pytest.param("CrossNamespacePodAffinity", pod(affinity=OTHER_NAMESPACES), True, id="it looks elsewhere"),
        pytest.param("CrossNamespacePodAffinity", pod(), False, id="it stays at home"),
        pytest.param("VolumeAttributesClass", pod(), False, id="a scope that is not about pods"),
    ],
)
def test_a_scope_means_a_pod(scope: str, found: Pod, is_meant: bool) -> None:
    operator = "In" if scope == "PriorityClass" else "Exists"
    requirement = ScopeRequirement(scope_name=scope, operator=operator, values=("high",))
    assert is_pod_in_scope(requirement, found) is is_meant


@pytest.mark.parametrize(
    ("name", "is_theirs"),
    [
        pytest.param("pods", True, id="pods"),
        pytest.param("limits.cpu", True, id="limits"),
        pytest.param("requests.hugepages-2Mi", True, id="huge pages"),
        pytest.param("requests.example.com/gpu", True, id="a vendor's resource"),
        pytest.param("requests.deviceclass.resource.kubernetes.io/gpu", True, id="a device class"),
        pytest.param("requests.kubernetes.io/gpu", False, id="a resource of Kubernetes' own"),
        pytest.param("requests.storage", False, id="storage is for claims"),
        pytest.param("services", False, id="services"),
    ],
)
def test_pods_are_measured_by(name: str, is_theirs: bool) -> None:
    assert is_pod_name(name) is is_theirs


@pytest.mark.parametrize(
    ("metadata", "now_s", "expected"),
    [
        ({"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 30}, 40.0, True),
        ({"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 30}, 41.0, False),
        ({"deletionTimestamp": "1970-01-01T00:00:10Z"}, 41.0, True),
    ],
    ids=["its time to end", "its time is over", "nobody said how long it takes"],
)
def test_a_pod_whose_time_to_end_is_over_uses_nothing(metadata: Document, now_s: float, expected: bool) -> None:
    found = pod(ASKING, metadata=metadata)
    assert is_alive(found, now_s) is expected
    assert ("pods" in pod_usage(found, now_s)) is expected
