"""What is unwise about a pod."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.strategies.pod_warnings import pod_spec_warnings, pod_template_warnings
from tests.apiserver.pod_builders import pod

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
            id="an old label of nodes",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]},
            {},
            [
                f"spec.topologySpreadConstraints[0].topologyKey: {ZONE} is deprecated since v1.17; "
                'use "topology.kubernetes.io/zone" instead',
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
            id="an old topology, and no pods to spread",
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
            id="an old label in a preference",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z"}]}}},
            {},
            [f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector: a null labelSelector results in matching no pod"],
            id="affinity to no pods",
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
            id="half a byte",
        ),
        pytest.param(
            {},
            {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}]},
            ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
            id="a variable that hides another",
        ),
    ],
)
def test_specs(spec: Document, container: Document, warnings: list[str]) -> None:
    made = pod(spec, container)
    assert pod_spec_warnings(made["spec"], made["metadata"]) == warnings


def test_a_template_is_told_where_it_stands() -> None:
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
