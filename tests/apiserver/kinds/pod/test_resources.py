"""Tests of kinds.pod.resources and kinds.pod.options."""

from __future__ import annotations

from dataclasses import fields

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import STRICT, STRICT_POD, PodOptions, every_container
from mooring.apiserver.kinds.pod.resources import quality_of_service
from tests.apiserver.pod_builders import errors_of, pod


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        pytest.param({"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}}, [], id="a valid request"),
        pytest.param(
            {"resources": {"requests": {"cpu": "-1"}}},
            [('spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0')],
            id="a negative request",
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
            id="an unknown short name",
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
            id="a resource that only quotas count",
        ),
        pytest.param(
            {"resources": {"limits": {"example.com/gpu": "500m"}}},
            [
                ('spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer'),
                ('spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": must be an integer'),
            ],
            id="a fractional device",
        ),
        pytest.param(
            {"resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}},
            [
                (
                    'spec.containers[0].resources.requests: Invalid value: "1": must be equal to '
                    "example.com/gpu limit of 2"
                )
            ],
            id="a device request below its limit",
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
            id="a vendor with the prefix requests",
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
            id="huge pages that are no multiple of their size",
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
            id="an unknown claim",
        ),
        pytest.param(
            {"resources": {"claims": [{"name": ""}]}},
            ["spec.containers[0].resources.claims[0]: Required value"],
            id="a claim without a name",
        ),
    ],
)
def test_resources_of_containers_are_validated(container: Document, errors: list[str]) -> None:
    assert errors_of(pod(container=container)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {
                "resources": {"requests": {"cpu": "1"}},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
            },
            [],
            id="requests above those of the containers",
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
            id="a resource that only containers support",
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
            id="sidecars and the largest init container add up",
        ),
    ],
)
def test_pod_level_resources_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "resources", "quality"),
    [
        pytest.param({}, {}, "BestEffort", id="no resources"),
        pytest.param({}, {"requests": {"cpu": "0"}}, "BestEffort", id="a request of zero"),
        pytest.param({}, {"limits": {"example.com/gpu": "1"}}, "BestEffort", id="devices do not count"),
        pytest.param({}, {"requests": {"cpu": "1"}}, "Burstable", id="a request"),
        pytest.param({}, {"limits": {"cpu": "1"}}, "Burstable", id="one limit"),
        pytest.param({}, {"limits": BOTH}, "Guaranteed", id="both limits, which are requests too"),
        pytest.param({}, {"limits": BOTH, "requests": {"cpu": "500m"}}, "Burstable", id="a smaller request"),
        pytest.param(
            {},
            {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": BOTH},
            "Guaranteed",
            id="equal amounts in other units",
        ),
        pytest.param({"resources": {"limits": BOTH}}, {}, "Guaranteed", id="limits of the pod as a whole"),
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}}},
            {"limits": BOTH},
            "Burstable",
            id="pod-level requests count first",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x"}]}, {"limits": BOTH}, "Burstable", id="init containers count"
        ),
    ],
)
def test_quality_of_service_follows_requests_and_limits(spec: Document, resources: Document, quality: str) -> None:
    assert quality_of_service(pod(spec, {"resources": resources})["spec"]) == quality


def test_strict_options_tolerate_nothing() -> None:
    tolerances = [field.name for field in fields(PodOptions) if field.name.startswith("tolerates_")]
    assert not any(getattr(STRICT, name) or getattr(STRICT_POD, name) for name in tolerances)
    assert (STRICT.is_pod, STRICT_POD.is_pod) == (False, True)


def test_every_container_lists_init_containers_first_and_ephemeral_ones_last() -> None:
    spec = {"containers": [{"name": "c"}], "ephemeralContainers": [{"name": "e"}], "initContainers": [{"name": "i"}]}
    assert [(container["name"], path) for container, path in every_container(spec, "s")] == [
        ("i", "s.initContainers[0]"),
        ("c", "s.containers[0]"),
        ("e", "s.ephemeralContainers[0]"),
    ]
