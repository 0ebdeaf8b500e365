"""What is wrong with probes and hooks."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("container", "faults"),
    [
        pytest.param({"livenessProbe": {"httpGet": {"port": 80}}}, [], id="a sound probe"),
        pytest.param(
            {"livenessProbe": {}},
            ["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
            id="a probe that asks nothing",
        ),
        pytest.param(
            {"livenessProbe": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 80}}},
            [("spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type")],
            id="a probe that asks twice",
        ),
        pytest.param(
            {"readinessProbe": {"exec": {}}},
            ["spec.containers[0].readinessProbe.exec.command: Required value"],
            id="a command without words",
        ),
        pytest.param(
            {
                "startupProbe": {
                    "httpGet": {"port": "x y", "scheme": "FTP", "httpHeaders": [{"name": "a b", "value": "c"}]}
                }
            },
            [
                (
                    'spec.containers[0].startupProbe.httpGet.port: Invalid value: "x y": must contain only '
                    "alpha-numeric characters (a-z, 0-9), and hyphens (-)"
                ),
                (
                    'spec.containers[0].startupProbe.httpGet.scheme: Unsupported value: "FTP": supported '
                    'values: "HTTP", "HTTPS"'
                ),
                (
                    'spec.containers[0].startupProbe.httpGet.httpHeaders: Invalid value: "a b": a valid '
                    "HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
                    "regex used for validation is '[-A-Za-z0-9]+')"
                ),
            ],
            id="a bad port, scheme and header",
        ),
        pytest.param(
            {
                "readinessProbe": {
                    "exec": {"command": ["a"]},
                    "initialDelaySeconds": -1,
                    "timeoutSeconds": -1,
                    "periodSeconds": -1,
                    "failureThreshold": -1,
                    "successThreshold": -1,
                }
            },
            [
                (
                    "spec.containers[0].readinessProbe.initialDelaySeconds: Invalid value: -1: must be "
                    "greater than or equal to 0"
                ),
                (
                    "spec.containers[0].readinessProbe.timeoutSeconds: Invalid value: -1: must be greater "
                    "than or equal to 0"
                ),
                (
                    "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater "
                    "than or equal to 0"
                ),
                (
                    "spec.containers[0].readinessProbe.successThreshold: Invalid value: -1: must be "
                    "greater than or equal to 0"
                ),
                (
                    "spec.containers[0].readinessProbe.failureThreshold: Invalid value: -1: must be "
                    "greater than or equal to 0"
                ),
            ],
            id="figures below zero",
        ),
        pytest.param(
            {"livenessProbe": {"exec": {"command": ["a"]}, "successThreshold": 2}},
            ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"],
            id="a liveness probe that must succeed twice",
        ),
        pytest.param(
            {"readinessProbe": {"exec": {"command": ["a"]}, "successThreshold": 2}},
            [],
            id="a readiness probe that must succeed twice",
        ),
        pytest.param(
            {"startupProbe": {"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 0}},
            [
                (
                    "spec.containers[0].startupProbe.terminationGracePeriodSeconds: Invalid value: 0: must "
                    "be greater than 0"
                )
            ],
            id="a grace period of nothing",
        ),
        pytest.param(
            {"readinessProbe": {"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 10}},
            [
                (
                    "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 10: "
                    "must not be set for readinessProbes"
                )
            ],
            id="a readiness probe ends nothing",
        ),
        pytest.param(
            {"livenessProbe": {"grpc": {"port": 0}}},
            [("spec.containers[0].livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive")],
            id="grpc on port 0",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {}}},
            ["spec.containers[0].lifecycle.preStop: Required value: must specify a handler type"],
            id="an empty hook",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
            [
                (
                    "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative "
                    "and less than terminationGracePeriodSeconds (30)"
                )
            ],
            id="sleep that outlasts the grace period",
        ),
        pytest.param({"lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}, [], id="sleep of no time"),
    ],
)
def test_containers(container: Document, faults: list[str]) -> None:
    assert faults_of(pod(container=container)) == faults
