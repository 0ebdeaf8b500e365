"""A service that changes its type loses what the new one cannot have, unless the caller has touched it."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from tests.apiserver.core_documents import call, changed, created, document, strategy

ADDRESS: Document = {
    "clusterIP": "10.96.0.9",
    "clusterIPs": ["10.96.0.9"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}
INSIDE: Document = {"ports": [{"port": 80}], **ADDRESS}
OUTSIDE: Document = {
    **INSIDE,
    "ports": [{"port": 80, "nodePort": 30001}],
    "type": "LoadBalancer",
    "externalTrafficPolicy": "Local",
    "healthCheckNodePort": 30002,
    "loadBalancerClass": "a/b",
}


def test_a_new_service_has_no_balancer_yet() -> None:
    service = document(SERVICE, {"name": "1a"}, spec=INSIDE, status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})
    assert created(SERVICE, service) == []
    assert service["status"] == {"loadBalancer": {}}
    assert created(SERVICE, document(SERVICE, {"name": "a.b"}, spec=INSIDE)) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        pytest.param(
            INSIDE,
            {**INSIDE, "type": "ExternalName", "externalName": "a.b"},
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
def test_types_drop_what_they_cannot_have(old: Document, new: Document, gone: list[str]) -> None:
    faults, service = changed(SERVICE, document(SERVICE, spec=old), spec=new)
    assert faults == []
    assert not [field for field in gone if field in service["spec"]]
    assert not any("nodePort" in port for port in service["spec"]["ports"])


def test_what_the_caller_touched_is_judged() -> None:
    new = {**OUTSIDE, "type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30009}]}
    faults, _ = changed(SERVICE, document(SERVICE, spec=OUTSIDE), spec=new)
    assert faults == ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]


def test_what_never_changes() -> None:
    new = {**OUTSIDE, "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "loadBalancerClass": "c/d"}
    faults, _ = changed(SERVICE, document(SERVICE, spec=OUTSIDE), spec={**new, "healthCheckNodePort": 30005})
    assert faults == [
        'spec.clusterIPs[0]: Invalid value: ["10.96.0.7"]: may not change once set',
        'spec.loadBalancerClass: Invalid value: "c/d": may not change once set',
        "spec.healthCheckNodePort: Forbidden: field is immutable",
    ]


def test_the_status_has_its_own_door() -> None:
    old = document(SERVICE, spec=OUTSIDE)
    status = {"loadBalancer": {"ingress": [{"ip": "2001:DB8::1"}]}}
    faults, service = changed(SERVICE, old, "status", status=status)
    assert faults == []
    assert service["spec"] == old["spec"]
    assert strategy(SERVICE, "status").warnings_on_update(service, old, call(SERVICE)) == [
        'status.loadBalancer.ingress[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format '
        '("2001:db8::1")'
    ]
    faults, service = changed(SERVICE, {**old, "status": service["status"]}, spec={**OUTSIDE, "type": "ClusterIP"})
    assert (faults, service["status"]) == ([], {"loadBalancer": {}})


def test_nobody_is_shown_how_traffic_reaches_a_name() -> None:
    service = document(SERVICE, spec={"type": "ExternalName", "externalName": "a", "internalTrafficPolicy": "Local"})
    strategy(SERVICE).canonicalize(service)
    assert "internalTrafficPolicy" not in service["spec"]
    assert strategy(SERVICE).selectable_fields(service) == {"spec.clusterIP": "", "spec.type": "ExternalName"}
