"""Defaults of containers."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.pod_containers import pull_policy, round_amounts
from tests.apiserver.pod_builders import pod


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "a" * 64, "Always"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("Host/nginx", "Always"),
        ("Nginx", "IfNotPresent"),
        ("", "IfNotPresent"),
        (" nginx", "IfNotPresent"),
        ("a" * 64, "IfNotPresent"),
    ],
)
def test_images_without_a_fixed_tag_are_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("container", "field", "value"),
    [
        pytest.param({}, "terminationMessagePath", "/dev/termination-log", id="where the last words go"),
        pytest.param({}, "terminationMessagePolicy", "File", id="what the last words are"),
        pytest.param({"ports": [{"containerPort": 1}]}, "ports", [{"containerPort": 1, "protocol": "TCP"}], id="ports"),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            "env",
            [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
            id="references are of version v1",
        ),
        pytest.param(
            {"readinessProbe": {"httpGet": {"port": 80}}},
            "readinessProbe",
            {
                "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            id="probes",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"httpGet": {"port": 80}}}},
            "lifecycle",
            {"preStop": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}},
            id="hooks",
        ),
    ],
)
def test_containers(container: Document, field: str, value: object) -> None:
    assert pod(container=container)["spec"]["containers"][0][field] == value


def test_amounts_are_rounded_up_to_thousandths() -> None:
    amounts = {"a": "1n", "b": "1500u", "c": "1Gi", "d": "1.5"}
    round_amounts(amounts)
    assert amounts == {"a": "1m", "b": "2m", "c": "1Gi", "d": "1.5"}
