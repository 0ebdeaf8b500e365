"""What clients leave out of a service because they do not know of it, or because it was given to them.

Comes in   the spec of a service, and the one before
Goes out   the spec with `clusterIP`, `clusterIPs` and ports as they are meant

 1. Who sends again what he sent first gets the same service: what was allocated is filled in from the old one.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.service import needs_health_check


def normalize_cluster_ips(spec: Document, old_spec: Document | None) -> None:
    """Make the list of addresses follow the single one, which is all that old clients know."""
    first, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if old_spec is None:
        if first and not ips:
            spec["clusterIPs"] = [first]
        return
    old_first, old_ips = old_spec.get("clusterIP", ""), old_spec.get("clusterIPs") or []
    if first == old_first:
        if old_ips and not ips:
            spec["clusterIPs"] = old_ips
    elif ips == old_ips:
        if first:
            spec["clusterIPs"] = [first]
        else:
            spec.pop("clusterIPs", None)


def fill_from_old(spec: Document, old_spec: Document) -> None:
    """Fill in what was allocated and is not mentioned."""
    if "ExternalName" not in (spec.get("type"), old_spec.get("type")):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and old_spec.get(field):
                spec[field] = old_spec[field]
    if _keeps_node_ports(spec) and _keeps_node_ports(old_spec):
        _fill_node_ports(spec, old_spec)
    known = old_spec.get("healthCheckNodePort")
    if known and needs_health_check(spec) and needs_health_check(old_spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = known


def allocates_node_ports(spec: Document) -> bool:
    """Whether every port gets a node port, asked for or not."""
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and bool(spec.get("allocateLoadBalancerNodePorts")))


def node_ports_of(spec: Document) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def _keeps_node_ports(spec: Document) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))


def _fill_node_ports(spec: Document, old_spec: Document) -> None:
    new_ports = node_ports_of(spec)
    used = [port for port in node_ports_of(old_spec) if port in new_ports]
    by_name = {port.get("name", ""): port.get("nodePort", 0) for port in old_spec.get("ports") or ()}
    for port in spec.get("ports") or ():
        known = by_name.get(port.get("name", ""), 0)
        if not port.get("nodePort") and known and known not in used:
            port["nodePort"] = known
