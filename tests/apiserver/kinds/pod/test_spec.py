"""Tests of kinds.pod.spec."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import STRICT_POD
from mooring.apiserver.kinds.pod.spec import (
    validate_new_pod,
    validate_pod_annotations,
    validate_pod_annotations_update,
    validate_profiles_match,
)
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import changed, errors_of, pod, stored


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({"dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b.", "_x.y", "."]}}, [], id="valid"),
        pytest.param(
            {"dnsPolicy": "X"},
            [
                (
                    'spec.dnsPolicy: Unsupported value: "X": supported values: "ClusterFirstWithHostNet", '
                    '"ClusterFirst", "Default", "None"'
                )
            ],
            id="an unknown policy",
        ),
        pytest.param(
            {"dnsPolicy": "None"},
            ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
            id="policy None without a config",
        ),
        pytest.param(
            {"dnsPolicy": "None", "dnsConfig": {}},
            [
                (
                    "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver "
                    "when `dnsPolicy` is None"
                )
            ],
            id="policy None without name servers",
        ),
        pytest.param(
            {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}},
            [
                (
                    'spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","1.1.1.2","1.1.1.3","1.1.1.4"]: '
                    "must not have more than 3 nameservers"
                )
            ],
            id="four name servers",
        ),
        pytest.param(
            {"dnsConfig": {"nameservers": ["010.1.1.1", "x"], "options": [{"value": "x"}]}},
            [
                'spec.dnsConfig.nameservers[0]: Invalid value: "010.1.1.1": must not have leading 0s',
                (
                    'spec.dnsConfig.nameservers[1]: Invalid value: "x": must be a valid IP address, (e.g. '
                    "10.9.8.7 or 2001:db8::ffff)"
                ),
                "spec.dnsConfig.options[0]: Required value: must not be empty",
            ],
            id="invalid name servers",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "1.2.3", "hostnames": ["A_"]}]},
            [
                (
                    'spec.hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. '
                    "10.9.8.7 or 2001:db8::ffff)"
                ),
                (
                    'spec.hostAliases[0].hostnames[0]: Invalid value: "A_": a lowercase RFC 1123 subdomain '
                    "must consist of lower case alphanumeric characters, '-' or '.', and must start and "
                    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
            ],
            id="an invalid host alias",
        ),
        pytest.param(
            {"hostnameOverride": "A_", "setHostnameAsFQDN": True},
            [
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                (
                    'spec.hostnameOverride: Invalid value: "A_": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
            ],
            id="hostnameOverride and setHostnameAsFQDN",
        ),
        pytest.param(
            {
                "hostNetwork": True,
                "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}],
            },
            [
                (
                    "spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` "
                    "when `hostNetwork` is true"
                )
            ],
            id="host ports that differ from container ports",
        ),
    ],
)
def test_dns_host_aliases_and_hostnames_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"containers": []}, ["spec.containers: Required value"], id="no containers"),
        pytest.param(
            {"restartPolicy": "X"},
            [('spec.restartPolicy: Unsupported value: "X": supported values: "Always", "OnFailure", "Never"')],
            id="an unknown restart policy",
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
            id="invalid names",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            [("spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive")],
            id="a deadline of zero",
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
            id="invalid gates",
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
            id="an invalid label value",
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
            id="a claim with an invalid template name",
        ),
        pytest.param(
            {"preemptionPolicy": "X"},
            [('spec.preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"')],
            id="an unknown preemption policy",
        ),
        pytest.param(
            {"overhead": {"cpu": "-1"}},
            ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
            id="negative overhead",
        ),
        pytest.param(
            {"os": {"name": "mac"}},
            ['spec.os: Unsupported value: "mac": supported values: "linux", "windows"'],
            id="an unknown operating system",
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
            id="hostUsers of false with host namespaces",
        ),
        pytest.param(
            {"hostPID": True, "shareProcessNamespace": True},
            [
                (
                    "spec.securityContext.shareProcessNamespace: Invalid value: true: "
                    "ShareProcessNamespace and HostPID cannot both be enabled"
                )
            ],
            id="hostPID and shareProcessNamespace",
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
            id="an SELinux policy behind a disabled feature gate",
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
            id="a variable from an unknown volume",
        ),
    ],
)
def test_pod_specs_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


MIRROR = "kubernetes.io/config.mirror"
COST = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


@pytest.mark.parametrize(
    ("annotations", "errors"),
    [
        pytest.param({"x": "y"}, [], id="an unknown annotation"),
        pytest.param(
            {MIRROR: "x"},
            [f'a[{MIRROR}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set'],
            id="a mirror pod without a node",
        ),
        pytest.param({COST: "-12"}, [], id="a cost"),
        pytest.param({COST: "+1"}, [f'a[{COST}]: Invalid value: "+1": must be a 32bit integer'], id="a signed cost"),
        pytest.param({COST: "008"}, [f'a[{COST}]: Invalid value: "008": must be a 32bit integer'], id="a padded cost"),
        pytest.param(
            {SECCOMP: "x"},
            [f'a.{SECCOMP}: Invalid value: "x": must be a valid seccomp profile'],
            id="an unknown seccomp profile",
        ),
        pytest.param(
            {f"{APPARMOR}z": "foo"},
            [
                f'a[{APPARMOR}z]: Invalid value: "z": container not found',
                f'a[{APPARMOR}z]: Invalid value: "foo": invalid AppArmor profile name: "foo"',
            ],
            id="an unknown profile for an unknown container",
        ),
    ],
)
def test_annotations_of_pods_are_validated(annotations: dict[str, str], errors: list[str]) -> None:
    assert messages(validate_pod_annotations(annotations, pod()["spec"], "a")) == errors


@pytest.mark.parametrize(
    ("annotations", "spec", "container", "errors"),
    [
        pytest.param({SECCOMP: "unconfined"}, {}, {}, [], id="only an annotation"),
        pytest.param(
            {SECCOMP: "unconfined"},
            {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
            {},
            ["spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"],
            id="two seccomp profiles",
        ),
        pytest.param(
            {f"{APPARMOR}c": "localhost/a"},
            {},
            {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "b"}}},
            [
                "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: "
                "apparmor profile in annotation and field must match"
            ],
            id="two local AppArmor profiles",
        ),
    ],
)
def test_profiles_in_annotations_and_fields_must_match(
    annotations: dict[str, str], spec: Document, container: Document, errors: list[str]
) -> None:
    assert messages(validate_profiles_match(annotations, pod(spec, container)["spec"], "spec")) == errors


def test_mirror_and_apparmor_annotations_are_immutable() -> None:
    old = stored(pod({"nodeName": "n"}, metadata={"annotations": {MIRROR: "x"}}))
    new = changed(old, metadata={"annotations": {f"{APPARMOR}c": "unconfined"}})
    assert messages(validate_pod_annotations_update(new, old, "a", STRICT_POD)) == [
        f"a[{MIRROR}]: Forbidden: may not remove or update mirror pod annotation",
        f"a[{APPARMOR}c]: Forbidden: may not add AppArmor annotations",
    ]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"ephemeralContainers": [{"name": "e", "image": "x"}]},
            ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
            id="ephemeral containers",
        ),
        pytest.param(
            {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
            ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
            id="a node and a scheduling gate",
        ),
    ],
)
def test_new_pods_are_validated(spec: Document, errors: list[str]) -> None:
    assert messages(validate_new_pod(pod(spec)["spec"], pod(spec)["metadata"])) == errors
