"""What is odd about a service."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.addresses import ip_warnings, range_warnings
from mooring.apiserver.validation.service import TOPOLOGY_HINTS, TOPOLOGY_MODE
from mooring.apiserver.validation.service_addresses import NO_ADDRESS


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
