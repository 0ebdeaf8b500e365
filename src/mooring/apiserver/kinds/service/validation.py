"""Validation of a Service's spec and of its updates.

1. Addresses that the stored Service has stay valid.
2. `clusterIP` equals the first of `clusterIPs` and is immutable. The second one, of the other family, may be added and
   removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.addresses import (
    IPV4,
    IPV6,
    are_of_both_families,
    family_of,
    parse_ip,
    validate_endpoint_ip,
    validate_ip,
    validate_range,
)
from mooring.apiserver.validation.fields import (
    FieldError,
    duplicate,
    first_positions,
    forbidden,
    invalid,
    not_supported,
    required,
)
from mooring.apiserver.validation.metadata import validate_labels
from mooring.apiserver.validation.names import (
    dns_label_errors,
    dns_subdomain_errors,
    port_name_errors,
    port_number_errors,
)
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules, validate_enum

_PORT = struct_rules("core", "ServicePort")
_SPEC = struct_rules("core", "ServiceSpec")
NO_ADDRESS = "None"
FAMILIES = (IPV4, IPV6)
SINGLE_STACK = "SingleStack"
BALANCER_IP_MODES = ("Proxy", "VIP")

_ONCE_SET = "may not change once set"

TYPES = sorted_enum_values("core", "ServiceType")
CLIENT_IP_TIMEOUT_S_MAX = 86_400
TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"

_BALANCERS_ONLY = "may only be used when `type` is 'LoadBalancer'"
_NOT_FOR_EXTERNAL_NAMES = "may not be set for ExternalName services"


def is_externally_accessible(spec: Document) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def is_headless(spec: Document) -> bool:
    return (spec.get("clusterIPs") or ()) == [NO_ADDRESS]


def validate_cluster_ips(spec: Document, old_spec: Document | None) -> list[FieldError]:
    if spec.get("type") == "ExternalName":
        return []
    first, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    families = spec.get("ipFamilies") or []
    errors: list[FieldError] = []
    if first and not ips:
        errors.append(required("spec.clusterIPs"))
    elif first and ips[0] != first:
        errors.append(invalid("spec.clusterIPs", ips, "first value must match `clusterIP`"))
    elif ips and not first:
        errors.append(invalid("spec.clusterIPs", ips, "must be empty when `clusterIP` is not specified"))
    errors += _validate_families(families)
    errors += _SPEC.validate(spec, "spec", "ipFamilyPolicy")
    bad = _validate_ips(ips, (old_spec or {}).get("clusterIPs") or ())
    errors += bad
    if len(ips) > 2:
        errors.append(invalid("spec.clusterIPs", ips, "may only hold up to 2 values"))
    # With an address that is none, what follows would only confuse.
    return errors if bad else errors + _validate_dual_stack(ips, families)


def validate_cluster_ips_update(spec: Document, old_spec: Document) -> list[FieldError]:
    if "ExternalName" in (spec.get("type"), old_spec.get("type")) or (is_headless(spec) and is_headless(old_spec)):
        return []
    ips, old_ips = spec.get("clusterIPs") or [], old_spec.get("clusterIPs") or []
    shown = spec.get("clusterIPs")
    if len(ips) == len(old_ips):
        return [
            invalid(f"spec.clusterIPs[{index}]", shown, _ONCE_SET)
            for index, (ip, old_ip) in enumerate(zip(ips, old_ips, strict=True))
            if ip != old_ip
        ]
    errors = []
    if not ips:
        errors.append(invalid("spec.clusterIPs[0]", shown, "primary clusterIP can not be unset"))
    if ips and old_ips and ips[0] != old_ips[0]:
        errors.append(invalid("spec.clusterIPs[0]", shown, _ONCE_SET))
    policy = spec.get("ipFamilyPolicy")
    if len(old_ips) > len(ips) == 1 and policy != SINGLE_STACK:
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return errors


def validate_families_update(spec: Document, old_spec: Document) -> list[FieldError]:
    if "ExternalName" in (spec.get("type"), old_spec.get("type")) or is_headless(spec) or is_headless(old_spec):
        return []
    families, old_families = spec.get("ipFamilies") or [], old_spec.get("ipFamilies") or []
    path = "spec.ipFamilies[0]"
    if len(families) == len(old_families):
        pairs = zip(families, old_families, strict=True)
        return [invalid(path, spec.get("ipFamilies"), _ONCE_SET) for family, old in pairs if family != old]
    errors = []
    if len(old_families) > len(families) and not spec.get("clusterIPs"):
        errors.append(invalid(path, spec.get("ipFamilies"), "primary ipFamily can not be unset"))
    if families and old_families and families[0] != old_families[0]:
        errors.append(invalid(path, spec.get("clusterIPs"), _ONCE_SET))
    policy = spec.get("ipFamilyPolicy")
    if len(old_families) > len(families) == 1 and policy != SINGLE_STACK:
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return errors


def validate_balancer_status(service: Document, old: Document) -> list[FieldError]:
    """Field errors of the load balancer status."""
    path = "status.loadBalancer.ingress"
    ingresses = (service["status"].get("loadBalancer") or {}).get("ingress") or ()
    if ingresses and service["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = [point["ip"] for point in (old["status"].get("loadBalancer") or {}).get("ingress") or () if point.get("ip")]
    return [
        error
        for index, ingress in enumerate(ingresses)
        for error in _validate_ingress(ingress, known, f"{path}[{index}]")
    ]


def _validate_families(families: list[str]) -> list[FieldError]:
    errors = []
    first = first_positions(families)
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        errors += validate_enum(family, FAMILIES, path)
        if first[family] != index:
            errors.append(duplicate(path, family))
    return errors


def _validate_ips(ips: list[str], known: object) -> list[FieldError]:
    assert isinstance(known, list | tuple)
    errors: list[FieldError] = []
    for index, ip in enumerate(ips):
        if index == 0 and ip == NO_ADDRESS:
            if len(ips) > 1:
                errors.append(invalid("spec.clusterIPs", ips, "'None' must be the first and only value"))
            continue
        errors += validate_ip(ip, f"spec.clusterIPs[{index}]", known)
    return errors


def _validate_dual_stack(ips: list[str], families: list[str]) -> list[FieldError]:
    errors = []
    if len(ips) > 1 and not are_of_both_families(ips):
        errors.append(invalid("spec.clusterIPs", ips, "may specify no more than one IP for each IP family"))
    if ips == [NO_ADDRESS]:
        return errors
    for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
        if family in FAMILIES and family_of(ip) != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"spec.clusterIPs[{index}]", ip, detail))
    return errors


def _validate_ingress(ingress: Document, known: list[str], path: str) -> list[FieldError]:
    ip, mode, hostname = ingress.get("ip", ""), ingress.get("ipMode"), ingress.get("hostname", "")
    errors = validate_ip(ip, f"{path}.ip", known) if ip else []
    if mode is None:
        if ip:
            errors.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
    elif not ip:
        errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif mode not in BALANCER_IP_MODES:
        errors.append(not_supported(f"{path}.ipMode", mode, BALANCER_IP_MODES))
    return errors + _validate_hostname(hostname, f"{path}.hostname")


def _validate_hostname(hostname: str, path: str) -> list[FieldError]:
    if not hostname:
        return []
    errors = [invalid(path, hostname, text) for text in dns_subdomain_errors(hostname)]
    if parse_ip(hostname) is not None:
        errors.append(invalid(path, hostname, "must be a DNS name, not an IP address"))
    return errors


def validate_service(service: Document, old: Document | None) -> list[FieldError]:
    """Field errors of a service apart from its metadata."""
    spec, annotations = service["spec"], service["metadata"].get("annotations") or {}
    errors = _validate_service_topology(annotations)
    errors += _validate_type_dependent(spec)
    errors += _validate_service_ports(spec.get("ports") or ())
    if "selector" in spec:
        errors += validate_labels(spec["selector"], "spec.selector")
    errors += _validate_service_affinity(spec)
    errors += validate_cluster_ips(spec, old["spec"] if old else None)
    errors += _validate_external_ips(spec, old)
    errors += _SPEC.validate(spec, "spec", "type")
    errors += _validate_node_ports(spec)
    errors += _validate_source_ranges(spec, annotations, old)
    errors += _validate_balancer(spec)
    errors += validate_balancer_class(spec)
    errors += _validate_external_traffic(spec)
    errors += _validate_internal_traffic(spec)
    return errors + _SPEC.validate(spec, "spec", "trafficDistribution")


def needs_health_check(spec: Document) -> bool:
    """Whether load balancers use a health check node port."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def validate_balancer_class(spec: Document) -> list[FieldError]:
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    if spec.get("type") != "LoadBalancer":
        return [forbidden("spec.loadBalancerClass", _BALANCERS_ONLY)]
    return _SPEC.validate(spec, "spec", "loadBalancerClass")


