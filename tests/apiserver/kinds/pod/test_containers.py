"""Tests of kinds.pod.containers."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import errors_of, pod


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        pytest.param({"livenessProbe": {"httpGet": {"port": 80}}}, [], id="a valid probe"),
        pytest.param(
            {"livenessProbe": {}},
            ["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
            id="a probe without a handler",
        ),
        pytest.param(
            {"livenessProbe": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 80}}},
            [("spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type")],
            id="a probe with two handlers",
        ),
        pytest.param(
            {"readinessProbe": {"exec": {}}},
            ["spec.containers[0].readinessProbe.exec.command: Required value"],
            id="an empty command",
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
            id="negative numbers",
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
            id="a grace period of zero",
        ),
        pytest.param(
            {"readinessProbe": {"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 10}},
            [
                (
                    "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 10: "
                    "must not be set for readinessProbes"
                )
            ],
            id="a grace period of a readiness probe",
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
        pytest.param({"lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}, [], id="sleep of zero seconds"),
    ],
)
def test_probes_and_lifecycle_hooks_are_validated(container: Document, errors: list[str]) -> None:
    assert errors_of(pod(container=container)) == errors


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"name": ""}, ["spec.containers[0].name: Required value"], id="no name"),
        pytest.param(
            {"name": "Web"},
            [
                (
                    'spec.containers[0].name: Invalid value: "Web": a lowercase RFC 1123 label must '
                    "consist of lower case alphanumeric characters or '-', and must start and end with an "
                    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
            id="a name with capitals",
        ),
        pytest.param({"image": ""}, ["spec.containers[0].image: Required value"], id="no image"),
        pytest.param(
            {"image": " nginx "},
            [('spec.containers[0].image: Invalid value: " nginx ": must not have leading or trailing whitespace')],
            id="space around the image",
        ),
        pytest.param(
            {"imagePullPolicy": "Sometimes"},
            [
                (
                    'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: '
                    '"Always", "IfNotPresent", "Never"'
                )
            ],
            id="an unknown pull policy",
        ),
        pytest.param(
            {"terminationMessagePolicy": "X"},
            [
                (
                    'spec.containers[0].terminationMessagePolicy: Unsupported value: "X": supported '
                    'values: "File", "FallbackToLogsOnError"'
                )
            ],
            id="an unknown message policy",
        ),
        pytest.param(
            {
                "ports": [
                    {"containerPort": 0},
                    {"containerPort": 70000, "name": "A_"},
                    {"containerPort": 1, "hostPort": -1, "protocol": "ICMP"},
                ]
            },
            [
                "spec.containers[0].ports[0].containerPort: Required value",
                (
                    'spec.containers[0].ports[1].name: Invalid value: "A_": must contain only '
                    "alpha-numeric characters (a-z, 0-9), and hyphens (-)"
                ),
                ('spec.containers[0].ports[1].name: Invalid value: "A_": must contain at least one letter (a-z)'),
                (
                    "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 "
                    "and 65535, inclusive"
                ),
                ("spec.containers[0].ports[2].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"),
                (
                    'spec.containers[0].ports[2].protocol: Unsupported value: "ICMP": supported values: '
                    '"SCTP", "TCP", "UDP"'
                ),
            ],
            id="invalid ports",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            ['spec.containers[0].ports[1].name: Duplicate value: "a"'],
            id="duplicate names of ports",
        ),
        pytest.param(
            {"resizePolicy": [{"resourceName": "disk", "restartPolicy": "Maybe"}]},
            [
                ('spec.containers[0].resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"'),
                (
                    'spec.containers[0].resizePolicy: Unsupported value: "Maybe": supported values: '
                    '"NotRequired", "RestartContainer"'
                ),
            ],
            id="a resize policy of an unknown resource",
        ),
        pytest.param(
            {
                "resizePolicy": [
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                ]
            },
            ['spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"'],
            id="two resize policies for cpu",
        ),
        pytest.param(
            {"restartPolicy": "Sometimes"},
            [
                (
                    'spec.containers[0].restartPolicy: Unsupported value: "Sometimes": supported values: '
                    '"Always", "Never", "OnFailure"'
                )
            ],
            id="an unknown restart policy",
        ),
        pytest.param(
            {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
            [
                (
                    "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when "
                    "restart rules are used"
                )
            ],
            id="rules without a policy",
        ),
        pytest.param(
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [{"action": "X", "exitCodes": {"operator": "Y"}}, {"action": "Restart"}],
            },
            [
                (
                    'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "X": supported '
                    'values: "Restart", "RestartAllContainers"'
                ),
                (
                    'spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Y": '
                    'supported values: "In", "NotIn"'
                ),
                "spec.containers[0].restartPolicyRules[1].exitCodes: Required value: must be specified",
            ],
            id="invalid rules",
        ),
        pytest.param(
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                ],
            },
            ["spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"],
            id="too many rules",
        ),
    ],
)
def test_common_fields_of_containers_are_validated(container: Document, errors: list[str]) -> None:
    assert errors_of(pod(container=container)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {"initContainers": [], "containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]},
            ['spec.containers[1].name: Duplicate value: "a"'],
            id="duplicate names",
        ),
        pytest.param(
            {
                "initContainers": [
                    {"name": "a", "image": "i"},
                    {"name": "i", "image": "i"},
                    {"name": "i", "image": "i"},
                ],
                "containers": [{"name": "a", "image": "i"}],
            },
            ['spec.initContainers[0].name: Duplicate value: "a"', 'spec.initContainers[2].name: Duplicate value: "i"'],
            id="an init container named like another one",
        ),
        pytest.param(
            {
                "initContainers": [
                    {
                        "name": "i",
                        "image": "i",
                        "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
                        "livenessProbe": {"exec": {"command": ["x"]}},
                    }
                ],
                "containers": [{"name": "a", "image": "i"}],
            },
            [
                (
                    "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers "
                    "without restartPolicy=Always"
                ),
                (
                    "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers "
                    "without restartPolicy=Always"
                ),
            ],
            id="a hook and probes of a plain init container",
        ),
        pytest.param(
            {
                "initContainers": [
                    {
                        "name": "i",
                        "image": "i",
                        "restartPolicy": "Always",
                        "livenessProbe": {"exec": {"command": ["x"]}},
                    }
                ],
                "containers": [{"name": "a", "image": "i"}],
            },
            [],
            id="a sidecar may have probes",
        ),
        pytest.param(
            {
                "initContainers": [],
                "containers": [
                    {"name": "a", "image": "i", "ports": [{"containerPort": 1, "hostPort": 9}]},
                    {"name": "b", "image": "i", "ports": [{"containerPort": 2, "hostPort": 9}]},
                ],
            },
            ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//9"'],
            id="a host port used twice",
        ),
        pytest.param(
            {
                "initContainers": [
                    {"name": "i", "image": "i", "ports": [{"containerPort": 1, "hostPort": 9}]},
                    {"name": "j", "image": "i", "ports": [{"containerPort": 1, "hostPort": 9}]},
                ],
                "containers": [{"name": "a", "image": "i"}],
            },
            [],
            id="init containers may share a host port",
        ),
        pytest.param(
            {
                "initContainers": [
                    {
                        "name": "i",
                        "image": "i",
                        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
                    }
                ],
                "containers": [{"name": "a", "image": "i"}],
            },
            [
                (
                    "spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "
                    "\"RestartContainer\": must not be set to 'RestartContainer' for non-sidecar "
                    "initContainers"
                )
            ],
            id="an init container that restarts to be resized",
        ),
        pytest.param(
            {
                "containers": [{"name": "a", "image": "i"}],
                "ephemeralContainers": [
                    {
                        "name": "a",
                        "image": "i",
                        "targetContainerName": "z",
                        "ports": [{"containerPort": 1}],
                        "resources": {"limits": {"cpu": "1"}},
                        "livenessProbe": {"exec": {"command": ["x"]}},
                    }
                ],
            },
            [
                'spec.ephemeralContainers[0].name: Duplicate value: "a"',
                'spec.ephemeralContainers[0].targetContainerName: Not found: "z"',
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                ("spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container"),
                ("spec.ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container"),
            ],
            id="forbidden fields of ephemeral containers",
        ),
        pytest.param(
            {
                "initContainers": [{"name": "i", "image": "i", "restartPolicyRules": [{"action": "X"}]}],
                "containers": [{"name": "a", "image": "i"}],
            },
            [
                (
                    "spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when "
                    "restart rules are used"
                )
            ],
            id="restart rules of an init container without a policy",
        ),
    ],
)
def test_containers_of_pods_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors
