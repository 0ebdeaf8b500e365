"""Validation of a Service's spec and of its updates.

1. Addresses that the stored Service has stay valid.
2. `clusterIP` equals the first of `clusterIPs` and is immutable. The second one, of the other family, may be added and
   removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.kinds.endpoints import PROTOCOLS
from mooring.apiserver.validation.addresses import (
    IPV4,
    IPV6,
    are_of_both_families,
    endpoint_ip_faults,
    family_of,
    ip_faults,
    parse_ip,
    range_faults,
)
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.metadata import labels_faults
from mooring.apiserver.validation.names import (
    dns_label_faults,
    dns_subdomain_faults,
    port_name_faults,
    port_number_faults,
    qualified_name_faults,
)

NO_ADDRESS = "None"
FAMILIES = (IPV4, IPV6)
FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
SINGLE_STACK = "SingleStack"
BALANCER_IP_MODES = ("Proxy", "VIP")

_ONCE_SET = "may not change once set"

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES = ("ClientIP", "None")
TRAFFIC_POLICIES = ("Cluster", "Local")
TRAFFIC_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
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


def cluster_ips_faults(spec: Document, old_spec: Document | None) -> list[Fault]:
    if spec.get("type") == "ExternalName":
        return []
    first, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    faults: list[Fault] = []
    if first and not ips:
        faults.append(required("spec.clusterIPs"))
    elif first and ips[0] != first:
        faults.append(invalid("spec.clusterIPs", ips, "first value must match `clusterIP`"))
    elif ips and not first:
        faults.append(invalid("spec.clusterIPs", ips, "must be empty when `clusterIP` is not specified"))
    faults += _families_faults(families)
    if policy is not None and policy not in FAMILY_POLICIES:
        faults.append(not_supported("spec.ipFamilyPolicy", policy, FAMILY_POLICIES))
    bad = _ips_faults(ips, (old_spec or {}).get("clusterIPs") or ())
    faults += bad
    if len(ips) > 2:
        faults.append(invalid("spec.clusterIPs", ips, "may only hold up to 2 values"))
    # With an address that is none, what follows would only confuse.
    return faults if bad else faults + _dual_stack_faults(ips, families)


def cluster_ips_update_faults(spec: Document, old_spec: Document) -> list[Fault]:
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
    faults = []
    if not ips:
        faults.append(invalid("spec.clusterIPs[0]", shown, "primary clusterIP can not be unset"))
    if ips and old_ips and ips[0] != old_ips[0]:
        faults.append(invalid("spec.clusterIPs[0]", shown, _ONCE_SET))
    policy = spec.get("ipFamilyPolicy")
    if len(old_ips) > len(ips) == 1 and policy != SINGLE_STACK:
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        faults.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return faults


def families_update_faults(spec: Document, old_spec: Document) -> list[Fault]:
    if "ExternalName" in (spec.get("type"), old_spec.get("type")) or is_headless(spec) or is_headless(old_spec):
        return []
    families, old_families = spec.get("ipFamilies") or [], old_spec.get("ipFamilies") or []
    path = "spec.ipFamilies[0]"
    if len(families) == len(old_families):
        pairs = zip(families, old_families, strict=True)
        return [invalid(path, spec.get("ipFamilies"), _ONCE_SET) for family, old in pairs if family != old]
    faults = []
    if len(old_families) > len(families) and not spec.get("clusterIPs"):
        faults.append(invalid(path, spec.get("ipFamilies"), "primary ipFamily can not be unset"))
    if families and old_families and families[0] != old_families[0]:
        faults.append(invalid(path, spec.get("clusterIPs"), _ONCE_SET))
    policy = spec.get("ipFamilyPolicy")
    if len(old_families) > len(families) == 1 and policy != SINGLE_STACK:
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        faults.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return faults


def balancer_status_faults(service: Document, old: Document) -> list[Fault]:
    """What is wrong with the addresses that a balancer gave to a service."""
    path = "status.loadBalancer.ingress"
    ingresses = (service["status"].get("loadBalancer") or {}).get("ingress") or ()
    if ingresses and service["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = [each["ip"] for each in (old["status"].get("loadBalancer") or {}).get("ingress") or () if each.get("ip")]
    return [
        fault
        for index, ingress in enumerate(ingresses)
        for fault in _ingress_faults(ingress, known, f"{path}[{index}]")
    ]


# --- parts ------------------------------------------------------------------------------------------------------


def _families_faults(families: list[str]) -> list[Fault]:
    faults = []
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in FAMILIES:
            faults.append(not_supported(path, family, FAMILIES))
        if family in families[:index]:
            faults.append(duplicate(path, family))
    return faults


def _ips_faults(ips: list[str], known: object) -> list[Fault]:
    assert isinstance(known, list | tuple)
    faults: list[Fault] = []
    for index, ip in enumerate(ips):
        if index == 0 and ip == NO_ADDRESS:
            if len(ips) > 1:
                faults.append(invalid("spec.clusterIPs", ips, "'None' must be the first and only value"))
            continue
        faults += ip_faults(ip, f"spec.clusterIPs[{index}]", known)
    return faults


def _dual_stack_faults(ips: list[str], families: list[str]) -> list[Fault]:
    faults = []
    if len(ips) > 1 and not are_of_both_families(ips):
        faults.append(invalid("spec.clusterIPs", ips, "may specify no more than one IP for each IP family"))
    if ips == [NO_ADDRESS]:
        return faults
    for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
        if family in FAMILIES and family_of(ip) != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            faults.append(invalid(f"spec.clusterIPs[{index}]", ip, detail))
    return faults


def _ingress_faults(ingress: Document, known: list[str], path: str) -> list[Fault]:
    ip, mode, hostname = ingress.get("ip", ""), ingress.get("ipMode"), ingress.get("hostname", "")
    faults = ip_faults(ip, f"{path}.ip", known) if ip else []
    if mode is None:
        if ip:
            faults.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
    elif not ip:
        faults.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif mode not in BALANCER_IP_MODES:
        faults.append(not_supported(f"{path}.ipMode", mode, BALANCER_IP_MODES))
    return faults + _hostname_faults(hostname, f"{path}.hostname")


def _hostname_faults(hostname: str, path: str) -> list[Fault]:
    if not hostname:
        return []
    faults = [invalid(path, hostname, text) for text in dns_subdomain_faults(hostname)]
    if parse_ip(hostname) is not None:
        faults.append(invalid(path, hostname, "must be a DNS name, not an IP address"))
    return faults


def service_faults(service: Document, old: Document | None) -> list[Fault]:
    """What is wrong with a service apart from its metadata."""
    spec, annotations = service["spec"], service["metadata"].get("annotations") or {}
    faults = _service_topology_faults(annotations)
    faults += _type_dependent_faults(spec)
    faults += _service_ports_faults(spec.get("ports") or ())
    if "selector" in spec:
        faults += labels_faults(spec["selector"], "spec.selector")
    faults += _service_affinity_faults(spec)
    faults += cluster_ips_faults(spec, old["spec"] if old else None)
    faults += _external_ips_faults(spec, old)
    faults += _service_type_faults(spec)
    faults += _node_ports_faults(spec)
    faults += _source_ranges_faults(spec, annotations, old)
    faults += _balancer_faults(spec)
    faults += balancer_class_faults(spec)
    faults += _external_traffic_faults(spec)
    faults += _internal_traffic_faults(spec)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in TRAFFIC_DISTRIBUTIONS:
        faults.append(not_supported("spec.trafficDistribution", distribution, TRAFFIC_DISTRIBUTIONS))
    return faults


def needs_health_check(spec: Document) -> bool:
    """Whether balancers ask nodes if they have a pod of the service."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def balancer_class_faults(spec: Document) -> list[Fault]:
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    if spec.get("type") != "LoadBalancer":
        return [forbidden("spec.loadBalancerClass", _BALANCERS_ONLY)]
    return [invalid("spec.loadBalancerClass", name, text) for text in qualified_name_faults(name)]


