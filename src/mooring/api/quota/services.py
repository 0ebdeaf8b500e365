"""The quota usage of services: node ports and load balancers.

A load balancer with `allocateLoadBalancerNodePorts: false` still uses the node ports that it names.
"""

from __future__ import annotations

from mooring.api.kinds import SERVICE
from mooring.api.quota.counting import ONE, Amounts, count_name, whole
from mooring.api.views.workloads import Service

_COUNT = count_name(SERVICE)
_SERVICES = "services"
_NODE_PORTS = "services.nodeports"
_LOAD_BALANCERS = "services.loadbalancers"

SERVICE_NAMES = frozenset({_COUNT, _SERVICES, _NODE_PORTS, _LOAD_BALANCERS})


def service_usage(service: Service) -> Amounts:
    spec = service.spec
    node_ports = len(spec.ports) if spec.type in ("NodePort", "LoadBalancer") else 0
    if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
        node_ports = sum(1 for port in spec.ports if port.node_port)
    return {
        _COUNT: ONE,
        _SERVICES: ONE,
        _NODE_PORTS: whole(node_ports),
        _LOAD_BALANCERS: whole(int(spec.type == "LoadBalancer")),
    }
