"""A service says little, and a lot follows."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.service import default_service

INSIDE: Document = {"sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({}, INSIDE, id="a service inside the cluster"),
        pytest.param(
            {"ports": [{"port": 80, "targetPort": 0}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}]},
            {
                **INSIDE,
                "ports": [
                    {"port": 80, "targetPort": 80, "protocol": "TCP"},
                    {"port": 53, "targetPort": "dns", "protocol": "UDP"},
                ],
            },
            id="ports lead to themselves",
        ),
        pytest.param(
            {"externalIPs": ["1.2.3.4"]},
            {**INSIDE, "externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Cluster"},
            id="one that can be reached from outside",
        ),
        pytest.param(
            {"type": "LoadBalancer"},
            {
                **INSIDE,
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
                **INSIDE,
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            },
            id="one that remembers its clients",
        ),
        pytest.param(
            {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
            INSIDE,
            id="one that has nothing to remember",
        ),
    ],
)
def test_specs(spec: Document, wanted: Document) -> None:
    service: Document = {"spec": spec, "status": {"loadBalancer": {}}}
    default_service(service)
    default_service(service)
    assert service["spec"] == wanted


def test_addresses_of_a_balancer_are_its_own() -> None:
    status: Document = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a"}]}}
    default_service({"spec": {"type": "LoadBalancer"}, "status": status})
    assert status["loadBalancer"]["ingress"] == [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a"}]
