"""What is wrong with requests and limits."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("container", "faults"),
    [
        pytest.param({"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}}, [], id="a sound request"),
        pytest.param(
            {"resources": {"requests": {"cpu": "-1"}}},
            [('spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0')],
            id="below zero",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            [
                (
                    'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal '
                    "to cpu limit of 1"
                )
            ],
            id="a request above its limit",
        ),
        pytest.param(
            {"resources": {"requests": {"gpus": "1"}}},
            [
                (
                    'spec.containers[0].resources.requests[gpus]: Invalid value: "gpus": must be a '
                    "standard resource type or fully qualified"
                ),
                (
                    'spec.containers[0].resources.requests[gpus]: Invalid value: "gpus": must be a '
                    "standard resource for containers"
                ),
            ],
            id="a short name that nobody knows",
        ),
        pytest.param(
            {"resources": {"limits": {"pods": "1"}}},
            [
                (
                    'spec.containers[0].resources.limits[pods]: Invalid value: "pods": must be a standard '
                    "resource for containers"
                ),
                (
                    'spec.containers[0].resources.requests[pods]: Invalid value: "pods": must be a '
                    "standard resource for containers"
                ),
            ],
            id="a resource that is counted, not used",
        ),
        pytest.param(
            {"resources": {"limits": {"example.com/gpu": "500m"}}},
            [
                ('spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer'),
                ('spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": must be an integer'),
            ],
            id="half a device",
        ),
        pytest.param(
            {"resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}},
            [
                (
                    'spec.containers[0].resources.requests: Invalid value: "1": must be equal to '
                    "example.com/gpu limit of 2"
                )
            ],
            id="fewer devices requested than allowed",
        ),
        pytest.param(
            {"resources": {"requests": {"example.com/gpu": "1"}}},
            [
                (
                    "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                    "overcommitable resources"
                )
            ],
            id="a device without a limit",
        ),
        pytest.param(
            {"resources": {"limits": {"requests.example.com/x": "1"}}},
            [
                (
                    "spec.containers[0].resources.limits[requests.example.com/x]: Invalid value: "
                    '"requests.example.com/x": doesn\'t follow extended resource name standard'
                ),
                (
                    "spec.containers[0].resources.requests[requests.example.com/x]: Invalid value: "
                    '"requests.example.com/x": doesn\'t follow extended resource name standard'
                ),
            ],
            id="a vendor called requests",
        ),
        pytest.param(
            {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}},
            ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
            id="huge pages without cpu",
        ),
        pytest.param(
            {"resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}},
            [
                (
                    'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not '
                    "positive integer multiple of hugepages-2Mi"
                ),
                (
                    'spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is '
                    "not positive integer multiple of hugepages-2Mi"
                ),
            ],
            id="one and a half huge pages",
        ),
        pytest.param(
            {"resources": {"limits": {"hugepages-x": "2Mi", "cpu": "1"}}},
            [
                (
                    'spec.containers[0].resources.limits[hugepages-x]: Invalid value: "2Mi": 2Mi is not '
                    "positive integer multiple of hugepages-x"
                ),
                (
                    'spec.containers[0].resources.requests[hugepages-x]: Invalid value: "2Mi": 2Mi is not '
                    "positive integer multiple of hugepages-x"
                ),
            ],
            id="huge pages without a size",
        ),
        pytest.param(
            {"resources": {"claims": [{"name": "a"}]}},
            [
                (
                    'spec.containers[0].resources.claims[0]: Not found: "a": must be one of the names in '
                    "pod.spec.resourceClaims which is empty"
                )
            ],
            id="a claim that the pod does not have",
        ),
        pytest.param(
            {"resources": {"claims": [{"name": ""}]}},
            ["spec.containers[0].resources.claims[0]: Required value"],
            id="a nameless claim",
        ),
    ],
)
def test_containers(container: Document, faults: list[str]) -> None:
    assert faults_of(pod(container=container)) == faults
