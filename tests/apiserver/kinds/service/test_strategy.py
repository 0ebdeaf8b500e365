"""Tests of kinds.service.strategy."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.service.strategy import service_warnings
from tests.apiserver.core_documents import call, changed, created, document, strategy

DEFAULTS: Document = {"sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, DEFAULTS, id="ClusterIP"),
        pytest.param(
            {"ports": [{"port": 80, "targetPort": 0}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}]},
            {
                **DEFAULTS,
                "ports": [
                    {"port": 80, "targetPort": 80, "protocol": "TCP"},
                    {"port": 53, "targetPort": "dns", "protocol": "UDP"},
                ],
            },
            id="target ports and protocols",
        ),
        pytest.param(
            {"externalIPs": ["1.2.3.4"]},
            {**DEFAULTS, "externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Cluster"},
            id="external IPs",
        ),
        pytest.param(
            {"type": "LoadBalancer"},
            {
                **DEFAULTS,
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": True,
            },
            id="LoadBalancer",
        ),
        pytest.param({"type": "ExternalName"}, {"sessionAffinity": "None", "type": "ExternalName"}, id="ExternalName"),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {}}},
            {
                **DEFAULTS,
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            },
            id="ClientIP affinity",
        ),
        pytest.param(
            {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
            DEFAULTS,
            id="an affinity config without affinity",
        ),
    ],
)
def test_services_are_defaulted(spec: Document, expected: Document) -> None:
    service: Document = {"spec": spec, "status": {"loadBalancer": {}}}
    strategy_of(SERVICE).default(service)
    strategy_of(SERVICE).default(service)
    assert service["spec"] == expected


def test_addresses_of_load_balancers_default_to_the_mode_vip() -> None:
    status: Document = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a"}]}}
    strategy_of(SERVICE).default({"spec": {"type": "LoadBalancer"}, "status": status})
    assert status["loadBalancer"]["ingress"] == [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a"}]


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param({}, [], id="no warnings"),
        pytest.param(
            {
                "clusterIP": "None",
                "externalIPs": ["1.2.3.4"],
                "loadBalancerIP": "1.2.3.4",
                "sessionAffinity": "ClientIP",
            },
            [
                "spec.loadBalancerIP is ignored for headless services",
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
            id="headless with ignored fields",
        ),
        pytest.param(
            {"externalIPs": ["1.2.3.4"]},
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
            id="external IPs",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a", "externalIPs": ["1.2.3.4"]},
            ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
            id="a name with addresses",
        ),
        pytest.param(
            {"externalName": "a"},
            ['spec.externalName is ignored when spec.type is not "ExternalName"'],
            id="an externalName of another type",
        ),
        pytest.param(
            {"trafficDistribution": "PreferClose"},
            ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'],
            id="a deprecated traffic distribution",
        ),
        pytest.param(
            {"clusterIP": "fd00::A", "clusterIPs": ["fd00::A"], "loadBalancerSourceRanges": ["FD00::/8"]},
            [
                'spec.clusterIPs[0]: IPv6 address "fd00::A" should be in RFC 5952 canonical format ("fd00::a")',
                'spec.loadBalancerSourceRanges[0]: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format '
                '("fd00::/8")',
            ],
            id="capitals",
        ),
    ],
)
def test_service_warnings_of_ignored_and_deprecated_fields(spec: Document, warnings: list[str]) -> None:
    assert service_warnings(document(SERVICE, spec=spec)) == warnings


def test_a_deprecated_annotation_is_warned_of() -> None:
    metadata = {"annotations": {"service.kubernetes.io/topology-aware-hints": "auto"}}
    assert service_warnings(document(SERVICE, metadata)) == [
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, "
        "please use service.kubernetes.io/topology-mode instead"
    ]


ADDRESS: Document = {
    "clusterIP": "10.96.0.9",
    "clusterIPs": ["10.96.0.9"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}
INTERNAL: Document = {"ports": [{"port": 80}], **ADDRESS}
LOAD_BALANCER: Document = {
    **INTERNAL,
    "ports": [{"port": 80, "nodePort": 30001}],
    "type": "LoadBalancer",
    "externalTrafficPolicy": "Local",
    "healthCheckNodePort": 30002,
    "loadBalancerClass": "a/b",
}


def test_a_new_service_has_an_empty_load_balancer_status() -> None:
    service = document(
        SERVICE,
        {"name": "1a"},
        spec=INTERNAL,
        status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
    )
    assert created(SERVICE, service) == []
    assert service["status"] == {"loadBalancer": {}}
    assert created(SERVICE, document(SERVICE, {"name": "a.b"}, spec=INTERNAL)) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


@pytest.mark.parametrize(
    ("old", "new", "dropped"),
    [
        pytest.param(
            INTERNAL,
            {**INTERNAL, "type": "ExternalName", "externalName": "a.b"},
            ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"],
            id="ExternalName has no addresses",
        ),
        pytest.param(
            LOAD_BALANCER,
            {**LOAD_BALANCER, "type": "ClusterIP"},
            [
                "healthCheckNodePort",
                "allocateLoadBalancerNodePorts",
                "loadBalancerClass",
                "externalTrafficPolicy",
            ],
            id="ClusterIP has no load balancer fields",
        ),
    ],
)
def test_a_change_of_the_type_drops_unsupported_fields(old: Document, new: Document, dropped: list[str]) -> None:
    errors, service = changed(SERVICE, document(SERVICE, spec=old), spec=new)
    assert errors == []
    assert not [field for field in dropped if field in service["spec"]]
    assert not any("nodePort" in port for port in service["spec"]["ports"])


def test_a_changed_node_port_of_a_cluster_ip_service_is_forbidden() -> None:
    new = {**LOAD_BALANCER, "type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30009}]}
    errors, _ = changed(SERVICE, document(SERVICE, spec=LOAD_BALANCER), spec=new)
    assert errors == ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]


def test_immutable_fields_of_services() -> None:
    new = {**LOAD_BALANCER, "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "loadBalancerClass": "c/d"}
    errors, _ = changed(SERVICE, document(SERVICE, spec=LOAD_BALANCER), spec={**new, "healthCheckNodePort": 30005})
    assert errors == [
        'spec.clusterIPs[0]: Invalid value: ["10.96.0.7"]: may not change once set',
        'spec.loadBalancerClass: Invalid value: "c/d": may not change once set',
        "spec.healthCheckNodePort: Forbidden: field is immutable",
    ]


def test_a_status_update_changes_only_the_load_balancer_status() -> None:
    old = document(SERVICE, spec=LOAD_BALANCER)
    status = {"loadBalancer": {"ingress": [{"ip": "2001:DB8::1"}]}}
    errors, service = changed(SERVICE, old, "status", status=status)
    assert errors == []
    assert service["spec"] == old["spec"]
    assert strategy(SERVICE, "status").warnings_on_update(service, old, call(SERVICE)) == [
        'status.loadBalancer.ingress[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format '
        '("2001:db8::1")'
    ]
    errors, service = changed(
        SERVICE, {**old, "status": service["status"]}, spec={**LOAD_BALANCER, "type": "ClusterIP"}
    )
    assert (errors, service["status"]) == ([], {"loadBalancer": {}})


def test_an_external_name_has_no_traffic_policy() -> None:
    service = document(SERVICE, spec={"type": "ExternalName", "externalName": "a", "internalTrafficPolicy": "Local"})
    strategy(SERVICE).canonicalize(service)
    assert "internalTrafficPolicy" not in service["spec"]
    assert strategy(SERVICE).selectable_fields(service) == {"spec.clusterIP": "", "spec.type": "ExternalName"}
