"""A service has ports that can be told apart, and of everything else only what its type has."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.validation.service import needs_health_check, service_faults
from tests.apiserver.core_documents import document
from tests.apiserver.field_errors import messages

PORTS = [{"port": 80}]
BALANCERS = "may only be used when `type` is 'LoadBalancer'"


def spec_of(**fields: object) -> Document:
    return {"ports": PORTS, "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], **fields}


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        pytest.param({}, [], id="a right one"),
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
            id="everything is wrong with a port",
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
            id="a node port inside the cluster",
        ),
        pytest.param({"type": "Odd"}, ["spec.type: Unsupported value"], id="a type that nobody knows"),
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
        pytest.param({"sessionAffinity": "X"}, ["spec.sessionAffinity: Unsupported value"], id="an odd affinity"),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            [
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: "
                "must be greater than 0 and less than 86400"
            ],
            id="no memory at all",
        ),
        pytest.param(
            {"externalIPs": ["x", "127.0.0.1"]},
            [
                'spec.externalIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7',
                'spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range',
            ],
            id="addresses outside that are none",
        ),
        pytest.param(
            {"loadBalancerSourceRanges": ["x"], "allocateLoadBalancerNodePorts": False, "loadBalancerClass": "a/b"},
            [
                f"spec.LoadBalancerSourceRanges: Forbidden: {BALANCERS}",
                'spec.LoadBalancerSourceRanges[0]: Invalid value: "x": must be a valid CIDR value',
                f"spec.allocateLoadBalancerNodePorts: Forbidden: {BALANCERS}",
                f"spec.loadBalancerClass: Forbidden: {BALANCERS}",
            ],
            id="what only balancers have",
        ),
        pytest.param(
            {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30000, "internalTrafficPolicy": "X"},
            [
                'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible',
                "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and",
                'spec.internalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local"',
            ],
            id="traffic from outside that cannot come",
        ),
        pytest.param({"trafficDistribution": "X"}, ["spec.trafficDistribution: Unsupported value"], id="odd traffic"),
    ],
)
def test_services(fields: Document, faults: list[str]) -> None:
    found = messages(service_faults(document(SERVICE, spec=spec_of(**fields)), None))
    assert len(found) == len(faults), found
    assert all(message.startswith(wanted) for message, wanted in zip(found, faults, strict=True)), found


def test_ranges_in_an_annotation_are_ranges_too() -> None:
    key = "service.beta.kubernetes.io/load-balancer-source-ranges"
    metadata = {"annotations": {key: "10.0.0.0/8, x"}}
    service = document(SERVICE, metadata, spec=spec_of(type="LoadBalancer"))
    assert messages(service_faults(service, None)) == [
        f'metadata.annotations[{key}]: Invalid value: "x": must be a valid CIDR value, '
        "(e.g. 10.9.8.0/24 or 2001:db8::/64)"
    ]
    assert service_faults(service, service) == []


def test_two_names_for_hints_agree() -> None:
    annotations = {
        "service.kubernetes.io/topology-aware-hints": "auto",
        "service.kubernetes.io/topology-mode": "none",
    }
    faults = service_faults(document(SERVICE, {"annotations": annotations}, spec=spec_of()), None)
    assert [fault.field for fault in faults] == ["metadata.annotations[service.kubernetes.io/topology-mode]"]


def test_old_addresses_may_stay() -> None:
    service = document(SERVICE, spec=spec_of(externalIPs=["010.1.1.1"]))
    assert len(service_faults(service, None)) == 1
    assert service_faults(service, service) == []


def test_balancers_ask_after_local_pods() -> None:
    assert needs_health_check({"type": "LoadBalancer", "externalTrafficPolicy": "Local"})
    assert not needs_health_check({"type": "NodePort", "externalTrafficPolicy": "Local"})
