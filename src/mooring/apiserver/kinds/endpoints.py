"""Endpoints (v1)."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.cells import NONE, SHOWN_MAX, age, cut_short
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column
from mooring.apiserver.validation.addresses import endpoint_ip_faults, ip_faults, ip_warnings
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required
from mooring.apiserver.validation.names import (
    dns_label_faults,
    dns_subdomain_faults,
    port_number_faults,
    qualified_name_faults,
)

PROTOCOLS = ("SCTP", "TCP", "UDP")

MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
CONTROLLER_NAME = "endpoint-controller"


def default_endpoints(endpoints: Document) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


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
            faults += _endpoints_port_faults(port, f"{path}.ports[{position}]", needs_name=len(ports) > 1)
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


def _endpoints_port_faults(port: Document, path: str, needs_name: bool) -> list[Fault]:
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


def _endpoints_cells(endpoints: Document, now_s: float) -> list[Cell]:
    subsets = endpoints.get("subsets") or ()
    addresses = list(_endpoint_addresses(subsets))
    text = cut_short(addresses[:SHOWN_MAX], len(addresses)) if subsets else NONE
    return [endpoints["metadata"]["name"], text, age(endpoints, now_s)]


def _endpoint_addresses(subsets: list[Document] | tuple[()]) -> Iterator[str]:
    for subset in subsets:
        addresses = [each["ip"] for each in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            yield from addresses  # of a headless service
            continue
        for port in ports:
            for address in addresses:
                yield f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"


ENDPOINTS_TABLE = KindTable((NAME, column("Endpoints", "Where the service leads to."), AGE), _endpoints_cells)


class EndpointsStrategy(Strategy):
    """Writing Endpoints."""

    table = ENDPOINTS_TABLE

    allows_create_on_update = True

    def default(self, obj: Document) -> None:
        default_endpoints(obj)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return subsets_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_update_faults(obj, old)
        faults += self.meta_faults(obj)
        # What is as it was is not judged again: an older server may have let it pass.
        if (obj.get("subsets") or []) != (old.get("subsets") or []):
            faults += subsets_faults(obj)
        return faults

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _endpoints_warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _endpoints_warnings(obj)


def _endpoints_warnings(endpoints: Document) -> list[str]:
    if (endpoints["metadata"].get("labels") or {}).get(MANAGED_BY_LABEL) == CONTROLLER_NAME:
        return []
    return [
        text
        for index, subset in enumerate(endpoints.get("subsets") or ())
        for field in ("addresses", "notReadyAddresses")
        for position, address in enumerate(subset.get(field) or ())
        for text in ip_warnings(address["ip"], f"subsets[{index}].{field}[{position}].ip")
    ]


STRATEGY = EndpointsStrategy
