"""What is wrong with the containers of a pod together."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {"initContainers": [], "containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]},
            ['spec.containers[1].name: Duplicate value: "a"'],
            id="two of one name",
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
            id="one port of the host for two",
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
            id="init containers run one after the other and may share",
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
            id="ephemeral containers have a short list of fields",
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
            id="rules of an init container without a policy are not read",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
