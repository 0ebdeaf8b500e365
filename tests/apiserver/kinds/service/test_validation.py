"""Tests of kinds.service.validation."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.kinds.service.validation import (
    needs_health_check,
    validate_balancer_status,
    validate_cluster_ips,
    validate_cluster_ips_update,
    validate_families_update,
    validate_service,
)
from tests.apiserver.core_documents import document, messages

FIRST, OTHER, SIX = "10.96.0.9", "10.96.0.10", "fd00::1"


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="none yet"),
        pytest.param(
            {"clusterIP": FIRST, "clusterIPs": [FIRST, SIX], "ipFamilies": ["IPv4", "IPv6"]}, [], id="both families"
        ),
        pytest.param({"clusterIP": FIRST}, ["spec.clusterIPs: Required value"], id="no list"),
        pytest.param(
            {"clusterIP": FIRST, "clusterIPs": [OTHER]},
            ['spec.clusterIPs: Invalid value: ["10.96.0.10"]: first value must match `clusterIP`'],
            id="another list",
        ),
        pytest.param(
            {"clusterIPs": [FIRST]},
            ['spec.clusterIPs: Invalid value: ["10.96.0.9"]: must be empty when `clusterIP` is not specified'],
            id="a list only",
        ),
        pytest.param(
            {"clusterIP": "None", "clusterIPs": ["None", FIRST]},
            ['spec.clusterIPs: Invalid value: ["None","10.96.0.9"]: \'None\' must be the first and only value'],
            id="none, and one",
        ),
        pytest.param(
            {"clusterIP": FIRST, "clusterIPs": [FIRST, OTHER]},
            [
                'spec.clusterIPs: Invalid value: ["10.96.0.9","10.96.0.10"]: '
                "may specify no more than one IP for each IP family"
            ],
            id="two of one family",
        ),
        pytest.param(
            {"clusterIP": SIX, "clusterIPs": [SIX], "ipFamilies": ["IPv4"]},
            ['spec.clusterIPs[0]: Invalid value: "fd00::1": expected an IPv4 value as indicated by `ipFamilies[0]`'],
            id="an address of another family",
        ),
        pytest.param(
            {"ipFamilies": ["IPv4", "IPv4", "X"], "ipFamilyPolicy": "Y"},
            [
                'spec.ipFamilies[1]: Duplicate value: "IPv4"',
                'spec.ipFamilies[2]: Unsupported value: "X": supported values: "IPv4", "IPv6"',
                'spec.ipFamilyPolicy: Unsupported value: "Y": supported values: "PreferDualStack", '
                '"RequireDualStack", "SingleStack"',
            ],
            id="unknown families",
        ),
        pytest.param({"type": "ExternalName", "clusterIP": "x"}, [], id="addresses of ExternalName are not validated"),
    ],
)
def test_cluster_ips_are_validated(spec: Document, errors: list[str]) -> None:
    assert messages(validate_cluster_ips(spec, None)) == errors


def test_an_unchanged_ambiguous_cluster_ip_is_accepted() -> None:
    spec = {"clusterIP": "010.96.0.9", "clusterIPs": ["010.96.0.9"]}
    assert len(validate_cluster_ips(spec, None)) == 1
    assert validate_cluster_ips(spec, spec) == []


@pytest.mark.parametrize(
    ("new", "old", "details"),
    [
        pytest.param([FIRST], [FIRST], [], id="nothing changed"),
        pytest.param([OTHER], [FIRST], ["may not change once set"], id="another address"),
        pytest.param([], [FIRST], ["primary clusterIP can not be unset"], id="no address any more"),
        pytest.param([FIRST, SIX], [FIRST], [], id="a second one is added"),
        pytest.param([OTHER, SIX], [FIRST], ["may not change once set"], id="a second one, and another first"),
        pytest.param(
            [FIRST],
            [FIRST, SIX],
            ["must be set to 'SingleStack' when releasing the secondary clusterIP"],
            id="the second one is removed",
        ),
        pytest.param(["None"], ["None"], [], id="still none"),
    ],
)
def test_updates_of_cluster_ips_are_validated(new: list[str], old: list[str], details: list[str]) -> None:
    errors = validate_cluster_ips_update({"clusterIPs": new}, {"clusterIPs": old})
    assert [error.detail for error in errors] == details
    assert validate_cluster_ips_update({"clusterIPs": new, "type": "ExternalName"}, {"clusterIPs": old}) == []


@pytest.mark.parametrize(
    ("new", "old", "details"),
    [
        pytest.param(["IPv4"], ["IPv4"], [], id="nothing changed"),
        pytest.param(["IPv6"], ["IPv4"], ["may not change once set"], id="another family"),
        pytest.param(["IPv4", "IPv6"], ["IPv4"], [], id="a second one is added"),
        pytest.param(
            ["IPv4"],
            ["IPv4", "IPv6"],
            ["must be set to 'SingleStack' when releasing the secondary ipFamily"],
            id="the second one is removed",
        ),
    ],
)
def test_updates_of_ip_families_are_validated(new: list[str], old: list[str], details: list[str]) -> None:
    errors = validate_families_update({"ipFamilies": new, "clusterIPs": [FIRST]}, {"ipFamilies": old})
    assert [error.detail for error in errors] == details


@pytest.mark.parametrize(
    ("kind", "ingress", "errors"),
    [
        pytest.param("LoadBalancer", {"ip": "1.2.3.4", "ipMode": "Proxy"}, [], id="an address"),
        pytest.param("LoadBalancer", {"hostname": "a.b"}, [], id="a name"),
        pytest.param(
            "ClusterIP",
            {"hostname": "a.b"},
            ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"],
            id="a load balancer status of a ClusterIP service",
        ),
        pytest.param(
            "LoadBalancer",
            {"ip": "1.2.3.4"},
            ["status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set"],
            id="an address without a mode",
        ),
        pytest.param(
            "LoadBalancer",
            {"hostname": "1.2.3.4", "ipMode": "VIP"},
            [
                "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
                'status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, '
                "not an IP address",
            ],
            id="a name that is an address",
        ),
    ],
)
def test_load_balancer_statuses_are_validated(kind: str, ingress: Document, errors: list[str]) -> None:
    service = {"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": [ingress]}}}
    assert messages(validate_balancer_status(service, {"status": {}})) == errors


PORTS = [{"port": 80}]
BALANCERS = "may only be used when `type` is 'LoadBalancer'"


def spec_of(**fields: object) -> Document:
    return {"ports": PORTS, "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], **fields}


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"ports": []}, ["spec.ports: Required value"], id="no ports"),
        pytest.param({"ports": [], "clusterIP": "None", "clusterIPs": ["None"]}, [], id="no ports and no address"),
        pytest.param(
            {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}, {"port": 3}]},
            ['spec.ports[1].name: Duplicate value: "a"', "spec.ports[2].name: Required value"],
            id="names of ports",
        ),
        pytest.param(
            {"ports": [{"port": 0, "protocol": "X", "targetPort": "A", "appProtocol": "a b"}]},
            [
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                'spec.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
                'spec.ports[0].targetPort: Invalid value: "A": must contain only alpha-numeric characters',
                'spec.ports[0].targetPort: Invalid value: "A": must contain at least one letter (a-z)',
                'spec.ports[0].appProtocol: Invalid value: "a b": name part must consist of',
            ],
            id="an invalid port",
        ),
        pytest.param(
            {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
            [
                'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":1,'
                '"TargetPort":0,"NodePort":0}'
            ],
            id="one port twice",
        ),
        pytest.param(
            {"ports": [{"port": 1, "nodePort": 30001}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
            id="a node port of a ClusterIP service",
        ),
        pytest.param({"type": "Odd"}, ["spec.type: Unsupported value"], id="an unknown type"),
        pytest.param(
            {"type": "NodePort", "clusterIP": "None", "clusterIPs": ["None"]},
            ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
            id="node ports without an address",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": ".", "ipFamilies": ["IPv4"]},
            [
                "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
                "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
                "spec.externalName: Required value",
            ],
            id="a name with addresses",
        ),
        pytest.param({"sessionAffinity": "X"}, ["spec.sessionAffinity: Unsupported value"], id="an unknown affinity"),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            [
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: "
                "must be greater than 0 and less than 86400"
            ],
            id="a timeout of zero",
        ),
        pytest.param(
            {"externalIPs": ["x", "127.0.0.1"]},
            [
                'spec.externalIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7',
                'spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range',
            ],
            id="invalid external IPs",
        ),
        pytest.param(
            {"loadBalancerSourceRanges": ["x"], "allocateLoadBalancerNodePorts": False, "loadBalancerClass": "a/b"},
            [
                f"spec.LoadBalancerSourceRanges: Forbidden: {BALANCERS}",
                'spec.LoadBalancerSourceRanges[0]: Invalid value: "x": must be a valid CIDR value',
                f"spec.allocateLoadBalancerNodePorts: Forbidden: {BALANCERS}",
                f"spec.loadBalancerClass: Forbidden: {BALANCERS}",
            ],
            id="fields of load balancers",
        ),
        pytest.param(
            {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30000, "internalTrafficPolicy": "X"},
            [
                'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible',
                "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and",
                'spec.internalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local"',
            ],
            id="traffic policies of a ClusterIP service",
        ),
        pytest.param(
            {"trafficDistribution": "X"},
            ["spec.trafficDistribution: Unsupported value"],
            id="an unknown traffic distribution",
        ),
    ],
)
def test_services_are_validated(fields: Document, errors: list[str]) -> None:
    found = messages(validate_service(document(SERVICE, spec=spec_of(**fields)), None))
    assert len(found) == len(errors), found
    assert all(message.startswith(expected) for message, expected in zip(found, errors, strict=True)), found


def test_source_ranges_in_the_annotation_are_validated() -> None:
    key = "service.beta.kubernetes.io/load-balancer-source-ranges"
    metadata = {"annotations": {key: "10.0.0.0/8, x"}}
    service = document(SERVICE, metadata, spec=spec_of(type="LoadBalancer"))
    assert messages(validate_service(service, None)) == [
        f'metadata.annotations[{key}]: Invalid value: "x": must be a valid CIDR value, '
        "(e.g. 10.9.8.0/24 or 2001:db8::/64)"
    ]
    assert validate_service(service, service) == []


def test_topology_annotations_must_agree() -> None:
    annotations = {
        "service.kubernetes.io/topology-aware-hints": "auto",
        "service.kubernetes.io/topology-mode": "none",
    }
    errors = validate_service(document(SERVICE, {"annotations": annotations}, spec=spec_of()), None)
    assert [error.field for error in errors] == ["metadata.annotations[service.kubernetes.io/topology-mode]"]


def test_unchanged_ambiguous_external_ips_are_accepted() -> None:
    service = document(SERVICE, spec=spec_of(externalIPs=["010.1.1.1"]))
    assert len(validate_service(service, None)) == 1
    assert validate_service(service, service) == []


def test_needs_health_check_is_true_for_load_balancers_with_local_traffic() -> None:
    assert needs_health_check({"type": "LoadBalancer", "externalTrafficPolicy": "Local"})
    assert not needs_health_check({"type": "NodePort", "externalTrafficPolicy": "Local"})
