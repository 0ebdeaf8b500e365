"""Endpoints (v1)."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, NONE, SHOWN_MAX, Cell, KindTable, age, column, cut_short
from mooring.apiserver.validation.addresses import ip_warnings, validate_endpoint_ip, validate_ip
from mooring.apiserver.validation.fields import FieldError, required
from mooring.apiserver.validation.schema_rules import struct_rules

_ADDRESS = struct_rules("core", "EndpointAddress")
_PORT = struct_rules("core", "EndpointPort")

MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
CONTROLLER_NAME = "endpoint-controller"


def validate_subsets(endpoints: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(subset.get(field) or ()):
                errors += _validate_address(address, f"{path}.{field}[{position}]")
        ports = subset.get("ports") or ()
        for position, port in enumerate(ports):
            errors += _validate_endpoints_port(port, f"{path}.ports[{position}]", needs_name=len(ports) > 1)
    return errors


def _validate_address(address: Document, path: str) -> list[FieldError]:
    ip = address.get("ip", "")
    errors = validate_ip(ip, f"{path}.ip")
    errors += _ADDRESS.validate(address, path)
    return errors + validate_endpoint_ip(ip, f"{path}.ip")


def _validate_endpoints_port(port: Document, path: str, needs_name: bool) -> list[FieldError]:
    errors = [required(f"{path}.name")] if needs_name and not port.get("name") else []
    return errors + _PORT.validate(port, path)


def _endpoints_cells(endpoints: Document, now_s: float) -> list[Cell]:
    subsets = endpoints.get("subsets") or ()
    addresses = list(_endpoint_addresses(subsets))
    text = cut_short(addresses[:SHOWN_MAX], len(addresses)) if subsets else NONE
    return [endpoints["metadata"]["name"], text, age(endpoints, now_s)]


def _endpoint_addresses(subsets: list[Document] | tuple[()]) -> Iterator[str]:
    for subset in subsets:
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            yield from addresses  # of a headless service
            continue
        for port in ports:
            for address in addresses:
                yield f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"


class EndpointsStrategy(Strategy):
    """Writing Endpoints."""

    table = KindTable((NAME, column("Endpoints", "Where the service leads to."), AGE), _endpoints_cells)

    allows_create_on_update = True

    def default(self, obj: Document) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_subsets(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta_update(obj, old)
        errors += self.validate_meta(obj)
        # Unchanged subsets are not validated again: an older server may have accepted them.
        if (obj.get("subsets") or []) != (old.get("subsets") or []):
            errors += validate_subsets(obj)
        return errors

    def warnings(self, obj: Document) -> list[str]:
        if (obj["metadata"].get("labels") or {}).get(MANAGED_BY_LABEL) == CONTROLLER_NAME:
            return []
        return [
            text
            for index, subset in enumerate(obj.get("subsets") or ())
            for field in ("addresses", "notReadyAddresses")
            for position, address in enumerate(subset.get(field) or ())
            for text in ip_warnings(address["ip"], f"subsets[{index}].{field}[{position}].ip")
        ]


STRATEGY = EndpointsStrategy
