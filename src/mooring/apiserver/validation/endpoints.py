"""What is wrong with Endpoints."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.addresses import endpoint_ip_faults, ip_faults
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required
from mooring.apiserver.validation.names import (
    dns_label_faults,
    dns_subdomain_faults,
    port_number_faults,
    qualified_name_faults,
)

PROTOCOLS = ("SCTP", "TCP", "UDP")


def subsets_faults(endpoints: Document) -> list[Fault]:
    faults: list[Fault] = []
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            faults.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(subset.get(field) or ()):
                faults += _address_faults(address, f"{path}.{field}[{position}]")
        ports = subset.get("ports") or ()
        for position, port in enumerate(ports):
            faults += _port_faults(port, f"{path}.ports[{position}]", needs_name=len(ports) > 1)
    return faults


def _address_faults(address: Document, path: str) -> list[Fault]:
    ip = address.get("ip", "")
    faults = ip_faults(ip, f"{path}.ip")
    hostname = address.get("hostname")
    if hostname:
        faults += [invalid(f"{path}.hostname", hostname, text) for text in dns_label_faults(hostname)]
    if "nodeName" in address:
        node_name = address["nodeName"]
        faults += [invalid(f"{path}.nodeName", node_name, text) for text in dns_subdomain_faults(node_name)]
    return faults + endpoint_ip_faults(ip, f"{path}.ip")


def _port_faults(port: Document, path: str, needs_name: bool) -> list[Fault]:
    faults: list[Fault] = []
    name, number, protocol = port.get("name"), port.get("port", 0), port.get("protocol")
    if name:
        faults += [invalid(f"{path}.name", name, text) for text in dns_label_faults(name)]
    elif needs_name:
        faults.append(required(f"{path}.name"))
    faults += [invalid(f"{path}.port", number, text) for text in port_number_faults(number)]
    if not protocol:
        faults.append(required(f"{path}.protocol"))
    elif protocol not in PROTOCOLS:
        faults.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    if "appProtocol" in port:
        value = port["appProtocol"]
        faults += [invalid(f"{path}.appProtocol", value, text) for text in qualified_name_faults(value)]
    return faults
