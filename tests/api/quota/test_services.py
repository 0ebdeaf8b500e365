"""What services use of a quota."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.quota.services import service_usage
from mooring.api.views.workloads import Service
from tests.api.quota.builders import texts


@pytest.mark.parametrize(
    ("spec", "node_ports", "load_balancers"),
    [
        pytest.param({"type": "ClusterIP"}, "0", "0", id="inside only"),
        pytest.param({"type": "NodePort"}, "2", "0", id="ports of every node"),
        pytest.param({"type": "LoadBalancer"}, "2", "1", id="a load balancer"),
        pytest.param(
            {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
            "1",
            "1",
            id="a load balancer without ports but those that were named",
        ),
    ],
)
def test_a_service_uses(spec: dict[str, Any], node_ports: str, load_balancers: str) -> None:
    ports = [{"port": 1, "nodePort": 30000}, {"port": 2}]
    assert texts(service_usage(convert_as(Service, {"spec": {**spec, "ports": ports}}))) == {
        "count/services": "1",
        "services": "1",
        "services.nodeports": node_ports,
        "services.loadbalancers": load_balancers,
    }
