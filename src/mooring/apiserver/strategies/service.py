"""Services: one name for many pods.

Comes in   a service, after `service_allocation` gave it addresses and ports
Goes out   the same, prepared and judged

 1. A change of the type drops what the new type cannot have, if the caller has not touched it himself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.service import default_service, is_externally_accessible
from mooring.apiserver.strategies.service_warnings import balancer_status_warnings, service_warnings
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import Fault, forbidden, invalid
from mooring.apiserver.validation.metadata import name_is_dns_label
from mooring.apiserver.validation.service import balancer_class_faults, needs_health_check, service_faults
from mooring.apiserver.validation.service_addresses import (
    balancer_status_faults,
    cluster_ips_update_faults,
    families_update_faults,
)


class ServiceStrategy(Strategy):
    """Writing a service."""

    allows_create_on_update = True

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": ServiceStatusStrategy(self.kind, self)}

    def name_faults(self, name: str, is_prefix: bool) -> Sequence[str]:
        return name_is_dns_label(name, is_prefix)

    def default(self, obj: Document) -> None:
        default_service(obj)

    def canonicalize(self, obj: Document) -> None:
        if obj["spec"].get("type") == "ExternalName":
            # It was stored for these by mistake once, and nobody is shown it.
            obj["spec"].pop("internalTrafficPolicy", None)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"loadBalancer": {}}

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return service_faults(obj, None)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return service_warnings(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        _drop_type_dependent_fields(obj, old)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        spec, old_spec = obj["spec"], old["spec"]
        faults = cluster_ips_update_faults(spec, old_spec)
        faults += families_update_faults(spec, old_spec)
        faults += _balancer_class_update_faults(spec, old_spec)
        is_same_port = spec.get("healthCheckNodePort") == old_spec.get("healthCheckNodePort")
        if needs_health_check(spec) and needs_health_check(old_spec) and not is_same_port:
            faults.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
        return faults + service_faults(obj, old)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return service_warnings(obj)

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        spec = obj["spec"]
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


class ServiceStatusStrategy(StatusStrategy):
    """Writing what a balancer gave to a service."""

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return balancer_status_faults(obj, old)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return balancer_status_warnings(obj)


def _balancer_class_update_faults(spec: Document, old_spec: Document) -> list[Fault]:
    faults = []
    name, old_name = spec.get("loadBalancerClass"), old_spec.get("loadBalancerClass")
    if spec.get("type") == old_spec.get("type") == "LoadBalancer" and name != old_name:
        faults.append(invalid("spec.loadBalancerClass", name, "may not change once set"))
    return faults + balancer_class_faults(spec)


def _drop_type_dependent_fields(obj: Document, old: Document) -> None:
    spec, old_spec = obj["spec"], old["spec"]
    kind, old_kind = spec.get("type"), old_spec.get("type")
    if kind == "ExternalName" != old_kind:
        if all(spec.get(field) == old_spec.get(field) for field in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        for field in ("ipFamilies", "ipFamilyPolicy"):
            _drop_if_same(spec, old_spec, field)
    if _has_node_ports(old_kind) and not _has_node_ports(kind) and _node_ports(spec) <= _node_ports(old_spec):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_check(old_spec) and not needs_health_check(spec):
        _drop_if_same(spec, old_spec, "healthCheckNodePort")
    if old_kind == "LoadBalancer" != kind:
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            _drop_if_same(spec, old_spec, field)
    if is_externally_accessible(old_spec) and not is_externally_accessible(spec):
        _drop_if_same(spec, old_spec, "externalTrafficPolicy")
    if kind != "LoadBalancer" and obj["status"].get("loadBalancer"):
        obj["status"] = {**obj["status"], "loadBalancer": {}}


def _drop_if_same(spec: Document, old_spec: Document, field: str) -> None:
    if spec.get(field) == old_spec.get(field):
        spec.pop(field, None)


def _has_node_ports(kind: str | None) -> bool:
    return kind in ("NodePort", "LoadBalancer")


def _node_ports(spec: Document) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