# --- parts ------------------------------------------------------------------------------------------------------


def _service_topology_faults(annotations: Document) -> list[Fault]:
    mode, hints = annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
    return [invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, detail)]


def _type_dependent_faults(spec: Document) -> list[Fault]:
    faults: list[Fault] = []
    kind = spec.get("type")
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        faults.append(required("spec.ports"))
    match kind:
        case "LoadBalancer" | "NodePort":
            if is_headless(spec):
                detail = f"may not be set to 'None' for {kind} services"
                faults.append(invalid("spec.clusterIPs[0]", spec["clusterIPs"][0], detail))
        case "ExternalName":
            faults += [
                forbidden(f"spec.{field}", _NOT_FOR_EXTERNAL_NAMES)
                for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
                if spec.get(field)
            ]
            # A dot at the end says that the name is complete.
            name = spec.get("externalName", "").removesuffix(".")
            if name:
                faults += [invalid("spec.externalName", name, text) for text in dns_subdomain_faults(name)]
            else:
                faults.append(required("spec.externalName"))
    return faults


def _service_ports_faults(ports: Sequence[Document]) -> list[Fault]:
    faults: list[Fault] = []
    names: list[str] = []
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name")
        if name:
            faults += [invalid(f"{path}.name", name, text) for text in dns_label_faults(name)]
            if name in names:
                faults.append(duplicate(f"{path}.name", name))
            names.append(name)
        elif len(ports) > 1:
            faults.append(required(f"{path}.name"))
        faults += _service_port_faults(port, path)
    return faults


def _service_port_faults(port: Document, path: str) -> list[Fault]:
    number, protocol, target = port.get("port", 0), port.get("protocol"), port.get("targetPort", 0)
    faults = [invalid(f"{path}.port", number, text) for text in port_number_faults(number)]
    if not protocol:
        faults.append(required(f"{path}.protocol"))
    elif protocol not in PROTOCOLS:
        faults.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    texts = port_name_faults(target) if isinstance(target, str) else port_number_faults(target)
    faults += [invalid(f"{path}.targetPort", target, text) for text in texts]
    if "appProtocol" in port:
        value = port["appProtocol"]
        faults += [invalid(f"{path}.appProtocol", value, text) for text in qualified_name_faults(value)]
    return faults


