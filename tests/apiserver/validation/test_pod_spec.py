"""What is wrong with the spec of a pod."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, [], id="a sound one"),
        pytest.param({"containers": []}, ["spec.containers: Required value"], id="no containers"),
        pytest.param(
            {"restartPolicy": "X"},
            [('spec.restartPolicy: Unsupported value: "X": supported values: "Always", "OnFailure", "Never"')],
            id="a restart policy that nobody knows",
        ),
        pytest.param(
            {"serviceAccountName": "A_", "nodeName": "N_", "hostname": "a.b", "subdomain": "A"},
            [
                (
                    'spec.serviceAccountName: Invalid value: "A_": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
                (
                    'spec.nodeName: Invalid value: "N_": a lowercase RFC 1123 subdomain must consist of '
                    "lower case alphanumeric characters, '-' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
                'spec.hostname: Invalid value: "a.b": must not contain dots',
                (
                    'spec.subdomain: Invalid value: "A": a lowercase RFC 1123 label must consist of lower '
                    "case alphanumeric characters or '-', and must start and end with an alphanumeric "
                    "character (e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                ),
            ],
            id="names that cannot be",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            [("spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive")],
            id="a deadline that is over",
        ),
        pytest.param(
            {"readinessGates": [{"conditionType": "a b"}], "schedulingGates": [{"name": "a"}, {"name": "a"}]},
            [
                (
                    'spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                'spec.schedulingGates[1]: Duplicate value: "a"',
            ],
            id="gates that cannot be",
        ),
        pytest.param(
            {"nodeSelector": {"a": "b c"}},
            [
                (
                    'spec.nodeSelector: Invalid value: "b c": a valid label must be an empty string or '
                    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="a label that no node can have",
        ),
        pytest.param(
            {
                "resourceClaims": [
                    {"name": "a", "resourceClaimName": "x"},
                    {"name": "a", "resourceClaimTemplateName": "Y_"},
                ]
            },
            [
                'spec.resourceClaims[1].name: Duplicate value: "a"',
                (
                    'spec.resourceClaims[1].resourceClaimTemplateName: Invalid value: "Y_": a lowercase '
                    "RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
                    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
            ],
            id="a claim from nowhere",
        ),
        pytest.param(
            {"preemptionPolicy": "X"},
            [('spec.preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"')],
            id="a preemption policy that nobody knows",
        ),
        pytest.param(
            {"overhead": {"cpu": "-1"}},
            ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
            id="overhead below zero",
        ),
        pytest.param(
            {"os": {"name": "mac"}},
            ['spec.os: Unsupported value: "mac": supported values: "linux", "windows"'],
            id="an operating system that nobody knows",
        ),
        pytest.param(
            {"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}},
            [("spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod")],
            id="options of Windows on Linux",
        ),
        pytest.param(
            {
                "os": {"name": "windows"},
                "hostPID": True,
                "securityContext": {"fsGroup": 1, "sysctls": [{"name": "a", "value": "b"}]},
            },
            [
                "spec.hostPID: Forbidden: cannot be set for a windows pod",
                "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
                "spec.securityContext.sysctls: Forbidden: cannot be set for a windows pod",
            ],
            id="options of Linux on Windows",
        ),
        pytest.param(
            {"hostUsers": False, "hostNetwork": True, "hostPID": True, "hostIPC": True},
            [
                "spec.hostNetwork: Forbidden: when `hostUsers` is false",
                "spec.HostPID: Forbidden: when `hostUsers` is false",
                "spec.HostIPC: Forbidden: when `hostUsers` is false",
            ],
            id="users of its own beside the namespaces of the host",
        ),
        pytest.param(
            {"hostPID": True, "shareProcessNamespace": True},
            [
                (
                    "spec.securityContext.shareProcessNamespace: Invalid value: true: "
                    "ShareProcessNamespace and HostPID cannot both be enabled"
                )
            ],
            id="one process namespace for two",
        ),
        pytest.param(
            {"securityContext": {"fsGroup": -1, "supplementalGroups": [-1], "fsGroupChangePolicy": "X"}},
            [
                ("spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive"),
                (
                    "spec.securityContext.supplementalGroups[0]: Invalid value: -1: must be between 0 and "
                    "2147483647, inclusive"
                ),
                (
                    'spec.securityContext.fsGroupChangePolicy: Unsupported value: "X": supported values: '
                    '"Always", "OnRootMismatch"'
                ),
            ],
            id="a group out of range",
        ),
        pytest.param(
            {"securityContext": {"seLinuxChangePolicy": "MountOption"}},
            [
                (
                    'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported '
                    'values: "Recursive"'
                )
            ],
            id="labels of SELinux changed by mounting, which is not on yet",
        ),
        pytest.param(
            {
                "hostNetwork": True,
                "securityContext": {
                    "sysctls": [{"name": "net.ipv4.x", "value": "1"}, {"name": "Bad Name", "value": "1"}]
                },
            },
            [
                (
                    'spec.securityContext.sysctls[0].name: Invalid value: "net.ipv4.x": may not be '
                    "specified when 'hostNetwork' is true"
                ),
                (
                    'spec.securityContext.sysctls[1].name: Invalid value: "Bad Name": must have at most '
                    "253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0"
                    "-9]*[a-z0-9])?$"
                ),
            ],
            id="kernel parameters of the host",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "env": [
                            {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K"}}}
                        ],
                    }
                ]
            },
            ['spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: "v"'],
            id="a variable from a volume that is not there",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
