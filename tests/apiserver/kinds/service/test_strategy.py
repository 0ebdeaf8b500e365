"""Tests of kinds.service.strategy."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.service.strategy import service_warnings
from tests.apiserver.core_documents import call, changed, created, document, strategy

EMBEDDED: Document = {"sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({}, EMBEDDED, id="a service inside the cluster"),
        pytest.param(
            {"ports": [{"port": 80, "targetPort": 0}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}]},
            {
                **EMBEDDED,
                "ports": [
                    {"port": 80, "targetPort": 80, "protocol": "TCP"},
                    {"port": 53, "targetPort": "dns", "protocol": "UDP"},
                ],
            },
            id="ports lead to themselves",
        ),
        pytest.param(
            {"externalIPs": ["1.2.3.4"]},
            {**EMBEDDED, "externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Cluster"},
            id="one that can be reached from outside",
        ),
        pytest.param(
            {"type": "LoadBalancer"},
            {
                **EMBEDDED,
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": True,
            },
            id="one with a balancer",
        ),
        pytest.param(
            {"type": "ExternalName"}, {"sessionAffinity": "None", "type": "ExternalName"}, id="one that is just a name"
        ),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {}}},
            {
                **EMBEDDED,
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            },
            id="one that remembers its clients",
        ),
        pytest.param(
            {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
            EMBEDDED,
            id="one that has nothing to remember",
        ),
    ],
)
def test_services_are_defaulted(spec: Document, wanted: Document) -> None:
    service: Document = {"spec": spec, "status": {"loadBalancer": {}}}
    strategy_of(SERVICE).default(service)
    strategy_of(SERVICE).default(service)
    assert service["spec"] == wanted


def test_addresses_of_load_balancers_default_to_the_mode_vip() -> None:
    status: Document = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a"}]}}
    strategy_of(SERVICE).default({"spec": {"type": "LoadBalancer"}, "status": status})
    assert status["loadBalancer"]["ingress"] == [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a"}]


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param({}, [], id="nothing odd"),
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
            id="no address, and much about it",
        ),
        pytest.param(
            {"externalIPs": ["1.2.3.4"]},
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
            id="addresses outside",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a", "externalIPs": ["1.2.3.4"]},
            ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
            id="a name with addresses",
        ),
        pytest.param(
            {"externalName": "a"},
            ['spec.externalName is ignored when spec.type is not "ExternalName"'],
            id="a spare name",
        ),
        pytest.param(
            {"trafficDistribution": "PreferClose"},
            ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'],
            id="an old word for the same zone",
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
INTERNAL_SERVICE_STRATEGY: Document = {"ports": [{"port": 80}], **ADDRESS}
OUTSIDE: Document = {
    **INTERNAL_SERVICE_STRATEGY,
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
        spec=INTERNAL_SERVICE_STRATEGY,
        status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
    )
    assert created(SERVICE, service) == []
    assert service["status"] == {"loadBalancer": {}}
    assert created(SERVICE, document(SERVICE, {"name": "a.b"}, spec=INTERNAL_SERVICE_STRATEGY)) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        pytest.param(
            INTERNAL_SERVICE_STRATEGY,
            {**INTERNAL_SERVICE_STRATEGY, "type": "ExternalName", "externalName": "a.b"},
            ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"],
            id="a name has no addresses",
        ),
        pytest.param(
            OUTSIDE,
            {**OUTSIDE, "type": "ClusterIP"},
            [
                "healthCheckNodePort",
                "allocateLoadBalancerNodePorts",
                "loadBalancerClass",
                "externalTrafficPolicy",
            ],
            id="inside there is no balancer",
        ),
    ],
)
def test_a_change_of_the_type_drops_unsupported_fields(old: Document, new: Document, gone: list[str]) -> None:
    errors, service = changed(SERVICE, document(SERVICE, spec=old), spec=new)
    assert errors == []
    assert not [field for field in gone if field in service["spec"]]
    assert not any("nodePort" in port for port in service["spec"]["ports"])


def test_a_changed_node_port_of_a_cluster_ip_service_is_forbidden() -> None:
    new = {**OUTSIDE, "type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30009}]}
    errors, _ = changed(SERVICE, document(SERVICE, spec=OUTSIDE), spec=new)
    assert errors == ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]


def test_immutable_fields_of_services() -> None:
    new = {**OUTSIDE, "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "loadBalancerClass": "c/d"}
    errors, _ = changed(SERVICE, document(SERVICE, spec=OUTSIDE), spec={**new, "healthCheckNodePort": 30005})
    assert errors == [
        'spec.clusterIPs[0]: Invalid value: ["10.96.0.7"]: may not change once set',
        'spec.loadBalancerClass: Invalid value: "c/d": may not change once set',
        "spec.healthCheckNodePort: Forbidden: field is immutable",
    ]


def test_a_status_update_changes_only_the_load_balancer_status() -> None:
    old = document(SERVICE, spec=OUTSIDE)
    status = {"loadBalancer": {"ingress": [{"ip": "2001:DB8::1"}]}}
    errors, service = changed(SERVICE, old, "status", status=status)
    assert errors == []
    assert service["spec"] == old["spec"]
    assert strategy(SERVICE, "status").warnings_on_update(service, old, call(SERVICE)) == [
        'status.loadBalancer.ingress[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format '
        '("2001:db8::1")'
    ]
    errors, service = changed(SERVICE, {**old, "status": service["status"]}, spec={**OUTSIDE, "type": "ClusterIP"})
    assert (errors, service["status"]) == ([], {"loadBalancer": {}})


def test_an_external_name_has_no_traffic_policy() -> None:
    service = document(SERVICE, spec={"type": "ExternalName", "externalName": "a", "internalTrafficPolicy": "Local"})
    strategy(SERVICE).canonicalize(service)
    assert "internalTrafficPolicy" not in service["spec"]
    assert strategy(SERVICE).selectable_fields(service) == {"spec.clusterIP": "", "spec.type": "ExternalName"}