def _service_affinity_faults(spec: Document) -> list[Fault]:
    affinity, path = spec.get("sessionAffinity"), "spec.sessionAffinityConfig"
    if not affinity:
        return [required("spec.sessionAffinity")]
    if affinity not in AFFINITIES:
        return [not_supported("spec.sessionAffinity", affinity, AFFINITIES)]
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


def _external_ips_faults(spec: Document, old: Document | None) -> list[Fault]:
    known = old["spec"].get("externalIPs") or () if old else ()
    faults: list[Fault] = []
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        faults += ip_faults(ip, path, known) or endpoint_ip_faults(ip, path)
    return faults


def _service_type_faults(spec: Document) -> list[Fault]:
    kind = spec.get("type")
    if not kind:
        return [required("spec.type")]
    return [] if kind in TYPES else [not_supported("spec.type", kind, TYPES)]


def _node_ports_faults(spec: Document) -> list[Fault]:
    ports = spec.get("ports") or ()
    faults: list[Fault] = []
    if spec.get("type") == "ClusterIP":
        faults += [
            forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for index, port in enumerate(ports)
            if port.get("nodePort")
        ]
    node_ports: list[tuple[str, int]] = []
    for index, port in enumerate(ports):
        if port.get("nodePort"):
            identity = (port.get("protocol", ""), port["nodePort"])
            if identity in node_ports:
                faults.append(duplicate(f"spec.ports[{index}].nodePort", port["nodePort"]))
            node_ports.append(identity)
    numbers: list[tuple[str, int]] = []
    for index, port in enumerate(ports):
        protocol, number = identity = (port.get("protocol", ""), port.get("port", 0))
        if identity in numbers:
            faults.append(duplicate(f"spec.ports[{index}]", _printed_port(protocol, number)))
        numbers.append(identity)
    return faults


def _printed_port(protocol: str, number: int) -> Document:
    """What Go prints for a port of which only these two are known."""
    names = ("Name", "Protocol", "AppProtocol", "Port", "TargetPort", "NodePort")
    return dict(zip(names, ("", protocol, None, number, 0, 0), strict=True))


def _source_ranges_faults(spec: Document, annotations: Document, old: Document | None) -> list[Fault]:
    ranges = spec.get("loadBalancerSourceRanges")
    is_balancer = spec.get("type") == "LoadBalancer"
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        faults = [] if is_balancer else [forbidden(path, _BALANCERS_ONLY)]
        known = [text.strip() for text in (old["spec"].get("loadBalancerSourceRanges") or ())] if old else []
        for index, text in enumerate(ranges):
            faults += range_faults(text.strip(), f"{path}[{index}]", known)
        return faults
    text = annotations.get(SOURCE_RANGES)
    if text is None:
        return []
    path = f"metadata.annotations[{SOURCE_RANGES}]"
    faults = [] if is_balancer else [forbidden(path, _BALANCERS_ONLY)]
    is_known = old is not None and (old["metadata"].get("annotations") or {}).get(SOURCE_RANGES, "") == text
    if not is_known and text.strip():
        faults += [fault for part in text.strip().split(",") for fault in range_faults(part.strip(), path)]
    return faults


def _balancer_faults(spec: Document) -> list[Fault]:
    is_balancer = spec.get("type") == "LoadBalancer"
    is_said = "allocateLoadBalancerNodePorts" in spec
    if is_said and not is_balancer:
        return [forbidden("spec.allocateLoadBalancerNodePorts", _BALANCERS_ONLY)]
    return [required("allocateLoadBalancerNodePorts")] if is_balancer and not is_said else []


def _external_traffic_faults(spec: Document) -> list[Fault]:
    policy, port = spec.get("externalTrafficPolicy", ""), spec.get("healthCheckNodePort", 0)
    faults: list[Fault] = []
    if not is_externally_accessible(spec):
        if policy:
            detail = "may only be set for externally-accessible services"
            faults.append(invalid("spec.externalTrafficPolicy", policy, detail))
    elif not policy:
        faults.append(required("spec.externalTrafficPolicy"))
    elif policy not in TRAFFIC_POLICIES:
        faults.append(not_supported("spec.externalTrafficPolicy", policy, TRAFFIC_POLICIES))
    if not needs_health_check(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            faults.append(invalid("spec.healthCheckNodePort", port, detail))
    elif not port:
        faults.append(required("spec.healthCheckNodePort"))
    else:
        faults += [invalid("spec.healthCheckNodePort", port, text) for text in port_number_faults(port)]
    return faults


def _internal_traffic_faults(spec: Document) -> list[Fault]:
    policy = spec.get("internalTrafficPolicy")
    if policy is None:
        is_needed = spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP")
        return [required("spec.internalTrafficPolicy")] if is_needed else []
    return [] if policy in TRAFFIC_POLICIES else [not_supported("spec.internalTrafficPolicy", policy, TRAFFIC_POLICIES)]