def _validate_service_topology(annotations: Document) -> list[FieldError]:
    mode, hints = annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
    return [invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, detail)]


def _validate_type_dependent(spec: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = spec.get("type")
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    match kind:
        case "LoadBalancer" | "NodePort":
            if is_headless(spec):
                detail = f"may not be set to 'None' for {kind} services"
                errors.append(invalid("spec.clusterIPs[0]", spec["clusterIPs"][0], detail))
        case "ExternalName":
            errors += [
                forbidden(f"spec.{field}", _NOT_FOR_EXTERNAL_NAMES)
                for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
                if spec.get(field)
            ]
            # A trailing dot marks a fully qualified name.
            name = spec.get("externalName", "").removesuffix(".")
            if name:
                errors += [invalid("spec.externalName", name, text) for text in dns_subdomain_errors(name)]
            else:
                errors.append(required("spec.externalName"))
    return errors


def _validate_service_ports(ports: Sequence[Document]) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name")
        if name:
            errors += [invalid(f"{path}.name", name, text) for text in dns_label_errors(name)]
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{path}.name"))
        errors += _validate_service_port(port, path)
    return errors


def _validate_service_port(port: Document, path: str) -> list[FieldError]:
    target = port.get("targetPort", 0)
    errors = _PORT.validate(port, path, "port", "protocol")
    texts = port_name_errors(target) if isinstance(target, str) else port_number_errors(target)
    errors += [invalid(f"{path}.targetPort", target, text) for text in texts]
    return errors + _PORT.validate(port, path, "appProtocol")


def _validate_service_affinity(spec: Document) -> list[FieldError]:
    affinity, path = spec.get("sessionAffinity"), "spec.sessionAffinityConfig"
    if errors := _SPEC.validate(spec, "spec", "sessionAffinity"):
        return errors
    config = spec.get("sessionAffinityConfig")
    if affinity == "None":
        detail = "must not be set when session affinity is None"
        return [forbidden(path, detail)] if config is not None else []
    timeout_s = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
    if timeout_s is None:
        missing = path if config is None else f"{path}.clientIP"
        if config is not None and config.get("clientIP") is not None:
            missing = f"{path}.clientIP.timeoutSeconds"
        return [required(missing, "when session affinity type is ClientIP")]
    if 0 < timeout_s <= CLIENT_IP_TIMEOUT_S_MAX:
        return []
    detail = f"must be greater than 0 and less than {CLIENT_IP_TIMEOUT_S_MAX}"
    return [invalid(f"{path}.clientIP.timeoutSeconds", timeout_s, detail)]


def _validate_external_ips(spec: Document, old: Document | None) -> list[FieldError]:
    known = old["spec"].get("externalIPs") or () if old else ()
    errors: list[FieldError] = []
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        errors += validate_ip(ip, path, known) or validate_endpoint_ip(ip, path)
    return errors


def _validate_node_ports(spec: Document) -> list[FieldError]:
    ports = spec.get("ports") or ()
    errors: list[FieldError] = []
    if spec.get("type") == "ClusterIP":
        errors += [
            forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for index, port in enumerate(ports)
            if port.get("nodePort")
        ]
    node_ports: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if port.get("nodePort"):
            identity = (port.get("protocol", ""), port["nodePort"])
            if identity in node_ports:
                errors.append(duplicate(f"spec.ports[{index}].nodePort", port["nodePort"]))
            node_ports.add(identity)
    numbers: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        protocol, number = identity = (port.get("protocol", ""), port.get("port", 0))
        if identity in numbers:
            errors.append(duplicate(f"spec.ports[{index}]", _printed_port(protocol, number)))
        numbers.add(identity)
    return errors


def _printed_port(protocol: str, number: int) -> Document:
    """What Go prints for a port of which only these two are known."""
    names = ("Name", "Protocol", "AppProtocol", "Port", "TargetPort", "NodePort")
    return dict(zip(names, ("", protocol, None, number, 0, 0), strict=True))


def _validate_source_ranges(spec: Document, annotations: Document, old: Document | None) -> list[FieldError]:
    ranges = spec.get("loadBalancerSourceRanges")
    is_balancer = spec.get("type") == "LoadBalancer"
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        errors = [] if is_balancer else [forbidden(path, _BALANCERS_ONLY)]
        known = [text.strip() for text in (old["spec"].get("loadBalancerSourceRanges") or ())] if old else []
        for index, text in enumerate(ranges):
            errors += validate_range(text.strip(), f"{path}[{index}]", known)
        return errors
    text = annotations.get(SOURCE_RANGES)
    if text is None:
        return []
    path = f"metadata.annotations[{SOURCE_RANGES}]"
    errors = [] if is_balancer else [forbidden(path, _BALANCERS_ONLY)]
    is_known = old is not None and (old["metadata"].get("annotations") or {}).get(SOURCE_RANGES, "") == text
    if not is_known and text.strip():
        errors += [error for part in text.strip().split(",") for error in validate_range(part.strip(), path)]
    return errors


def _validate_balancer(spec: Document) -> list[FieldError]:
    is_balancer = spec.get("type") == "LoadBalancer"
    is_said = "allocateLoadBalancerNodePorts" in spec
    if is_said and not is_balancer:
        return [forbidden("spec.allocateLoadBalancerNodePorts", _BALANCERS_ONLY)]
    return [required("allocateLoadBalancerNodePorts")] if is_balancer and not is_said else []


def _validate_external_traffic(spec: Document) -> list[FieldError]:
    policy, port = spec.get("externalTrafficPolicy", ""), spec.get("healthCheckNodePort", 0)
    errors: list[FieldError] = []
    if not is_externally_accessible(spec):
        if policy:
            detail = "may only be set for externally-accessible services"
            errors.append(invalid("spec.externalTrafficPolicy", policy, detail))
    else:
        errors += _SPEC.validate(spec, "spec", "externalTrafficPolicy")
    if not needs_health_check(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.append(invalid("spec.healthCheckNodePort", port, detail))
    else:
        errors += _SPEC.validate(spec, "spec", "healthCheckNodePort")
    return errors


def _validate_internal_traffic(spec: Document) -> list[FieldError]:
    is_needed = spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP")
    if "internalTrafficPolicy" not in spec and not is_needed:
        return []
    return _SPEC.validate(spec, "spec", "internalTrafficPolicy")
