"""What is wrong with the resources of a pod as a whole."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {
                "resources": {"requests": {"cpu": "1"}},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
            },
            [],
            id="room for its containers",
        ),
        pytest.param(
            {
                "resources": {"requests": {"cpu": "100m"}},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
            },
            [
                (
                    'spec.resources.requests[cpu]: Invalid value: "100m": must be greater than or equal to '
                    "aggregate container requests of 500m"
                )
            ],
            id="less than its containers request",
        ),
        pytest.param(
            {
                "resources": {"limits": {"cpu": "1"}},
                "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}],
            },
            [
                ('spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'),
                (
                    'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or '
                    "equal to pod limits of 1"
                ),
            ],
            id="a container that may use more than the pod",
        ),
        pytest.param(
            {
                "resources": {"requests": {"ephemeral-storage": "1"}},
                "containers": [{"name": "c", "image": "i", "resources": {}}],
            },
            [
                (
                    'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": '
                    'supported values: "cpu", "hugepages-", "memory"'
                )
            ],
            id="something that only containers have",
        ),
        pytest.param(
            {"resources": {"claims": [{"name": "a"}]}, "containers": [{"name": "c", "image": "i", "resources": {}}]},
            [
                "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
                (
                    'spec.resources.claims[0]: Not found: "a": must be one of the names in '
                    "pod.spec.resourceClaims which is empty"
                ),
            ],
            id="claims",
        ),
        pytest.param(
            {
                "os": {"name": "windows"},
                "resources": {"requests": {"cpu": "1"}},
                "containers": [{"name": "c", "image": "i", "resources": {}}],
            },
            ["spec.resources: Forbidden: may not be set for a windows pod"],
            id="on Windows",
        ),
        pytest.param(
            {
                "resources": {"requests": {"cpu": "2"}},
                "initContainers": [
                    {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                    {"name": "i", "image": "i", "resources": {"requests": {"cpu": "2"}}},
                ],
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
            },
            [
                (
                    'spec.resources.requests[cpu]: Invalid value: "2": must be greater than or equal to '
                    "aggregate container requests of 3"
                )
            ],
            id="the largest moment counts: sidecars beside a greedy init container",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
