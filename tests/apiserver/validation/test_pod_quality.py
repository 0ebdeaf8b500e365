"""The quality of service of a pod."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod_quality import quality_of_service
from tests.apiserver.pod_builders import pod

BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "resources", "quality"),
    [
        pytest.param({}, {}, "BestEffort", id="nothing asked for"),
        pytest.param({}, {"requests": {"cpu": "0"}}, "BestEffort", id="nothing at all"),
        pytest.param({}, {"limits": {"example.com/gpu": "1"}}, "BestEffort", id="devices do not count"),
        pytest.param({}, {"requests": {"cpu": "1"}}, "Burstable", id="a request"),
        pytest.param({}, {"limits": {"cpu": "1"}}, "Burstable", id="one limit"),
        pytest.param({}, {"limits": BOTH}, "Guaranteed", id="both limits, which are requests too"),
        pytest.param({}, {"limits": BOTH, "requests": {"cpu": "500m"}}, "Burstable", id="a smaller request"),
        pytest.param(
            {}, {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": BOTH}, "Guaranteed", id="other words"
        ),
        pytest.param({"resources": {"limits": BOTH}}, {}, "Guaranteed", id="limits of the pod as a whole"),
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}}}, {"limits": BOTH}, "Burstable", id="the pod counts first"
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x"}]}, {"limits": BOTH}, "Burstable", id="init containers count"
        ),
    ],
)
def test_quality(spec: Document, resources: Document, quality: str) -> None:
    assert quality_of_service(pod(spec, {"resources": resources})["spec"]) == quality
