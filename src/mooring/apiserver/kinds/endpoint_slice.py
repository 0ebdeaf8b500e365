"""EndpointSlice (discovery.k8s.io/v1).

1. Unchanged endpoints are not validated again: older servers accepted more.
2. `deprecatedTopology` is read-only; stored values stay until the endpoints change.
3. The generation counts changes of labels and of everything outside of the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.cells import SHOWN_MAX, UNSET, age, cut_short
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column
from mooring.apiserver.validation.addresses import (
    IPV4,
    IPV6,
    endpoint_ip_faults,
    family_of,
    ip_faults,
    ip_warnings,
    parse_ip,
)
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

_HOSTNAME = "kubernetes.io/hostname"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


def default_endpoint_slice(obj: Document) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def endpoint_slice_faults(obj: Document, old: Document | None) -> list[Fault]:
    kind = obj.get("addressType", "")
    faults: list[Fault] = []
    if not kind:
        faults.append(required("addressType"))
    elif kind not in _ADDRESS_TYPES:
        faults.append(not_supported("addressType", kind, _ADDRESS_TYPES))
    faults += _endpoint_slice_ports_faults(obj.get("ports") or (), "ports")
    if old is None or (obj.get("endpoints") or []) != (old.get("endpoints") or []):
        faults += _endpoints_faults(obj.get("endpoints") or (), kind, "endpoints")
    return faults


def endpoint_slice_update_faults(obj: Document, old: Document) -> list[Fault]:
    faults = endpoint_slice_faults(obj, old)
    if obj.get("addressType") != old.get("addressType"):
        faults.append(invalid("addressType", obj.get("addressType", ""), IMMUTABLE))
    return faults


def _endpoint_slice_ports_faults(ports: Sequence[Document], path: str) -> list[Fault]:
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


def _endpoint_slice_cells(piece: Document, now_s: float) -> list[Cell]:
    ports = [_slice_port(port) for port in piece.get("ports") or ()]
    addresses = [text for each in piece.get("endpoints") or () for text in each.get("addresses") or ()]
    return [
        piece["metadata"]["name"],
        piece.get("addressType", ""),
        cut_short(ports[:SHOWN_MAX], len(ports)) or UNSET,
        cut_short(addresses[:SHOWN_MAX], len(addresses)) or UNSET,
        age(piece, now_s),
    ]


def _slice_port(port: Document) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return "*" if port.get("name") is None else str(port["name"])


ENDPOINT_SLICE_TABLE = KindTable(
    (
        NAME,
        column("AddressType", "What its addresses are."),
        column("Ports", "The ports of all its endpoints."),
        column("Endpoints", "Their addresses."),
        AGE,
    ),
    _endpoint_slice_cells,
)


class EndpointSliceStrategy(Strategy):
    table = ENDPOINT_SLICE_TABLE

    def default(self, obj: Document) -> None:
        default_endpoint_slice(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        super().prepare_for_create(obj, call)
        _drop_topology(obj, ())

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        super().prepare_for_update(obj, old, call)
        if (obj.get("endpoints") or []) != (old.get("endpoints") or []):
            known = [
                (endpoint.get("deprecatedTopology") or {}).get(_HOSTNAME, "") for endpoint in old.get("endpoints") or ()
            ]
            _drop_topology(obj, [name for name in known if name])

    def count_generation(self, obj: Document, old: Document) -> None:
        metadata, old_metadata = obj["metadata"], old["metadata"]
        is_same = all(
            (obj.get(field) or None) == (old.get(field) or None) for field in ("addressType", "endpoints", "ports")
        )
        if not is_same or (metadata.get("labels") or {}) != (old_metadata.get("labels") or {}):
            metadata["generation"] = old_metadata.get("generation", 0) + 1

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return endpoint_slice_faults(obj, None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new slice: that its metadata may change so is left to the registry."""
        faults = self.meta_faults(obj)
        return faults + endpoint_slice_update_faults(obj, old)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        warnings = []
        if obj.get("addressType") == FQDN:
            warnings.append("spec.addressType: FQDN endpoints are deprecated")
        return warnings + _address_warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _address_warnings(obj)


def _drop_topology(obj: Document, known_nodes: list[str] | tuple[str, ...]) -> None:
    for endpoint in obj.get("endpoints") or ():
        node = (endpoint.pop("deprecatedTopology", None) or {}).get(_HOSTNAME)
        if node in known_nodes and "nodeName" not in endpoint:
            endpoint["nodeName"] = node


def _address_warnings(obj: Document) -> list[str]:
    if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _CONTROLLERS:
        return []
    return [
        text
        for index, endpoint in enumerate(obj.get("endpoints") or ())
        for number, address in enumerate(endpoint.get("addresses") or ())
        for text in ip_warnings(address, f"endpoints[{index}].addresses[{number}]")
    ]


STRATEGY = EndpointSliceStrategy
