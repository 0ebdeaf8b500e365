"""Service (v1): defaults, table, warnings and strategy.

1. A change of the type drops fields that the new type cannot have, unless the client changed them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.service.validation import (
    NO_ADDRESS,
    TOPOLOGY_HINTS,
    TOPOLOGY_MODE,
    is_externally_accessible,
    needs_health_check,
    validate_balancer_class,
    validate_balancer_status,
    validate_cluster_ips_update,
    validate_families_update,
    validate_service,
)
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.tables import AGE, NAME, NONE, Cell, KindTable, age, column, labels_text, wide
from mooring.apiserver.validation.addresses import ip_warnings, range_warnings
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid
from mooring.apiserver.validation.metadata import name_is_dns_label

CLIENT_IP_TIMEOUT_S = 10_800


def _default_affinity(spec: Document) -> None:
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client_ip = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in client_ip:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": CLIENT_IP_TIMEOUT_S}}


def _service_cells(service: Document, now_s: float) -> list[Cell]:
    spec = service.get("spec") or {}
    return [
        service["metadata"]["name"],
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external_address_cell(spec, service.get("status") or {}),
        ",".join(map(_service_port_cell, spec.get("ports") or ())) or NONE,
        age(service, now_s),
        labels_text(spec.get("selector")),
    ]


def _external_address_cell(spec: Document, status: Document) -> str:
    given = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
            balancers = {point.get("ip") or point.get("hostname") for point in ingress}
            return ",".join([*sorted(address for address in balancers if address), *given]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return "<unknown>"


def _service_port_cell(port: Document) -> str:
    node_port = port.get("nodePort", 0)
    number = f"{port['port']}:{node_port}" if node_port > 0 else str(port["port"])
    return f"{number}/{port.get('protocol', '')}"


def service_warnings(service: Document) -> list[str]:
    spec, annotations = service["spec"], service["metadata"].get("annotations") or {}
    warnings = []
    if TOPOLOGY_HINTS in annotations:
        warnings.append(f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
    if spec.get("clusterIP", NO_ADDRESS) != NO_ADDRESS:
        for index, ip in enumerate(spec.get("clusterIPs") or ()):
            warnings += ip_warnings(ip, f"spec.clusterIPs[{index}]")
    is_headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == NO_ADDRESS
    if is_headless:
        warnings += _headless_warnings(spec)
    warnings += _external_warnings(spec, is_headless)
    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings


def balancer_status_warnings(service: Document) -> list[str]:
    ingresses = (service["status"].get("loadBalancer") or {}).get("ingress") or ()
    return [
        text
        for index, ingress in enumerate(ingresses)
        if ingress.get("ip")
        for text in ip_warnings(ingress["ip"], f"status.loadBalancer.ingress[{index}]")
    ]


def _headless_warnings(spec: Document) -> list[str]:
    fields = [field for field in ("loadBalancerIP", "externalIPs") if spec.get(field)]
    if spec.get("sessionAffinity") != "None":
        fields.append("SessionAffinity")
    return [f"spec.{field} is ignored for headless services" for field in fields]


def _external_warnings(spec: Document, is_headless: bool) -> list[str]:
    warnings = []
    external_ips, is_external_name = spec.get("externalIPs") or (), spec.get("type") == "ExternalName"
    for index, ip in enumerate(external_ips):
        warnings += ip_warnings(ip, f"spec.externalIPs[{index}]")
    if external_ips and not is_headless and not is_external_name:
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        warnings += ip_warnings(spec["loadBalancerIP"], "spec.loadBalancerIP")
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        warnings += range_warnings(text, f"spec.loadBalancerSourceRanges[{index}]")
    if external_ips and is_external_name:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.get("externalName") and not is_external_name:
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return warnings


class ServiceStatusStrategy(StatusStrategy):
    """Strategy of the status: the addresses of a load balancer."""

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return balancer_status_warnings(obj)


class ServiceStrategy(Strategy):
    """Writing a service."""

    table = KindTable(
        (
            NAME,
            column("Type", "How it is reached."),
            column("Cluster-IP", "Its address inside the cluster."),
            column("External-IP", "Its addresses outside of it."),
            column("Port(s)", "The ports on which it is reached."),
            AGE,
            wide("Selector", "Which pods it leads to."),
        ),
        _service_cells,
    )

    allows_create_on_update = True

    status_strategy = ServiceStatusStrategy

    def name_errors(self, name: str, is_prefix: bool) -> Sequence[str]:
        return name_is_dns_label(name, is_prefix)

    def default(self, obj: Document) -> None:
        spec = obj["spec"]
        _default_affinity(spec)
        kind = spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
        if is_externally_accessible(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in (obj["status"].get("loadBalancer") or {}).get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def canonicalize(self, obj: Document) -> None:
        if obj["spec"].get("type") == "ExternalName":
            # Older versions stored the field for these types by mistake. A GET does not return it.
            obj["spec"].pop("internalTrafficPolicy", None)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"loadBalancer": {}}

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_service(obj, None)

    def warnings(self, obj: Document) -> list[str]:
        return service_warnings(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        _drop_type_dependent_fields(obj, old)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        spec, old_spec = obj["spec"], old["spec"]
        errors = validate_cluster_ips_update(spec, old_spec)
        errors += validate_families_update(spec, old_spec)
        errors += _validate_balancer_class_update(spec, old_spec)
        is_same_port = spec.get("healthCheckNodePort") == old_spec.get("healthCheckNodePort")
        if needs_health_check(spec) and needs_health_check(old_spec) and not is_same_port:
            errors.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
        return errors + validate_service(obj, old)

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_balancer_status(obj, old)

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        spec = obj["spec"]
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _validate_balancer_class_update(spec: Document, old_spec: Document) -> list[FieldError]:
    errors = []
    name, old_name = spec.get("loadBalancerClass"), old_spec.get("loadBalancerClass")
    if spec.get("type") == old_spec.get("type") == "LoadBalancer" and name != old_name:
        errors.append(invalid("spec.loadBalancerClass", name, "may not change once set"))
    return errors + validate_balancer_class(spec)


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


STRATEGY = ServiceStrategy
