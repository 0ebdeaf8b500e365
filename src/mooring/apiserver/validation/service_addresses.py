"""What is wrong with the addresses of a service, and with a change of them.

1. `clusterIP` and the first of `clusterIPs` are one thing under two names. The first never changes; the second, of the
   other family, may come and go.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.addresses import IPV4, IPV6, are_of_both_families, family_of, ip_faults, parse_ip
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import dns_subdomain_faults

NO_ADDRESS = "None"
FAMILIES = (IPV4, IPV6)
FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
SINGLE_STACK = "SingleStack"
BALANCER_IP_MODES = ("Proxy", "VIP")

_ONCE_SET = "may not change once set"


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
