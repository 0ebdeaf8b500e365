"""What is wrong with one container."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("container", "faults"),
    [
        pytest.param({}, [], id="a sound one"),
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
            id="a pull policy that nobody knows",
        ),
        pytest.param(
            {"terminationMessagePolicy": "X"},
            [
                (
                    'spec.containers[0].terminationMessagePolicy: Unsupported value: "X": supported '
                    'values: "File", "FallbackToLogsOnError"'
                )
            ],
            id="a message policy that nobody knows",
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
            id="ports of all bad sorts",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            ['spec.containers[0].ports[1].name: Duplicate value: "a"'],
            id="two ports of one name",
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
            id="a resize policy for something else",
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
            id="a restart policy that nobody knows",
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
            id="bad rules",
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
def test_containers(container: Document, faults: list[str]) -> None:
    assert faults_of(pod(container=container)) == faults
