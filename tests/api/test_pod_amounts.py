"""Requests and limits of pods as quantities."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.resources import FOR_LIMIT_RANGES, FOR_NODES, FOR_QUOTAS, amounts, pod_limits, pod_requests
from mooring.api.views.pod import Pod
from tests.api.quota_builders import container, pod, texts

SIDECAR: dict[str, Any] = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(pod(container("a", {"cpu": "1"}), container("b", {"cpu": "500m"})), "1500m", id="a sum"),
        pytest.param(
            pod(container("a", {"cpu": "1"}), initContainers=[container("i", {"cpu": "3"})]),
            "3",
            id="a larger init container counts",
        ),
        pytest.param(
            pod(
                container("a", {"cpu": "1"}),
                initContainers=[container("s", {"cpu": "2"}, **SIDECAR), container("i", {"cpu": "3"})],
            ),
            "5",
            id="with the sidecars that run already",
        ),
        pytest.param(
            pod(
                container("a", {"cpu": "4"}),
                initContainers=[container("i", {"cpu": "3"}), container("s", {"cpu": "2"}, **SIDECAR)],
            ),
            "6",
            id="and sidecars run beside the containers",
        ),
        pytest.param(
            pod(container("a", {"cpu": "4"}), resources={"requests": {"cpu": "7"}}),
            "7",
            id="the pod as a whole",
        ),
    ],
)
def test_requests(made: Pod, expected: str) -> None:
    assert texts(pod_requests(made, FOR_LIMIT_RANGES)) == {"cpu": expected}
    assert texts(pod_requests(made, FOR_QUOTAS)) == {"cpu": expected}


def test_huge_pages_of_the_whole_pod_count_for_quotas_but_not_for_limit_ranges() -> None:
    made = pod(resources={"limits": {"hugepages-2Mi": "4Mi"}})
    assert texts(pod_limits(made, FOR_LIMIT_RANGES)) == {}
    assert texts(pod_limits(made, FOR_QUOTAS)) == {"hugepages-2Mi": "4Mi"}


def test_overhead_is_added_to_requests_and_existing_limits() -> None:
    made = pod(container("a", {"memory": "1Gi"}, {"cpu": "1"}), overhead={"cpu": "250m", "memory": "1Gi"})
    assert texts(pod_requests(made, FOR_NODES)) == {"memory": "2Gi", "cpu": "250m"}
    assert texts(pod_limits(made, FOR_QUOTAS)) == {"cpu": "1250m"}
    assert texts(pod_requests(made, FOR_LIMIT_RANGES)) == {"memory": "1Gi"}


@pytest.mark.parametrize(("reason", "expected"), [("Deferred", "4"), ("Infeasible", "3")])
def test_amounts_during_a_resize(reason: str, expected: str) -> None:
    given = {"name": "a", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}
    status = {"containerStatuses": [given], "conditions": [{"type": "PodResizePending", "reason": reason}]}
    made = pod(container("a", {"cpu": "4"}), status=status)
    assert texts(pod_requests(made, FOR_QUOTAS)) == {"cpu": expected}
    assert texts(pod_requests(made, FOR_NODES)) == {"cpu": "4"}


def test_a_list_of_resources_may_be_absent() -> None:
    assert amounts(None) == {}
    assert texts(amounts({"cpu": "1500m", "memory": "1Gi"})) == {"cpu": "1500m", "memory": "1Gi"}
