"""Tests of kinds.pod.warnings."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.warnings import (
    overlap_warnings,
    pod_spec_warnings,
    pod_template_warnings,
    port_warnings,
    volume_warnings,
)
from tests.apiserver.pod_builders import pod

FIRST = "spec.containers[0].ports[0]"
SECOND = "spec.containers[0].ports[1]"


@pytest.mark.parametrize(
    ("one", "other", "warnings"),
    [
        pytest.param({}, {"containerPort": 81}, [], id="two ports"),
        pytest.param({}, {}, [f"{SECOND}: duplicate port definition with {FIRST}"], id="one port twice"),
        pytest.param(
            {}, {"hostPort": 8}, [f"{SECOND}: overlapping port definition with {FIRST}"], id="one with a host port"
        ),
        pytest.param(
            {"hostPort": 8, "hostIP": "1.1.1.1"},
            {"hostPort": 8},
            [f"{SECOND}: dangerously ambiguous port definition with {FIRST}"],
            id="on one address and on all",
        ),
        pytest.param(
            {"name": "a"},
            {"name": "a", "protocol": "UDP"},
            [
                f'{SECOND}: duplicate port name "a" with {FIRST}, '
                f"services and probes that select ports by name will use {FIRST}"
            ],
            id="duplicate names",
        ),
        pytest.param(
            {"hostIP": "1.1.1.1"},
            {"containerPort": 81},
            [
                f"{FIRST}: hostIP set without hostPort: "
                "{Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}"
            ],
            id="hostIP without hostPort",
        ),
    ],
)
def test_port_warnings_of_overlapping_ports(one: Document, other: Document, warnings: list[str]) -> None:
    ports = [{"containerPort": 80, **one}, {"containerPort": 80, **other}]
    assert port_warnings(pod(container={"ports": ports})["spec"], "spec") == warnings


@pytest.mark.parametrize(
    ("source", "warnings"),
    [
        pytest.param({"emptyDir": {}}, [], id="a supported source"),
        pytest.param(
            {"gitRepo": {}},
            ["v[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
            id="a repository",
        ),
        pytest.param(
            {"storageos": {}},
            ["v[0].storageOS: deprecated in v1.22, non-functional in v1.25+"],
            id="a source with another spelling in the path",
        ),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1500m"}}}}}},
            [
                "v[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: "
                'fractional byte value "1500m" is invalid, must be an integer'
            ],
            id="a claim with a fractional size",
        ),
    ],
)
def test_volume_warnings_of_deprecated_sources(source: Document, warnings: list[str]) -> None:
    assert volume_warnings([{"name": "x", **source}], "v") == warnings


@pytest.mark.parametrize(
    ("source", "warnings"),
    [
        pytest.param({"configMap": {"name": "c", "items": [{"path": "a"}, {"path": "ab"}]}}, [], id="two files"),
        pytest.param(
            {"configMap": {"name": "c", "items": [{"path": "a"}, {"path": "a/b"}]}},
            ['volume "x" (ConfigMap "c"): overlapping paths: "a/b" with "a"'],
            id="one below the other",
        ),
        pytest.param(
            {"secret": {"secretName": "s", "items": [{"path": "a/"}, {"path": "a"}]}},
            ['volume "x" (Secret "s"): overlapping paths: "a" with "a"'],
            id="one twice",
        ),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"secret": {"name": "s", "items": [{"path": "t"}]}},
                        {"serviceAccountToken": {"path": "t"}},
                        {},
                    ]
                }
            },
            [
                'volume "x" (Projected): overlapping paths: "t" (ServiceAccountToken) with "t" (Secret "s")',
                'volume "x" (Projected) has no sources provided',
            ],
            id="two sources at one path, and an empty source",
        ),
    ],
)
def test_overlap_warnings_of_volume_paths(source: Document, warnings: list[str]) -> None:
    assert overlap_warnings([{"name": "x", **source}]) == warnings


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("spec", "container", "warnings"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param(
            {"nodeSelector": {"node-role.kubernetes.io/master": ""}},
            {},
            ['spec.nodeSelector[node-role.kubernetes.io/master]: use "node-role.kubernetes.io/control-plane" instead'],
            id="a deprecated label of nodes",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]},
            {},
            [
                f"spec.topologySpreadConstraints[0].topologyKey: {ZONE} is deprecated since v1.17; "
                'use "topology.kubernetes.io/zone" instead',
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
            id="a deprecated topology key without a selector",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        PREFERRED: [
                            {"weight": 1, "preference": {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}}
                        ]
                    }
                }
            },
            {},
            [
                f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].key: {ZONE} is "
                'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
            ],
            id="a deprecated label in a preference",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z"}]}}},
            {},
            [f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector: a null labelSelector results in matching no pod"],
            id="pod affinity without a selector",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
            {},
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
            id="secrets twice and without a name",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]},
            {},
            ['spec.hostAliases[1].ip: duplicate ip "1.1.1.1"'],
            id="an address twice",
        ),
        pytest.param(
            {},
            {"resources": {"limits": {"memory": "1500m"}, "requests": {"memory": "1"}}},
            [
                'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, '
                "must be an integer"
            ],
            id="a fractional number of bytes",
        ),
        pytest.param(
            {},
            {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}]},
            ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
            id="a variable that hides another",
        ),
    ],
)
def test_pod_spec_warnings_of_deprecated_and_duplicate_fields(
    spec: Document, container: Document, warnings: list[str]
) -> None:
    made = pod(spec, container)
    assert pod_spec_warnings(made["spec"], made["metadata"]) == warnings


def test_warnings_of_a_template_have_its_path() -> None:
    spec = {**pod()["spec"], "terminationGracePeriodSeconds": -1}
    annotations = {
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
    }
    assert pod_template_warnings({"metadata": {"annotations": annotations}, "spec": spec}, "spec.template") == [
        "spec.template.metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: "
        'non-functional in v1.27+; use the "seccompProfile" field instead',
        "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: "
        'deprecated since v1.30; use the "appArmorProfile" field instead',
        "spec.template.spec.terminationGracePeriodSeconds: "
        "must be >= 0; negative values are invalid and will be treated as 1",
    ]
    assert pod_template_warnings(None, "spec.template") == []
