"""Services and their endpoints in a table."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.tables.cells import NONE, SHOWN_MAX, UNSET, age, cut_short, labels_text
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column, wide


def _service(service: Document, now_s: float) -> list[Cell]:
    spec = service.get("spec") or {}
    return [
        service["metadata"]["name"],
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external_address(spec, service.get("status") or {}),
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        age(service, now_s),
        labels_text(spec.get("selector")),
    ]


def _external_address(spec: Document, status: Document) -> str:
    given = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
            balancers = {each.get("ip") or each.get("hostname") for each in ingress}
            return ",".join([*sorted(address for address in balancers if address), *given]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return "<unknown>"


def _port(port: Document) -> str:
    node_port = port.get("nodePort", 0)
    number = f"{port['port']}:{node_port}" if node_port > 0 else str(port["port"])
    return f"{number}/{port.get('protocol', '')}"


def _endpoints(endpoints: Document, now_s: float) -> list[Cell]:
    subsets = endpoints.get("subsets") or ()
    addresses = list(_addresses(subsets))
    text = cut_short(addresses[:SHOWN_MAX], len(addresses)) if subsets else NONE
    return [endpoints["metadata"]["name"], text, age(endpoints, now_s)]


def _addresses(subsets: list[Document] | tuple[()]) -> Iterator[str]:
    for subset in subsets:
        addresses = [each["ip"] for each in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            yield from addresses  # of a headless service
            continue
        for port in ports:
            for address in addresses:
                yield f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"


def _endpoint_slice(piece: Document, now_s: float) -> list[Cell]:
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


SERVICE_TABLE = KindTable(
    (
        NAME,
        column("Type", "How it is reached."),
        column("Cluster-IP", "Its address inside the cluster."),
        column("External-IP", "Its addresses outside of it."),
        column("Port(s)", "The ports on which it is reached."),
        AGE,
        wide("Selector", "Which pods it leads to."),
    ),
    _service,
)

ENDPOINTS_TABLE = KindTable((NAME, column("Endpoints", "Where the service leads to."), AGE), _endpoints)

ENDPOINT_SLICE_TABLE = KindTable(
    (
        NAME,
        column("AddressType", "What its addresses are."),
        column("Ports", "The ports of all its endpoints."),
        column("Endpoints", "Their addresses."),
        AGE,
    ),
    _endpoint_slice,
)

TABLES = {
    kinds.SERVICE: SERVICE_TABLE,
    kinds.ENDPOINTS: ENDPOINTS_TABLE,
    kinds.ENDPOINT_SLICE: ENDPOINT_SLICE_TABLE,
}
