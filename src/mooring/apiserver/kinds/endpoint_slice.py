"""EndpointSlice (discovery.k8s.io/v1).

1. Unchanged endpoints are not validated again: older servers accepted more.
2. `deprecatedTopology` is read-only; stored values stay until the endpoints change.
3. The generation counts changes of labels and of everything outside of the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.labels import label_value_errors
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, SHOWN_MAX, UNSET, Cell, KindTable, age, column, cut_short
from mooring.apiserver.validation.addresses import (
    IPV4,
    IPV6,
    family_of,
    ip_warnings,
    parse_ip,
    validate_endpoint_ip,
    validate_ip,
)
from mooring.apiserver.validation.fields import FieldError, duplicate, invalid, required, too_many
from mooring.apiserver.validation.names import dns_label_errors, dns_subdomain_errors
from mooring.apiserver.validation.schema_rules import struct_rules

FQDN = "FQDN"
ADDRESSES_MAX = 100
PORTS_MAX = 20_000
ENDPOINTS_MAX = 1_000
HINTS_MAX = 8

_SLICE = struct_rules("discovery", "EndpointSlice")
_ENDPOINT = struct_rules("discovery", "Endpoint")
_PORT = struct_rules("discovery", "EndpointPort")

_HOSTNAME = "kubernetes.io/hostname"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


# --- validation --------------------------------------------------------------------------------------------------


def validate_endpoint_slice(obj: Document, old: Document | None) -> list[FieldError]:
    kind = obj.get("addressType", "")
    errors = _SLICE.validate(obj, "")
    errors += _validate_endpoint_slice_ports(obj.get("ports") or (), "ports")
    if old is None or (obj.get("endpoints") or []) != (old.get("endpoints") or []):
        errors += _validate_endpoints(obj.get("endpoints") or (), kind, "endpoints")
    return errors


def validate_endpoint_slice_update(obj: Document, old: Document) -> list[FieldError]:
    return validate_endpoint_slice(obj, old) + _SLICE.validate_update(obj, old, "")


def _validate_endpoint_slice_ports(ports: Sequence[Document], path: str) -> list[FieldError]:
    if len(ports) > PORTS_MAX:
        return [too_many(path, len(ports), PORTS_MAX)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name", "")
        errors += _PORT.validate(port, here, "name")
        if name in seen:
            errors.append(duplicate(f"{here}.name", name))
        seen.add(name)
        errors += _PORT.validate(port, here, "protocol", "appProtocol")
    return errors


def _validate_endpoints(endpoints: Sequence[Document], kind: str, path: str) -> list[FieldError]:
    if len(endpoints) > ENDPOINTS_MAX:
        return [too_many(path, len(endpoints), ENDPOINTS_MAX)]
    errors: list[FieldError] = []
    for index, endpoint in enumerate(endpoints):
        errors += _validate_endpoint(endpoint, kind, f"{path}[{index}]")
    return errors


def _validate_endpoint(endpoint: Document, kind: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    addresses, here = endpoint.get("addresses") or (), f"{path}.addresses"
    if not addresses:
        errors.append(required(here, "must contain at least 1 address"))
    elif len(addresses) > ADDRESSES_MAX:
        errors.append(too_many(here, len(addresses), ADDRESSES_MAX))
    for index, address in enumerate(addresses):
        if kind in (IPV4, IPV6):
            errors += _validate_ip(address, kind, here, f"{here}[{index}]")
        elif kind == FQDN:
            errors += _validate_domain_name(address, f"{here}[{index}]")
    errors += _ENDPOINT.validate(endpoint, path, "nodeName", "hostname")
    if (hints := endpoint.get("hints")) is not None:
        errors += _validate_hints(hints, f"{path}.hints")
    return errors


def _validate_ip(address: str, kind: str, list_path: str, path: str) -> list[FieldError]:
    errors = validate_ip(address, path)
    if not errors and kind == IPV6:
        errors += _validate_canonical(address, path)
    if errors:
        return errors
    if family_of(address) != kind:
        errors.append(invalid(list_path, address, f"must be an {kind} address"))
    return errors + validate_endpoint_ip(address, path)


def _validate_canonical(address: str, path: str) -> list[FieldError]:
    found = parse_ip(address)
    if found is None or str(found.ip) == address:
        return []
    return [invalid(path, address, f"must be in canonical form ({quoted(str(found.ip))})")]


def _validate_domain_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if texts := dns_subdomain_errors(name):
        return [invalid(path, name, ",".join(texts))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        if texts := dns_label_errors(label):
            return [invalid(path, label, ",".join(texts))]
    return []


def _validate_hints(hints: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, name_errors in (("forZones", label_value_errors), ("forNodes", dns_subdomain_errors)):
        field_hints, here = hints.get(field) or (), f"{path}.{field}"
        if len(field_hints) > HINTS_MAX:
            return [*errors, too_many(here, len(field_hints), HINTS_MAX)]
        seen: set[str] = set()
        for index, hint in enumerate(field_hints):
            name = hint.get("name", "")
            if name in seen:
                errors.append(duplicate(f"{here}[{index}].name", name))
            seen.add(name)
            errors += [invalid(f"{here}[{index}].name", name, text) for text in name_errors(name)]
    return errors


# --- table -------------------------------------------------------------------------------------------------------


def _endpoint_slice_cells(piece: Document, now_s: float) -> list[Cell]:
    ports = [_slice_port(port) for port in piece.get("ports") or ()]
    addresses = [text for endpoint in piece.get("endpoints") or () for text in endpoint.get("addresses") or ()]
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


# --- strategy ----------------------------------------------------------------------------------------------------


class EndpointSliceStrategy(Strategy):
    table = KindTable(
        (
            NAME,
            column("AddressType", "What its addresses are."),
            column("Ports", "The ports of all its endpoints."),
            column("Endpoints", "Their addresses."),
            AGE,
        ),
        _endpoint_slice_cells,
    )

    def default(self, obj: Document) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

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

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_endpoint_slice(obj, None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new slice: that its metadata may change so is left to the registry."""
        errors = self.validate_meta(obj)
        return errors + validate_endpoint_slice_update(obj, old)

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
