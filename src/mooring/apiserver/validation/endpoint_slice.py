"""What is wrong with an endpoint slice.

Comes in   an endpoint slice, and what it was
Goes out   faults

 1. Endpoints that have not changed are not judged again: older servers let in more.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.validation.addresses import IPV4, IPV6, endpoint_ip_faults, family_of, ip_faults, parse_ip
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, not_supported, required, too_many
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import dns_label_faults, dns_subdomain_faults
from mooring.apiserver.validation.selectors import label_name_faults

FQDN = "FQDN"
ADDRESSES_MAX = 100
PORTS_MAX = 20_000
ENDPOINTS_MAX = 1_000
HINTS_MAX = 8

_ADDRESS_TYPES = (FQDN, IPV4, IPV6)
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def endpoint_slice_faults(obj: Document, old: Document | None) -> list[Fault]:
    kind = obj.get("addressType", "")
    faults: list[Fault] = []
    if not kind:
        faults.append(required("addressType"))
    elif kind not in _ADDRESS_TYPES:
        faults.append(not_supported("addressType", kind, _ADDRESS_TYPES))
    faults += _ports_faults(obj.get("ports") or (), "ports")
    if old is None or (obj.get("endpoints") or []) != (old.get("endpoints") or []):
        faults += _endpoints_faults(obj.get("endpoints") or (), kind, "endpoints")
    return faults


def endpoint_slice_update_faults(obj: Document, old: Document) -> list[Fault]:
    faults = endpoint_slice_faults(obj, old)
    if obj.get("addressType") != old.get("addressType"):
        faults.append(invalid("addressType", obj.get("addressType", ""), IMMUTABLE))
    return faults


def _ports_faults(ports: Sequence[Document], path: str) -> list[Fault]:
    if len(ports) > PORTS_MAX:
        return [too_many(path, len(ports), PORTS_MAX)]
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name", "")
        if name:
            faults += [invalid(f"{here}.name", name, text) for text in dns_label_faults(name)]
        if name in seen:
            faults.append(duplicate(f"{here}.name", name))
        seen.add(name)
        protocol = port.get("protocol")
        if protocol is None:
            faults.append(required(f"{here}.protocol"))
        elif protocol not in _PROTOCOLS:
            faults.append(not_supported(f"{here}.protocol", protocol, _PROTOCOLS))
        if (application := port.get("appProtocol")) is not None:
            faults += label_name_faults(application, f"{here}.appProtocol")
    return faults


def _endpoints_faults(endpoints: Sequence[Document], kind: str, path: str) -> list[Fault]:
    if len(endpoints) > ENDPOINTS_MAX:
        return [too_many(path, len(endpoints), ENDPOINTS_MAX)]
    faults: list[Fault] = []
    for index, endpoint in enumerate(endpoints):
        faults += _endpoint_faults(endpoint, kind, f"{path}[{index}]")
    return faults


def _endpoint_faults(endpoint: Document, kind: str, path: str) -> list[Fault]:
    faults: list[Fault] = []
    addresses, here = endpoint.get("addresses") or (), f"{path}.addresses"
    if not addresses:
        faults.append(required(here, "must contain at least 1 address"))
    elif len(addresses) > ADDRESSES_MAX:
        faults.append(too_many(here, len(addresses), ADDRESSES_MAX))
    for index, address in enumerate(addresses):
        if kind in (IPV4, IPV6):
            faults += _ip_faults(address, kind, here, f"{here}[{index}]")
        elif kind == FQDN:
            faults += _domain_name_faults(address, f"{here}[{index}]")
    if (node := endpoint.get("nodeName")) is not None:
        faults += [invalid(f"{path}.nodeName", node, text) for text in dns_subdomain_faults(node)]
    if (hostname := endpoint.get("hostname")) is not None:
        faults += [invalid(f"{path}.hostname", hostname, text) for text in dns_label_faults(hostname)]
    if (hints := endpoint.get("hints")) is not None:
        faults += _hints_faults(hints, f"{path}.hints")
    return faults


def _ip_faults(address: str, kind: str, list_path: str, path: str) -> list[Fault]:
    faults = ip_faults(address, path)
    if not faults and kind == IPV6:
        faults += _canonical_faults(address, path)
    if faults:
        return faults
    if family_of(address) != kind:
        faults.append(invalid(list_path, address, f"must be an {kind} address"))
    return faults + endpoint_ip_faults(address, path)


def _canonical_faults(address: str, path: str) -> list[Fault]:
    found = parse_ip(address)
    if found is None or str(found.ip) == address:
        return []
    return [invalid(path, address, f"must be in canonical form ({quoted(str(found.ip))})")]


def _domain_name_faults(name: str, path: str) -> list[Fault]:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if texts := dns_subdomain_faults(name):
        return [invalid(path, name, ",".join(texts))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        if texts := dns_label_faults(label):
            return [invalid(path, label, ",".join(texts))]
    return []


def _hints_faults(hints: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for field, name_faults in (("forZones", label_value_faults), ("forNodes", dns_subdomain_faults)):
        wanted, here = hints.get(field) or (), f"{path}.{field}"
        if len(wanted) > HINTS_MAX:
            return [*faults, too_many(here, len(wanted), HINTS_MAX)]
        seen: set[str] = set()
        for index, hint in enumerate(wanted):
            name = hint.get("name", "")
            if name in seen:
                faults.append(duplicate(f"{here}[{index}].name", name))
            seen.add(name)
            faults += [invalid(f"{here}[{index}].name", name, text) for text in name_faults(name)]
    return faults
